//! A client as it is written against any server: it knows what the documents say, and follows a page as a browser does.

use playground::oauth::state::Challenge;
use playground::oauth::{PublicUrl, Settings};
use serde_json::{Value, json};

use crate::edge::setting::{Edge, Setting};
use crate::edge::talk::{ABSENT, Answer};
use crate::edge::worker::Worker;

/// A client with an id.
pub(super) struct Program<'a> {
    edge: &'a Edge,
    pub(super) id: String,
    redirect: &'a str,
}

pub(super) fn settings() -> Settings {
    Settings::at(PublicUrl::parse(URL).unwrap())
}

/// An edge at which clients can log in, with a worker that nobody needs to know.
pub(super) async fn edge() -> Edge {
    edge_with(settings()).await
}

pub(super) async fn edge_with(settings: Settings) -> Edge {
    Setting::sandbox(&Worker::plain().await).logins(settings).start().await
}

/// A request without a token, at the public name.
pub(super) async fn ask(edge: &Edge, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Answer {
    let mut all = headers.to_vec();
    // An edge that lists this machine as a proxy believes the last one.
    for (name, value) in [("Host", "mcp.example"), ("Authorization", ABSENT), ("X-Forwarded-For", "203.0.113.7")] {
        if !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
            all.push((name, value));
        }
    }
    let mut client = edge.client().await;
    client.request(method, path, &all, body).await;
    client.answer().await
}

/// A form that is sent without a token.
pub(super) async fn send(edge: &Edge, path: &str, form: &[(&str, &str)]) -> Answer {
    ask(edge, "POST", path, &[FORM], Some(&encoded(form))).await
}

pub(super) async fn register(edge: &Edge, metadata: &Value) -> Answer {
    ask(edge, "POST", "/oauth/register", &[], Some(&metadata.to_string())).await
}

impl<'a> Program<'a> {
    /// Registers itself with this redirect.
    pub(super) async fn at(edge: &'a Edge, redirect: &'a str) -> Self {
        let answer = register(edge, &json!({ "client_name": "Program", "redirect_uris": [redirect] })).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        Self { edge, id: answer.json()["client_id"].as_str().unwrap().to_owned(), redirect }
    }

    pub(super) async fn new(edge: &'a Edge) -> Self {
        Self::at(edge, REDIRECT).await
    }

    /// What it asks for, with some of it said otherwise; an empty text leaves it out.
    pub(super) fn query(&self, other: &[(&str, &str)]) -> String {
        let challenge = String::from(Challenge::of_verifier(VERIFIER).unwrap());
        let usual = [
            ("response_type", "code"),
            ("client_id", self.id.as_str()),
            ("redirect_uri", self.redirect),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
            ("scope", "mcp offline_access"),
            ("state", STATE),
            ("resource", "https://mcp.example/mcp"),
        ];
        let said = |name: &str| other.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let mut form: Vec<_> = usual.iter().map(|(name, value)| (*name, said(name).unwrap_or(value))).collect();
        form.extend(other.iter().filter(|(name, _)| !usual.iter().any(|(known, _)| known == name)));
        form.retain(|(_, value)| !value.is_empty());
        encoded(&form)
    }

    /// The page that a person is shown.
    pub(super) async fn page(&self, other: &[(&str, &str)]) -> Answer {
        let path = format!("/oauth/authorize?{}", self.query(other));
        ask(self.edge, "GET", &path, &[("Accept", "text/html")], None).await
    }

    /// What a person gets who allows it with this invite.
    pub(super) async fn allow(&self, invite: &str) -> Answer {
        let page = self.page(&[]).await;
        assert_eq!(page.status, 200, "{}", page.text());
        decide(self.edge, &sealed(page.text()), invite, "allow").await
    }

    /// A code that a person has allowed.
    pub(super) async fn code(&self, invite: &str) -> String {
        let allowed = self.allow(invite).await;
        assert_eq!(allowed.status, 200, "{}", allowed.text());
        parameter(&onward(allowed.text()), "code").unwrap()
    }

    /// The tokens for a code.
    pub(super) async fn redeem(&self, code: &str) -> Answer {
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", self.id.as_str()),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", self.redirect),
        ];
        send(self.edge, "/oauth/token", &form).await
    }

    pub(super) async fn refresh(&self, token: &str) -> Answer {
        let form = [("grant_type", "refresh_token"), ("client_id", self.id.as_str()), ("refresh_token", token)];
        send(self.edge, "/oauth/token", &form).await
    }

    /// Both tokens of a login with an invite of alice's.
    pub(super) async fn log_in(&self) -> (String, String) {
        tokens(&self.redeem(&self.code(&self.edge.logins().invite()).await).await)
    }
}

/// Sends the form of a page.
pub(super) async fn decide(edge: &Edge, sealed: &str, invite: &str, decision: &str) -> Answer {
    send(edge, "/oauth/authorize", &[("request", sealed), ("invite", invite), ("decision", decision)]).await
}

pub(super) fn tokens(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = |name: &str| answer.json()[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// What a page carries to its sending.
pub(crate) fn sealed(page: &str) -> String {
    between(page, "name=\"request\" value=\"", "\"").unwrap_or_else(|| panic!("a form: {page}"))
}

/// Where a page goes on to by itself.
pub(crate) fn onward(page: &str) -> String {
    let address = between(page, "<meta http-equiv=\"refresh\" content=\"0;url=", "\">");
    address.unwrap_or_else(|| panic!("a page that goes on: {page}")).replace("&#38;", "&").replace("&#39;", "'")
}

/// Where a page's link leads.
pub(super) fn link(page: &str) -> Option<String> {
    between(page, "<a class=\"button\" href=\"", "\"").map(|address| address.replace("&#38;", "&"))
}

/// A parameter of an address, decoded.
pub(crate) fn parameter(address: &str, name: &str) -> Option<String> {
    let query = address.split_once('?')?.1;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    let mut bytes = value.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        let mut digit =
            || char::from(bytes.next().unwrap()).to_digit(16).map(|digit| u8::try_from(digit).unwrap()).unwrap();
        decoded.push(if byte == b'%' { digit() << 4 | digit() } else { byte });
    }
    Some(String::from_utf8(decoded).unwrap())
}

pub(crate) fn encoded(form: &[(&str, &str)]) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        byte => format!("%{byte:02x}"),
    };
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", value.bytes().map(byte).collect::<String>());
    form.iter().map(pair).collect::<Vec<_>>().join("&")
}

fn between(text: &str, before: &str, behind: &str) -> Option<String> {
    Some(text.split_once(before)?.1.split_once(behind)?.0.to_owned())
}

pub(super) const URL: &str = "https://mcp.example";
pub(crate) const REDIRECT: &str = "https://client.example/cb?x=1";
pub(super) const STATE: &str = "a/b \"<ü&=+";
pub(crate) const VERIFIER: &str = "verifier-verifier-verifier-verifier-verifier";
pub(super) const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
