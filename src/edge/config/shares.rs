//! What a limit on all leaves to one: of the descriptors to each kind, and of the slots and bytes to each tenant.

use super::{Config, Exchanges};

impl Config {
    /// Lowers what takes descriptors until it fits into so many, and says whether it had to: a connection and an exchange
    /// take one each, and so does each connection that rests between exchanges with one of `workers`.
    ///
    /// An edge that ran out would fail in the middle of a call instead of refusing a connection.
    #[must_use]
    pub fn fit(&mut self, descriptors: u64, workers: usize) -> bool {
        let descriptors = usize::try_from(descriptors).unwrap_or(usize::MAX).saturating_sub(SLACK);
        let before = (self.connections.most, self.exchanges.most, self.answers.most_pooled);
        self.answers.most_pooled = self.answers.most_pooled.min(descriptors / PARTS / workers.max(1));
        let resting = self.answers.most_pooled.saturating_mul(workers);
        self.exchanges.most = self.exchanges.most.min((descriptors / PARTS).max(1));
        let left = descriptors.saturating_sub(resting).saturating_sub(self.exchanges.most);
        self.connections.most = self.connections.most.min(left.max(1));
        before != (self.connections.most, self.exchanges.most, self.answers.most_pooled)
    }
}

impl Exchanges {
    /// What one tenant may hold.
    pub(crate) fn slots_per_tenant(&self) -> usize {
        self.most_per_tenant.min((self.most / PARTS).max(1))
    }

    /// Slots for whoever holds some already. The rest is kept for first ones: as many tenants as are kept slots always
    /// get one each, whatever the others hold. Beyond so many at once, a first one is refused only when all are taken.
    pub(crate) fn common_slots(&self) -> usize {
        self.most.saturating_sub((self.most / PARTS).max(1))
    }

    /// Bytes of one tenant's bodies, so that no tenant alone keeps the others out; a whole body always fits.
    pub(crate) fn most_body_bytes_per_tenant(&self, whole_body: usize) -> usize {
        (self.most_body_bytes / PARTS).max(whole_body)
    }

    /// Bytes for whoever holds some already. The rest is kept for a tenant's only body, and takes at least one whole.
    pub(crate) fn common_body_bytes(&self, whole_body: usize) -> usize {
        self.most_body_bytes.saturating_sub((self.most_body_bytes / PARTS).max(whole_body))
    }
}

/// One tenant's share of the byte budget is one such part of the whole, and so is what is kept for first comers: of
/// the default 256 MiB these are eight whole bodies each, and three tenants fit between before the last part is touched.
const PARTS: usize = 4;

/// Descriptors for what is neither connection nor exchange: listeners, the runtime, the store, the log, the control socket.
const SLACK: usize = 64;
