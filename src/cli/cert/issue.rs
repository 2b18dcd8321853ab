//! A certificate for development, and the authority that signed it and nothing else.
//!
//! The authority's key is never written: once its one certificate is signed, it can sign no other. That it is good for
//! those names alone stands in it all the same, for whoever comes to hold it in memory.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CidrSubnet, DnType, ExtendedKeyUsagePurpose, GeneralSubtree,
    IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::pki_types::DnsName;

use crate::pem;

/// What a server can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Address(IpAddr),
    /// In lower case; the first label may be `*`.
    Host(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a name or an address without a port is wanted, such as box.test, *.box.test or 192.168.1.7")]
pub(super) struct NoName;

/// All that was made, as PEM text.
pub(super) struct Issued {
    pub(super) authority: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

impl FromStr for Name {
    type Err = NoName;

    fn from_str(text: &str) -> Result<Self, NoName> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let host = text.to_ascii_lowercase();
        match DnsName::try_from(host.strip_prefix("*.").unwrap_or(&host)) {
            Ok(_) => Ok(Self::Host(host)),
            Err(_unfit) => Err(NoName),
        }
    }
}

/// Makes both for these names, good from `now` on, which is since the Unix epoch.
pub(super) fn issue(names: &[Name], now: Duration) -> Result<Issued, rcgen::Error> {
    let (key, authority) = (KeyPair::generate()?, authority(names, now)?);
    let certificate = leaf(names, now)?.signed_by(&key, &authority)?;
    Ok(Issued {
        authority: pem::of("CERTIFICATE", authority.der()),
        certificate: pem::of("CERTIFICATE", certificate.der()),
        key: pem::of("PRIVATE KEY", key.serialized_der()),
    })
}

fn authority(names: &[Name], now: Duration) -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "playground development authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees: names.iter().map(Name::subtree).collect(),
        excluded_subtrees: Vec::new(),
    });
    within(&mut params, now);
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

fn leaf(names: &[Name], now: Duration) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names.iter().map(Name::to_string).collect::<Vec<_>>())?;
    params.distinguished_name.push(DnType::CommonName, "playground development");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    within(&mut params, now);
    Ok(params)
}

fn within(params: &mut CertificateParams, now: Duration) {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    // The other machine's clock may be late.
    params.not_before = epoch + now.saturating_sub(Duration::from_secs(3600));
    params.not_after = epoch + now + LIFETIME;
}

impl Name {
    fn subtree(&self) -> GeneralSubtree {
        match self {
            Self::Address(address) => {
                let whole = if address.is_ipv4() { 32 } else { 128 };
                GeneralSubtree::IpAddress(CidrSubnet::from_addr_prefix(*address, whole))
            }
            Self::Host(host) => GeneralSubtree::DnsName(host.strip_prefix("*.").unwrap_or(host).to_owned()),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Host(host) => f.write_str(host),
        }
    }
}

/// Clients refuse more than 398 days from an authority that they ship with; a year is what people remember.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rcgen::KeyPair;
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::crypto::aws_lc_rs::default_provider;
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

    use super::{LIFETIME, Name, authority, leaf};

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn names(texts: &[&str]) -> Vec<Name> {
        texts.iter().map(|text| text.parse().expect(text)).collect()
    }

    /// Whether a client that trusts an authority for `known` takes its certificate of `signed` at a time as `asked`.
    fn takes(known: &[&str], signed: &[&str], asked: &str, at: Duration) -> bool {
        let authority = authority(&names(known), NOW).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let params = leaf(&names(signed), NOW).expect("names");
        let certificate = params.signed_by(&key, &authority).expect("signed");
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(authority.der().to_vec())).expect("a root");
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build().expect("roots");
        let name = ServerName::try_from(asked).expect("a name");
        verifier.verify_server_cert(certificate.der(), &[], &name, &[], UnixTime::since_unix_epoch(at)).is_ok()
    }

    #[test]
    fn a_client_that_trusts_the_authority_takes_each_name_and_no_other() {
        let ours = ["localhost", "127.0.0.1", "::1", "*.box.test"];
        for asked in ["localhost", "127.0.0.1", "::1", "a.box.test"] {
            assert!(takes(&ours, &ours, asked, NOW), "{asked}");
        }
        for asked in ["example.org", "127.0.0.2", "box.test", "a.b.box.test"] {
            assert!(!takes(&ours, &ours, asked, NOW), "{asked}");
        }
    }

    #[test]
    fn the_authority_is_good_for_those_names_alone() {
        for (other, asked) in [("example.org", "example.org"), ("10.0.0.1", "10.0.0.1")] {
            assert!(takes(&["localhost", "127.0.0.1", other], &[other], asked, NOW), "{other} is one of its names");
            assert!(!takes(&["localhost", "127.0.0.1"], &[other], asked, NOW), "{other} is none of its names");
        }
    }

    #[test]
    fn it_ends_after_a_year() {
        let last = NOW + LIFETIME;
        assert!(takes(&["localhost"], &["localhost"], "localhost", last - Duration::from_secs(1)));
        assert!(!takes(&["localhost"], &["localhost"], "localhost", last + Duration::from_secs(1)));
    }

    #[test]
    fn a_name_has_no_port_and_no_scheme() {
        for bad in ["", "a:1", "[::1]", "https://a", "a b", "*", "*.", "a/b", "a.*.test"] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
        assert_eq!(names(&["BOX.test"]), [Name::Host("box.test".to_owned())]);
    }
}
