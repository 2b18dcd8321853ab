//! What stands for the proxy in a build that has none.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use kit::Tenant;

use crate::settings::Egress;

/// There is nothing to share.
#[derive(Default)]
pub(in crate::backend::linux) struct Outside;

/// There is none.
pub(in crate::backend::linux) enum Gate {}

impl Gate {
    /// No proxy for a tenant that needs none; a fault for one that would be cut off without saying so.
    pub(in crate::backend::linux) fn of(_: Tenant, egress: &Egress, _: Arc<Outside>) -> io::Result<Option<Arc<Self>>> {
        match egress {
            Egress::None => Ok(None),
            Egress::Open | Egress::Only(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this program was built without the proxy; build it with its default features, or set egress to none",
            )),
        }
    }

    pub(in crate::backend::linux) async fn serve(self: Arc<Self>, _: Vec<OwnedFd>) {
        match *self {}
    }
}
