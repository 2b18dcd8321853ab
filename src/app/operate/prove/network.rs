//! A tenant that was given no network has none.

use sandbox::backend::UidMap;

use super::examine::egress;
use super::{Pair, broken};
use crate::admin::words::Check;

pub(super) const NONE: &str = "prove-network-none";

pub(super) async fn tried(pair: Pair<'_>) -> Check {
    if pair.sandbox.assurances().uid_map == UidMap::Machine {
        return Check::not_tried(
            NONE,
            "a machine reaches what this host reaches, and no backend of machines says otherwise",
        );
    }
    match egress::sealed(pair.sandbox, pair.one).await {
        Ok(Some(_listener)) => {
            Check::pass(NONE, "a listener on this host's loopback is reached neither directly nor through the proxy")
        }
        Ok(None) => Check::not_tried(NONE, "there is no program inside to try it with: bash, curl or nc"),
        Err(why) => broken(NONE, why),
    }
}
