//! What a person sees.
//!
//! No script, no cookie, nothing from elsewhere: the one style sheet stands in the page, and the policy names its hash. A
//! browser blocks a redirect that follows a form to an address the policy does not name, and no policy can name all that
//! a client's own address leads to; so the answer to the form is a page that goes on by itself. `Cross-Origin-Opener-
//! Policy` is absent on purpose: a page that opened this one as a window waits for it to come back.

use std::sync::LazyLock;
use std::time::Duration;

use askama::Template;
use aws_lc_rs::digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, RETRY_AFTER,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{Response, StatusCode};

use super::PublicUrl;
use super::ask::{Ask, Shown, Unsendable};
use super::destination::Destination;
use super::fault::Fault;
use super::gate::TooMany;
use super::reply::Reply;
use super::scope;

#[derive(Template)]
#[template(path = "oauth/consent.html")]
struct Consent<'a> {
    style: &'static str,
    host: &'a str,
    name: &'a str,
    client: &'a str,
    is_documented: bool,
    goes_to: &'a str,
    address: &'a str,
    is_local: bool,
    stays: bool,
    request: &'a str,
    wrong: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "oauth/onward.html")]
struct Onward<'a> {
    style: &'static str,
    host: &'a str,
    title: &'a str,
    goes_to: &'a str,
    address: &'a str,
}

#[derive(Template)]
#[template(path = "oauth/problem.html")]
struct Problem<'a> {
    style: &'static str,
    host: &'a str,
    title: &'a str,
    what: &'a str,
    next: &'a str,
    detail: Option<&'a str>,
    back: Option<(&'a str, &'a str)>,
}

#[derive(Template)]
#[template(path = "oauth/landing.html")]
struct Landing<'a> {
    style: &'static str,
    host: &'a str,
    address: &'a str,
}

#[derive(Template)]
#[template(path = "oauth/tokens.html")]
struct Tokens<'a> {
    style: &'static str,
    host: &'a str,
}

/// What a browser is shown at a name for tokens alone. It has no byte of the request and none of the configuration: the
/// person has the address before them.
#[must_use]
pub fn tokens_alone() -> Reply {
    page_of(StatusCode::OK, &Tokens { style: STYLE, host: "" })
}

/// The pages of one server.
pub(super) struct Pages<'a>(pub(super) &'a PublicUrl);

impl Pages<'_> {
    /// Asks whether a client may. `wrong` says what was wrong with the code that was tried last.
    pub(super) fn consent(
        &self,
        ask: &Ask,
        shown: &Shown,
        to: &Destination,
        request: &str,
        wrong: Option<&str>,
    ) -> Reply {
        let goes_to = to.shown();
        let page = Consent {
            style: STYLE,
            host: self.0.authority(),
            name: shown.name.as_ref().map_or("An application without a name", |name| name.as_str()),
            client: ask.client.as_str(),
            is_documented: shown.is_documented,
            goes_to: &goes_to,
            address: to.as_str(),
            is_local: to.is_local(),
            stays: ask.scopes.contains(scope::OFFLINE),
            request,
            wrong,
        };
        page_of(if wrong.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK }, &page)
    }

    /// A person has decided; the browser goes on to the client.
    pub(super) fn onward(&self, is_allowed: bool, to: &Destination, address: &str) -> Reply {
        let title = if is_allowed { "Allowed" } else { "Cancelled" };
        let goes_to = to.shown();
        page_of(StatusCode::OK, &Onward { style: STYLE, host: self.0.authority(), title, goes_to: &goes_to, address })
    }

    /// A person has decided against a client that nobody has ever let in. It is told by a link, which a person may follow or
    /// not.
    pub(super) fn declined(&self, to: &Destination, address: &str) -> Reply {
        let goes_to = to.shown();
        let page = Problem {
            style: STYLE,
            host: self.0.authority(),
            title: "Cancelled",
            what: "The application was not let in.",
            next: "You can close this page. Going back tells the application too; nobody here has let it in before, so you \
                   are not sent there by yourself.",
            detail: None,
            back: Some((&goes_to, address)),
        };
        page_of(StatusCode::OK, &page)
    }

    /// Nobody can be sent back.
    pub(super) fn unsendable(&self, why: &Unsendable) -> Reply {
        let (what, next) = why.told();
        if *why != Unsendable::Busy {
            return self.problem(StatusCode::BAD_REQUEST, what, next, why.detail(), None);
        }
        let mut reply = self.problem(StatusCode::TOO_MANY_REQUESTS, what, next, None, None);
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(BUSY_SECONDS));
        reply
    }

    /// The client asked wrongly. It is told by a link, which a person may follow or not.
    pub(super) fn faulty(&self, fault: &Fault, to: &Destination, address: &str) -> Reply {
        let goes_to = to.shown();
        self.problem(
            fault.status(),
            "The application asked for something that this server does not do.",
            "Tell whoever makes the application what stands below. Going back tells the application too.",
            Some(&format!("{}: {}", fault.reason.word(), fault.description)),
            Some((&goes_to, address)),
        )
    }

    pub(super) fn too_many(&self, many: TooMany) -> Reply {
        let seconds = many.again.as_secs().saturating_add(1);
        let next = format!("Wait {}, then start again from the application.", spoken(many.again));
        let mut reply =
            self.problem(StatusCode::TOO_MANY_REQUESTS, "Too many invite codes were tried.", &next, None, None);
        reply.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        reply
    }

    pub(super) fn problem(
        &self,
        status: StatusCode,
        what: &str,
        next: &str,
        detail: Option<&str>,
        back: Option<(&str, &str)>,
    ) -> Reply {
        let title = "This did not work";
        page_of(status, &Problem { style: STYLE, host: self.0.authority(), title, what, next, detail, back })
    }

    pub(super) fn landing(&self) -> Reply {
        let address = self.0.at("/mcp");
        page_of(StatusCode::OK, &Landing { style: STYLE, host: self.0.authority(), address: &address })
    }
}

/// What the text calls a few: by then another may be fetched.
const BUSY_SECONDS: u64 = 10;

fn spoken(time: Duration) -> String {
    match time.as_secs().saturating_add(1) {
        1 => "a second".to_owned(),
        seconds if seconds < 120 => format!("{seconds} seconds"),
        seconds => format!("{} minutes", seconds.div_ceil(60)),
    }
}

fn page_of(status: StatusCode, page: &impl Template) -> Reply {
    // Writing into a string does not fail.
    let mut reply = Response::new(Bytes::from(page.render().unwrap_or_default()));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::from_str(&POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    reply
}

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest::digest(&digest::SHA256, STYLE.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; img-src data:; form-action 'self'; base-uri 'none'; \
         frame-ancestors 'none'"
    )
});

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    // For browsers that do not know the policy.
    (X_FRAME_OPTIONS, "DENY"),
];

const STYLE: &str = include_str!("../../templates/oauth/page.css");

#[cfg(test)]
mod tests;
