//! The names of the loopback hop between the edge and a worker: headers, and the path that is not MCP's.
//!
//! The edge removes any copy that a client sent and sets its own; a worker believes them only beside the internal
//! secret of this start, which travels as `Authorization: Bearer`.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, utf8_percent_encode};

use crate::Tenant;

/// The tenant on whose behalf the edge forwards the exchange, as [`labelled`] writes it.
pub const TENANT: &str = "x-playground-tenant";

/// The edge's reference for the exchange, so that a worker's log line and the edge's can be joined.
pub const REFERENCE: &str = "x-playground-reference";

/// Where an edge asks, with the secret and GET, whom the worker refuses everything: `{"tenants":[…]}`.
pub const BARRED: &str = "/barred";

/// A tenant as the value of its header. A header loses the spaces around it and may hold ASCII alone, so whatever else a
/// label holds is percent-encoded; the name of a new tenant stands as it is.
#[must_use]
pub fn labelled(tenant: &Tenant) -> String {
    utf8_percent_encode(tenant.as_str(), ESCAPED).to_string()
}

/// The tenant that a header's value names; none when it names none.
#[must_use]
pub fn tenant(value: &[u8]) -> Option<Tenant> {
    Tenant::parse(&percent_decode(value).decode_utf8().ok()?).ok()
}

const ESCAPED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{labelled, tenant};
    use crate::Tenant;

    #[test]
    fn a_new_tenants_name_stands_as_it_is() {
        assert_eq!(labelled(&Tenant::parse_new("team-7").unwrap()), "team-7");
    }

    #[test]
    fn a_value_that_names_nobody_is_none() {
        for nobody in [&b""[..], b"%ff", b"a%0ab", b"a\xff", &[b'x'; 201]] {
            assert_eq!(tenant(nobody), None, "{nobody:?}");
        }
    }

    proptest! {
        #[test]
        fn every_label_crosses_whole(label in "[ %a-cA\u{a0}-\u{ff}ａ\u{200b}\u{2003}]{1,20}|\\PC{1,40}") {
            let sent = Tenant::parse(&label).unwrap();
            let value = labelled(&sent);
            // What reads a header takes the space around its value away.
            prop_assert!(value.bytes().all(|byte| byte.is_ascii_graphic()), "{value}");
            prop_assert_eq!(tenant(value.as_bytes()), Some(sent));
        }
    }
}
