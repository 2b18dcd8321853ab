//! `playground connect`: what to type or paste so that a client finds this server.

mod address;
mod clients;
mod fill;

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use kit::Tenant;
use serde_json::json;

use super::failure::{Code, Failure};
use super::place::Place;
use super::say;
use crate::config::file::File;
use address::Address;
use clients::{CLIENTS, Client};
use fill::Fill;

/// Print the address and the configuration for a client, with a token and by logging in, as far as it can do either.
///
/// No token is shown: what is printed reads it from its file, or from an environment variable where the client can.
/// Several clients that find they could log in leave out the token they were given, so where a server offers logins the
/// token goes with an address of its own, which `--token-url` names.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(super) struct Connect {
    #[arg(value_name = "CLIENT", value_parser = PossibleValuesParser::new(clients::names()), ignore_case = true)]
    client: String,

    /// Where clients reach this server [default: /mcp at the public_url of the file, else http://127.0.0.1:8377/mcp].
    #[arg(long, value_name = "URL", value_parser = Address::parse)]
    url: Option<Address>,

    /// The address that is kept for tokens alone, where there is one [default: the first of bearer_hosts in the file, else
    /// the port of its bearer_bind unless somebody in front of it speaks TLS, else that of --url].
    #[arg(long, value_name = "URL", value_parser = Address::parse)]
    token_url: Option<Address>,

    /// How it gets in [default: both, as far as the client can].
    #[arg(long, value_enum, value_name = "WAY")]
    by: Option<Way>,

    /// The file that holds the token.
    #[arg(long, value_name = "FILE", conflicts_with = "tenant")]
    token_file: Option<PathBuf>,

    /// The tenant whose token lies in the state directory, as `quickstart` leaves it there.
    #[arg(long, value_name = "NAME", value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Way {
    Token,
    Login,
}

impl Connect {
    /// Whether a program reads what comes of it.
    pub(super) fn is_for_programs(&self) -> bool {
        self.json
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        let client = CLIENTS.iter().find(|client| client.is_called(&self.client));
        let client = client.ok_or_else(|| Failure::message(Code::Usage, "no such client"))?;
        let token_file = self.token_file()?;
        let (url, for_tokens) = self.addresses()?;
        let token_url = for_tokens.as_ref().unwrap_or(&url);
        let wanted = |way: Way| self.by.is_none_or(|by| by == way);
        let fill = |url: &Address| Fill { url: url.clone(), token_file: token_file.clone() };
        let token = client.token.filter(|_| wanted(Way::Token)).map(|text| fill(token_url).into_text(text));
        let login = client.login.filter(|_| wanted(Way::Login)).map(|text| fill(&url).into_text(text));
        if token.is_none() && login.is_none() {
            let way = if self.by == Some(Way::Token) { "cannot be given a token" } else { "cannot log in" };
            return Err(Failure::message(Code::Usage, format!("{} {way}", client.title)));
        }
        if self.json {
            say::data(&object(client, (token, token_url), (login, &url)).to_string());
            return Ok(());
        }
        let both = token.is_some() && login.is_some();
        if let Some(text) = &token {
            say::data(&section(both.then_some("With a token"), token_url, text));
        }
        if let Some(text) = &login {
            say::data(&section(both.then_some("By logging in, where the server offers it"), &url, text));
        }
        self.warn(client, (token.is_some(), login.is_some()), &url, for_tokens.is_some());
        Ok(())
    }

    /// Where clients log in, and the address for tokens alone where there is one.
    fn addresses(&self) -> Result<(Address, Option<Address>), Failure> {
        let file = self.place.file()?;
        let said = |text: String| Address::parse(&text).map_err(|fault| Failure::new(fault).code(Code::Configuration));
        let second = by_port(&file);
        let public = file.oauth.public_url;
        let url = match (&self.url, &public) {
            (Some(url), _) => url.clone(),
            (None, Some(public)) => said(public.at("/mcp"))?,
            (None, None) => said(USUAL.to_owned())?,
        };
        let scheme = if url.is_https() { "https" } else { "http" };
        let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
        // A name without a port is one for every port, and this is the one that listens.
        let with_port = |host: &String| if has_port(host) { host.clone() } else { format!("{host}{port}") };
        let bearer = file.oauth.bearer_hosts.first().map(with_port).map(|host| format!("{scheme}://{host}/mcp"));
        let bearer = bearer.or(second).map(said).transpose()?;
        Ok((url, self.token_url.clone().or(bearer)))
    }

    /// The text in its place, or the file's name, in a shell's words.
    fn token_file(&self) -> Result<Option<PathBuf>, Failure> {
        match (&self.token_file, &self.tenant) {
            (Some(file), _) => Ok(Some(file.clone())),
            (None, Some(tenant)) => Ok(Some(self.place.seen()?.token(tenant))),
            (None, None) => Ok(None),
        }
    }

    fn warn(&self, client: &Client, (has_token, has_login): (bool, bool), url: &Address, knows_another: bool) {
        if has_token && self.token_file.is_none() && self.tenant.is_none() {
            say::talk("a token in a file of its own is made by: playground token mint TENANT --out TOKEN-FILE");
        }
        if has_token && client.drops_token && !knows_another && !url.is_loopback() {
            say::talk(&format!(
                "{} leaves out its token where the server offers logins; name the address for tokens alone with --token-url",
                client.title
            ));
        }
        if client.is_elsewhere && has_login && (url.is_loopback() || !url.is_https()) {
            say::talk(&format!(
                "{} connects from its own servers: it needs an https address that the internet reaches, named with --url",
                client.title
            ));
        }
    }
}

/// The second door of a service, as clients reach it; none where somebody in front speaks TLS, who may call it otherwise.
fn by_port(file: &File) -> Option<String> {
    let port = file.bearer_bind?.port();
    let speaks_tls = file.tls.is_some() || file.acme.is_some();
    match &file.oauth.public_url {
        Some(public) if public.as_str().starts_with("https://") && !speaks_tls => None,
        Some(public) => Some(format!("{}:{port}/mcp", public.without_port())),
        None => Some(format!("http://127.0.0.1:{port}/mcp")),
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':')
        .is_some_and(|(name, port)| !port.ends_with(']') && !name.is_empty() && port.parse::<u16>().is_ok())
}

fn section(title: Option<&str>, url: &Address, text: &str) -> String {
    let title = title.map(|title| format!("# {title}: {url}\n")).unwrap_or_default();
    format!("{title}{text}\n")
}

fn object(
    client: &Client,
    (token, token_url): (Option<String>, &Address),
    (login, url): (Option<String>, &Address),
) -> serde_json::Value {
    let way = |text: Option<String>, url: &Address| text.map(|text| json!({ "url": url.to_string(), "text": text }));
    json!({ "v": 1, "client": client.names.first(), "title": client.title, "token": way(token, token_url), "login": way(login, url) })
}

/// Where `quickstart` serves.
const USUAL: &str = "http://127.0.0.1:8377/mcp";

const EXAMPLE: &str = "\
Example:
  playground connect claude-code --url https://token.mcp.example.org/mcp --token-file alice.token
  playground connect chatgpt --config /etc/playground/playground.toml
  playground connect cursor --url https://mcp.example.org/mcp --token-url https://token.mcp.example.org/mcp

Exit codes: 0 printed, 2 usage: an unknown client, or one that cannot get in that way.";
