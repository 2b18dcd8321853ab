//! What a listener wishes to hear of.

use serde::Deserialize;

use crate::edge::{Cause, RequestId};

/// Something that may change at a worker. How it changed is not told: who hears of it asks again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Tools,
    Prompts,
    Resources,
    /// The resource of this URI.
    Resource(String),
}

/// The kinds of changes, and the resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wishes {
    tools: bool,
    prompts: bool,
    resources: bool,
    pub(super) uris: Vec<String>,
}

#[derive(Deserialize)]
struct Request {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    notifications: Filter,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    tools_list_changed: Option<bool>,
    prompts_list_changed: Option<bool>,
    resources_list_changed: Option<bool>,
    resource_subscriptions: Option<Vec<String>>,
}

impl Wishes {
    /// Those of a `subscriptions/listen`.
    pub(super) fn read(body: &[u8]) -> Result<Self, Cause> {
        let Request { params: Params { notifications: filter } } =
            serde_json::from_slice(body).map_err(|_fault| Cause::BadParams("notifications"))?;
        let mut uris = Vec::new();
        for uri in filter.resource_subscriptions.unwrap_or_default() {
            if uris.len() < MOST_URIS && !uris.contains(&uri) {
                uris.push(uri);
            }
        }
        Ok(Self {
            tools: filter.tools_list_changed == Some(true),
            prompts: filter.prompts_list_changed == Some(true),
            resources: filter.resources_list_changed == Some(true),
            uris,
        })
    }

    /// Those that a worker of these capabilities can fulfil.
    pub(super) fn within(&self, capabilities: &serde_json::Map<String, serde_json::Value>) -> Self {
        let offers = |kind: &str, offer: &str| {
            capabilities.get(kind).and_then(|kind| kind.get(offer)).and_then(serde_json::Value::as_bool) == Some(true)
        };
        Self {
            tools: self.tools && offers("tools", "listChanged"),
            prompts: self.prompts && offers("prompts", "listChanged"),
            resources: self.resources && offers("resources", "listChanged"),
            uris: if offers("resources", "subscribe") { self.uris.clone() } else { Vec::new() },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn include(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.iter().any(|wished| lies_in(uri, wished)),
        }
    }

    /// The first message of a subscription: which wishes are fulfilled.
    pub(super) fn acknowledged(&self, id: &RequestId) -> String {
        let kinds = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        let mut honoured: Vec<_> =
            kinds.into_iter().filter(|(_, wished)| *wished).map(|(name, _)| format!(r#""{name}":true"#)).collect();
        if !self.uris.is_empty() {
            honoured.push(format!(r#""resourceSubscriptions":{}"#, serde_json::json!(self.uris)));
        }
        let notifications = format!(r#""notifications":{{{}}},"#, honoured.join(","));
        tagged("notifications/subscriptions/acknowledged", &notifications, id)
    }
}

impl Change {
    /// What a worker's notification says of changes, if anything.
    pub(super) fn read(method: &str, uri: impl FnOnce() -> Option<String>) -> Option<Self> {
        match method {
            TOOLS => Some(Self::Tools),
            PROMPTS => Some(Self::Prompts),
            RESOURCES => Some(Self::Resources),
            RESOURCE => uri().map(Self::Resource),
            _ => None,
        }
    }

    /// As the listener whose request had this id is told of it.
    pub(super) fn told(&self, id: &RequestId) -> String {
        match self {
            Self::Tools => tagged(TOOLS, "", id),
            Self::Prompts => tagged(PROMPTS, "", id),
            Self::Resources => tagged(RESOURCES, "", id),
            Self::Resource(uri) => tagged(RESOURCE, &format!(r#""uri":{},"#, serde_json::json!(uri)), id),
        }
    }
}

/// Whether a resource is another or a part of it; a worker may tell of parts.
fn lies_in(uri: &str, whole: &str) -> bool {
    uri.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || whole.ends_with('/'))
}

/// A notification of the subscription that the request with this id has opened; the id is pasted as it came.
fn tagged(method: &str, params: &str, id: &RequestId) -> String {
    let id = id.raw();
    format!(
        r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
    )
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const RESOURCE: &str = "notifications/resources/updated";

/// Of one listener. The worker is asked for each, so what goes beyond is not acknowledged.
pub(super) const MOST_URIS: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Change, MOST_URIS, Wishes};
    use crate::edge::{Cause, RequestId};
    use serde_json::json;

    fn wishes(notifications: &serde_json::Value) -> Result<Wishes, Cause> {
        Wishes::read(json!({ "params": { "notifications": notifications } }).to_string().as_bytes())
    }

    #[test]
    fn what_is_acknowledged_is_what_was_asked_for_and_is_offered() {
        let asked = wishes(&json!({
            "toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true, "new": 1,
            "resourceSubscriptions": ["a:1", "b:2", "a:1"],
        }))
        .expect("wishes");
        let offered = json!({ "tools": { "listChanged": true }, "prompts": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": false } });
        let honoured = asked.within(offered.as_object().expect("an object"));
        let id = RequestId::parse("123456789012345678901234567890").expect("an id");
        assert_eq!(
            honoured.acknowledged(&id),
            r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:1","b:2"]},"_meta":{"io.modelcontextprotocol/subscriptionId":123456789012345678901234567890}}}"#
        );
        assert!(asked.within(&serde_json::Map::new()).is_empty());
        assert!(honoured.include(&Change::Tools) && !honoured.include(&Change::Resources));
    }

    #[test]
    fn a_filter_is_needed_and_its_parts_have_types() {
        for bad in
            [json!(null), json!([]), json!({ "toolsListChanged": "yes" }), json!({ "resourceSubscriptions": [1] })]
        {
            assert_eq!(wishes(&bad), Err(Cause::BadParams("notifications")), "{bad}");
        }
        assert!(wishes(&json!({})).expect("wishes").is_empty());
        assert!(wishes(&json!({ "toolsListChanged": null })).expect("wishes").is_empty());
    }

    #[test]
    fn so_many_resources_are_watched_for_a_listener_and_no_more() {
        for (count, kept) in [(MOST_URIS, MOST_URIS), (MOST_URIS + 1, MOST_URIS)] {
            let uris: Vec<_> = (0..count).map(|number| format!("a:{number}")).collect();
            assert_eq!(wishes(&json!({ "resourceSubscriptions": uris })).expect("wishes").uris.len(), kept);
        }
    }

    #[test]
    fn a_part_of_a_resource_belongs_to_who_wished_for_the_whole() {
        let wishes = wishes(&json!({ "resourceSubscriptions": ["file:///a", "x://"] })).expect("wishes");
        for (uri, included) in
            [("file:///a", true), ("file:///a/b", true), ("file:///ab", false), ("file:///", false), ("x://y", true)]
        {
            assert_eq!(wishes.include(&Change::Resource(uri.to_owned())), included, "{uri}");
        }
    }
}
