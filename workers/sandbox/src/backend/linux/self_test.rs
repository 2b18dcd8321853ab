//! The last step of each making: what must not be possible is tried from inside.

use std::fs::{self, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kit::Tenant;

use super::first_process::users;
use super::layout::{Files, Home, Meta, Pile, Stage, step};
use super::live::{Answer, Live};
use super::slot::Slot;
use super::wire::{Order, PILE_FOLDER, SHARED_FOLDER, SelfTest};
use super::{Inner, pile};
use crate::backend::BackendError;
use crate::settings::Size;

impl Inner {
    /// Starts a sandbox, tries it and ends it again.
    pub(super) async fn test_from_inside(
        self: &Arc<Self>,
        tenant: &Tenant,
        home: &Home,
        meta: &Meta,
        slot: &Slot,
    ) -> Result<(), BackendError> {
        let (this, place, remembered) = (Arc::clone(self), home.clone(), meta.clone());
        let bait = tokio::task::spawn_blocking(move || Bait::lay(&this, &place, &remembered)).await;
        let bait = bait.map_err(|fault| step("prepare the self-test")(io::Error::other(fault)))??;
        let live = self.launch(tenant, slot, Stage::Making).await?;
        let answer = self.ask_for_test(&live, &bait, meta).await;
        live.end().await?;
        slot.settle().await?;
        let mut faults = answer?;
        if bait.was_taken() {
            faults.push("the host was reached from inside".to_owned());
        }
        if faults.is_empty() { Ok(()) } else { Err(BackendError::SelfTest(faults.join("; "))) }
    }

    async fn ask_for_test(&self, live: &Live, bait: &Bait, meta: &Meta) -> Result<Vec<String>, BackendError> {
        let id = live.number();
        let disk = match meta.files {
            Files::Image => meta.settings.disk.map(Size::bytes),
            Files::Folder => None,
        };
        let test = SelfTest {
            id,
            twins: bait.twins.iter().map(|twin| twin.inside.clone()).collect(),
            listeners: bait.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect(),
            canary: bait.canary.clone(),
            system: SYSTEM.to_owned(),
            disk,
            #[cfg(feature = "test-door")]
            broken: self.door.broken,
        };
        #[cfg(feature = "test-door")]
        let test = broken(test);
        let asked = tokio::time::timeout(live.deadline, live.ask(id, &Order::SelfTest(Box::new(test)), &[])).await;
        match asked {
            Ok(Ok(Answer::SelfTested(faults))) => Ok(faults),
            Ok(Ok(_)) => Err(BackendError::SelfTest("it ended without an answer".to_owned())),
            Ok(Err(fault)) => Err(fault),
            Err(_elapsed) => Err(BackendError::SelfTest("it did not end".to_owned())),
        }
    }
}

/// What is laid out on the host for the test, and gone when this is.
struct Bait {
    twins: Vec<Twin>,
    canary: PathBuf,
    listeners: Vec<TcpListener>,
}

/// A file beside a pile, made as the pile is, since nothing that is appended to a pile can be taken back.
struct Twin {
    outside: PathBuf,
    inside: String,
}

impl Bait {
    fn lay(inner: &Inner, home: &Home, meta: &Meta) -> Result<Self, BackendError> {
        let preparing = || step("prepare the self-test");
        let canary = std::path::absolute(home.folder()).map_err(preparing())?.join(CANARY);
        let mut bait = Self { twins: Vec::new(), canary, listeners: Vec::new() };
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o644)
            .open(&bait.canary)
            .map_err(preparing())?;
        for address in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
            // A host without one of the two kinds has nothing to reach there.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            listener.set_nonblocking(true).map_err(preparing())?;
            bait.listeners.push(listener);
        }
        if bait.listeners.is_empty() {
            return Err(preparing()(io::Error::other("nothing can listen on this host's loopback")));
        }
        let users = users(inner.ids, meta)?;
        #[cfg(feature = "test-door")]
        let enforced = inner.door.broken != Some(super::wire::Check::Pile);
        #[cfg(not(feature = "test-door"))]
        let enforced = true;
        if meta.pile == Pile::Enforced {
            let twin = bait.twin(&home.pile(), PILE_FOLDER, pile::TWIN);
            pile::remove(&twin).and_then(|()| pile::file(&twin, users, 0o644, enforced)).map_err(preparing())?;
        }
        if meta.settings.over(&inner.config.common).shared_pile && inner.shared_is_enforced() {
            let name = format!("{}-{}", pile::TWIN, home.tenant());
            let twin = bait.twin(&inner.layout.shared(), SHARED_FOLDER, &name);
            pile::remove(&twin).and_then(|()| pile::shared_file(&twin, enforced)).map_err(preparing())?;
        }
        Ok(bait)
    }

    fn twin(&mut self, folder: &Path, inside: &str, name: &str) -> PathBuf {
        let outside = folder.join(name);
        self.twins.push(Twin { outside: outside.clone(), inside: format!("{inside}/{name}") });
        outside
    }

    /// Whether anybody connected.
    fn was_taken(&self) -> bool {
        self.listeners.iter().any(|listener| listener.accept().is_ok())
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let twins = self.twins.iter().map(|twin| pile::remove(&twin.outside));
        for removed in twins.chain([fs::remove_file(&self.canary)]) {
            if let Err(fault) = removed {
                tracing::warn!(%fault, "what the self-test needed cannot be removed");
            }
        }
    }
}

/// Asks for what must go wrong.
#[cfg(feature = "test-door")]
fn broken(mut test: SelfTest) -> SelfTest {
    use super::wire::Check;
    match test.broken {
        Some(Check::Canary) => test.canary = PathBuf::from("/etc/passwd"),
        Some(Check::System) => test.system = "/tmp/f".to_owned(),
        Some(Check::Disk) => test.disk = Some(1),
        Some(Check::Pile | Check::Host | Check::Capabilities) | None => {}
    }
    test
}

/// A file that nobody has, in a folder that only the host may write.
const SYSTEM: &str = "/usr/.self-test";

const CANARY: &str = ".self-test";
