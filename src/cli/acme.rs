//! The flags by which a certificate comes by itself.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::failure::{Code, Failure};
use crate::acme::{Proof, STAGING, STANDARD, Settings};
use crate::config::file::Acme as FileAcme;
use crate::spelled;

#[derive(Clone, Debug, Args)]
pub(super) struct Acme {
    /// A name that an ACME authority such as Let's Encrypt gives a certificate for by itself; repeatable.
    #[arg(long = "acme-domain", value_name = "NAME", value_parser = spelled::domain)]
    domains: Vec<String>,

    /// Say that you agree to the authority's terms of service; for Let's Encrypt https://letsencrypt.org/repository/.
    #[arg(long)]
    acme_agree_to_terms: bool,

    /// An address that the authority may write to, such as admin@example.org; repeatable.
    #[arg(long = "acme-contact", value_name = "EMAIL", value_parser = spelled::contact)]
    contacts: Vec<String>,

    /// The authority's directory [default: that of Let's Encrypt].
    #[arg(long, value_name = "URL", value_parser = spelled::https, conflicts_with = "acme_staging")]
    acme_directory: Option<String>,

    /// Try it out with Let's Encrypt's staging: its certificates are trusted by nobody.
    #[arg(long)]
    acme_staging: bool,

    /// How names are proved: at the HTTPS port, which the authority reaches as 443, or at that of --redirect-bind, which it
    /// reaches as 80 [default: tls-alpn-01].
    #[arg(long, value_enum)]
    acme_challenge: Option<Challenge>,

    /// For tests: believe the authority in this file too, and take loopback for a public address.
    #[arg(long, value_name = "FILE", hide = true)]
    dangerously_trust_ca: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Challenge {
    #[value(name = "tls-alpn-01")]
    TlsAlpn,
    #[value(name = "http-01")]
    Http,
}

impl Acme {
    /// What the flags and the file say together; nothing where no name is said.
    pub(super) fn settings(&self, file: Option<&FileAcme>) -> Result<Option<Settings>, Failure> {
        let first = |flags: &[String], said: Option<&Vec<String>>| {
            if flags.is_empty() { said.cloned().unwrap_or_default() } else { flags.to_vec() }
        };
        let domains = first(&self.domains, file.map(|file| &file.domains));
        if domains.is_empty() {
            return Ok(None);
        }
        if !self.acme_agree_to_terms && !file.is_some_and(|file| file.agree_to_terms) {
            return Err(Failure::message(Code::Configuration, "an ACME authority wants its terms of service agreed to").hint(
                "read them (for Let's Encrypt https://letsencrypt.org/repository/), then say agree_to_terms = true or --acme-agree-to-terms",
            ));
        }
        let staging = self.acme_staging || file.is_some_and(|file| file.staging);
        let directory = self.acme_directory.clone().or_else(|| file.and_then(|file| file.directory.clone()));
        if staging && directory.is_some() {
            return Err(Failure::message(Code::Configuration, "staging and directory name two ACME authorities")
                .hint("leave one of them out"));
        }
        let proof = match self.acme_challenge {
            Some(Challenge::TlsAlpn) => Some(Proof::TlsAlpn),
            Some(Challenge::Http) => Some(Proof::Http),
            None => file.and_then(|file| file.challenge),
        };
        let contacts = first(&self.contacts, file.map(|file| &file.contacts));
        Ok(Some(Settings {
            directory: directory.unwrap_or_else(|| if staging { STAGING } else { STANDARD }.to_owned()),
            domains,
            contacts: contacts.into_iter().map(|contact| format!("mailto:{contact}")).collect(),
            proof: proof.unwrap_or(Proof::TlsAlpn),
            retry: file.and_then(|file| file.retry).unwrap_or(RETRY),
        }))
    }

    pub(super) fn trusted(&self) -> Option<PathBuf> {
        self.dangerously_trust_ca.clone()
    }
}

/// With what it grows to this stays below the failures that authorities allow in an hour.
const RETRY: std::time::Duration = std::time::Duration::from_secs(60);

/// Whether it can work with the rest of what was said.
pub(super) fn possible(acme: &Settings, (state, redirects, clients): (bool, bool, bool)) -> Result<(), Failure> {
    let impossible = |what: &str, hint: &str| Err(Failure::message(Code::Configuration, what).hint(hint));
    if !state {
        return impossible(
            "an ACME certificate must be kept, and there is no state directory",
            "name one with state or --state: a service that asks anew at each start is soon asked to stay away",
        );
    }
    match acme.proof {
        Proof::Http if !redirects => impossible(
            "http-01 has no door for plain HTTP",
            "say redirect_bind = \"0.0.0.0:80\" or --redirect-bind, or prove the names with tls-alpn-01",
        ),
        Proof::TlsAlpn if clients => impossible(
            "an authority that proves names by tls-alpn-01 shows no certificate of a client's",
            "prove them with challenge = \"http-01\", or leave client_ca out",
        ),
        Proof::Http | Proof::TlsAlpn => Ok(()),
    }
}
