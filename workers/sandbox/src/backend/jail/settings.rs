//! What an operator decides of jails.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::host::{SshHost, Surroundings};

/// The defaults are the original's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub reach: Reach,
    /// The ZFS snapshot that tenants begin as a clone of.
    pub template_snapshot: String,
    /// The dataset below which theirs lie.
    pub dataset_parent: String,
    /// What their names begin with.
    pub prefix: String,
    /// The folder of their piles.
    pub pile_root: String,
    /// The file that new piles begin as a copy of.
    pub bootstrap_pile: String,
    /// Whether somebody else keeps the resource limits, so that none are set here.
    pub external_rctl: bool,
    /// What a tenant's files may take up; without one nothing bounds them.
    pub clone_refquota: Option<String>,
    /// What all piles may take up together, where their folder is a dataset.
    pub pile_quota: Option<String>,
    /// The collection in which a new tenant is entered as a person: 64 hex digits. A tenant that is new needs it.
    pub relations_collection: Option<String>,
    pub network: Network,
    /// How long one program may take.
    pub admin_limit_s: u64,
    pub surroundings: Surroundings,
}

/// Which host has the jails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// Nobody said. Naming one is left until one is needed.
    #[default]
    Unsaid,
    /// This one.
    Local,
    /// Another, by ssh.
    Ssh(SshHost),
}

/// What tenants reach beyond their jail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Network {
    /// Nothing, not even loopback.
    #[default]
    None,
    /// All that the host reaches, its own loopback included.
    Inherit,
    /// One address of an interface: `em0|192.0.2.7`.
    Interface { name: String, address: std::net::IpAddr },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no network of a jail: write none, inherit, or INTERFACE|ADDRESS such as lo1|10.0.0.7")]
pub struct InvalidNetwork(String);

impl Settings {
    #[must_use]
    pub fn admin_limit(&self) -> Duration {
        Duration::from_secs(self.admin_limit_s)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            reach: Reach::Unsaid,
            template_snapshot: "aitemp/playground/template@base".to_owned(),
            dataset_parent: "aitemp/playground".to_owned(),
            prefix: "playground".to_owned(),
            pile_root: "/aitemp/playground/piles".to_owned(),
            bootstrap_pile: "/aitemp/playground/bootstrap.pile".to_owned(),
            external_rctl: false,
            clone_refquota: Some("10G".to_owned()),
            pile_quota: Some("50G".to_owned()),
            relations_collection: None,
            network: Network::None,
            admin_limit_s: 120,
            surroundings: Surroundings::default(),
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => return Ok(Self::None),
            "inherit" => return Ok(Self::Inherit),
            _ => {}
        }
        let invalid = || InvalidNetwork(text.to_owned());
        let (name, address) = text.split_once('|').ok_or_else(invalid)?;
        let address = address.parse().map_err(|_no_address| invalid())?;
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._".contains(sign);
        if name.is_empty() || name.len() > LONGEST_INTERFACE || !name.chars().all(is_plain) {
            return Err(invalid());
        }
        Ok(Self::Interface { name: name.to_owned(), address })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Inherit => f.write_str("inherit"),
            Self::Interface { name, address } => write!(f, "{name}|{address}"),
        }
    }
}

impl TryFrom<String> for Network {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> Self {
        network.to_string()
    }
}

/// A size as ZFS takes it, or nothing where the word says so. ZFS is the judge of sizes.
#[must_use]
pub fn quota(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() || text == "0" || text == "none" { None } else { Some(text.to_owned()) }
}

/// `IFNAMSIZ` with its end.
const LONGEST_INTERFACE: usize = 15;

#[cfg(test)]
mod tests {
    use super::{Network, Settings, quota};

    #[test]
    fn networks_are_read_as_they_are_written() {
        for text in ["none", "inherit", "lo1|10.0.0.7", "em0.7|2001:db8::7"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
        for text in ["", "host", "em0", "em0|", "|10.0.0.7", "em 0|10.0.0.7", "em0|10.0.0.7/24", "abcdefghijklmnop|::1"]
        {
            assert!(text.parse::<Network>().unwrap_err().to_string().contains("inherit"), "{text}");
        }
    }

    #[test]
    fn three_words_take_a_quota_away() {
        for (text, wanted) in [("10G", Some("10G")), ("", None), ("0", None), ("none", None), (" 5G ", Some("5G"))] {
            assert_eq!(quota(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn settings_cross_to_another_process_unchanged() {
        let settings = Settings { network: "lo1|10.0.0.7".parse().unwrap(), ..Settings::default() };
        let text = serde_json::to_string(&settings).unwrap();
        assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
    }
}
