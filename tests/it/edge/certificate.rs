//! A certificate for `edge.example`, or other names, that lives as long as its test: no key lies in the tree.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Signed by itself, valid for as long as a test could care.
    pub(crate) fn new() -> Self {
        Self::of(&["edge.example"])
    }

    /// The same for these names.
    pub(crate) fn of(names: &[&str]) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref()).unwrap();
        let algorithm = sequence(&[&value(OID, ECDSA_SHA256)]);
        let name = sequence(&[&value(SET, &sequence(&[&value(OID, COMMON_NAME), &value(UTF8, b"edge.example")]))]);
        let times = sequence(&[&value(UTC_TIME, b"200101000000Z"), &value(UTC_TIME, b"491231235959Z")]);
        let point = [&[0], pair.public_key().as_ref()].concat();
        let kind = sequence(&[&value(OID, EC_KEY), &value(OID, P256)]);
        let names: Vec<_> = names.iter().map(|name| value(DNS_NAME, name.as_bytes())).collect();
        let names = sequence(&names.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let alternative = sequence(&[&sequence(&[&value(OID, ALTERNATIVE_NAME), &value(OCTETS, &names)])]);
        let body = sequence(&[
            &value(CONTEXT_0, &value(INTEGER, &[2])),
            &value(INTEGER, &[1]),
            &algorithm,
            &name,
            &times,
            &name,
            &sequence(&[&kind, &value(BITS, &point)]),
            &value(CONTEXT_3, &alternative),
        ]);
        let signature = pair.sign(&random, &body).unwrap();
        let signature = [&[0], signature.as_ref()].concat();
        Self { der: sequence(&[&body, &algorithm, &value(BITS, &signature)]), key: key.as_ref().to_vec() }
    }

    pub(crate) fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }

    pub(crate) fn key_der(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn key_pem(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    value(SEQUENCE, &parts.concat())
}

/// One DER value: tag, length, content.
fn value(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let length = match u8::try_from(length) {
        Ok(short) if short < 128 => vec![short],
        Ok(long) => vec![0x81, long],
        Err(_) => [&[0x82], &u16::try_from(length).unwrap().to_be_bytes()[..]].concat(),
    };
    [&[tag], &length[..], content].concat()
}

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 2;
const BITS: u8 = 3;
const OCTETS: u8 = 4;
const OID: u8 = 6;
const UTF8: u8 = 12;
const UTC_TIME: u8 = 23;
const DNS_NAME: u8 = 0x82;
const CONTEXT_0: u8 = 0xa0;
const CONTEXT_3: u8 = 0xa3;
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
