//! A modern request, and the same one as a worker of sessions is to see it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::edge::{Cause, Kind, Members, Message, RequestId};
use crate::identity::reach::Reach;

use super::level::Level;
use super::patch::Patch;
use super::wishes::Wishes;

pub(super) struct Ask {
    pub(super) id: RequestId,
    pub(super) wants: Wants,
    /// The client's progress token, as it was written.
    pub(super) token: Option<String>,
    /// From which severity on the client wants to see the worker's log; nothing of it if none.
    pub(super) level: Option<Level>,
    /// What its credential may use.
    pub(super) reach: Arc<Reach>,
    /// With its share of the byte budget.
    body: Bytes,
}

/// What kind of answer is owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    /// What the worker offers, which it has said when the session was opened.
    Discovery,
    /// To be told of changes.
    Changes,
    /// The tools, in which the client finds how it is to call them.
    Tools,
    /// The result of what may change something, and therefore goes out once.
    Effect,
    /// The worker's result, with or without a word on how long it may be kept.
    Result { cacheable: bool },
}

impl Ask {
    /// None: it is a notification, and nothing is owed.
    pub(super) fn read(message: Message, reach: &Arc<Reach>) -> Result<Option<Self>, Cause> {
        let Message { body, reserved, kind, .. } = message;
        let (id, method) = match kind {
            Kind::Request { id, method } => (id, method),
            Kind::Notification { .. } | Kind::Response => return Ok(None),
        };
        let wants = match method.as_str() {
            "server/discover" => Wants::Discovery,
            "subscriptions/listen" => Wants::Changes,
            "tools/call" => Wants::Effect,
            "prompts/get" | "completion/complete" => Wants::Result { cacheable: false },
            "tools/list" => Wants::Tools,
            "prompts/list" | "resources/list" | "resources/templates/list" | "resources/read" => {
                Wants::Result { cacheable: true }
            }
            _ => return Err(Cause::NotBridged),
        };
        let text = std::str::from_utf8(&body).map_err(|_bytes| Cause::Unparsable)?;
        let parts = Parts::of(text).ok_or(Cause::Unparsable)?;
        let token = parts.meta.get("progressToken").map(|token| token.get().to_owned());
        let level = parts.meta.text(LOG_LEVEL).and_then(|name| Level::parse(&name));
        Ok(Some(Self { id, wants, token, level, reach: Arc::clone(reach), body: reserved.around(body) }))
    }

    /// What it is that a listener wants to be told of.
    pub(super) fn wishes(&self) -> Result<Wishes, Cause> {
        Wishes::read(&self.body)
    }

    /// It will not be written once more.
    pub(super) fn give_up_body(&mut self) {
        self.body = Bytes::new();
    }

    /// The request under a number of ours, which is also its progress token, without what the era of sessions has not.
    pub(super) fn written(&self, number: u64) -> Option<Bytes> {
        let text = std::str::from_utf8(&self.body).ok()?;
        let Parts { id, raw_meta, meta } = Parts::of(text)?;
        let mut patch = Patch::new(text);
        patch.replace(id, number.to_string());
        let kept: Vec<_> = meta
            .iter()
            .filter(|(name, _)| !name.starts_with(ERA_PREFIX))
            .map(|(name, value)| {
                let value = if name == "progressToken" { number.to_string() } else { value.get().to_owned() };
                format!("{}:{value}", serde_json::Value::from(name))
            })
            .collect();
        patch.replace(raw_meta, format!("{{{}}}", kept.join(",")));
        Some(patch.written())
    }
}

/// The places of a request where the eras differ.
struct Parts<'a> {
    id: &'a RawValue,
    raw_meta: &'a RawValue,
    meta: Members<'a>,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let top = Members::read(serde_json::from_str(text).ok()?)?;
        let raw_meta = Members::read(top.get("params")?)?.get("_meta")?;
        Some(Self { id: top.get("id")?, raw_meta, meta: Members::read(raw_meta)? })
    }
}

impl Wants {
    /// Whether the client is to be told how long it may keep the answer.
    pub(super) fn is_cacheable(self) -> bool {
        match self {
            Self::Discovery | Self::Tools => true,
            Self::Result { cacheable } => cacheable,
            Self::Changes | Self::Effect => false,
        }
    }
}

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const ERA_PREFIX: &str = "io.modelcontextprotocol/";
