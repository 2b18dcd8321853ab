//! The faculties that machines find at `/opt/faculties`: programs that are built from their sources, once for each content.
//!
//! ```text
//! source ──content──> fingerprint ──in the cache?──> bundle ──mounted read-only──> a tenant's machine
//!                                  └─no─> turn ─> builder (a machine thrown away) ─> staged ─> stamp, written last ─┘
//! ```
//!
//! It promises that a bundle is used only if its stamp says that it was built of just this content, that no two processes
//! build at once, and that a builder does not outlive its build: one that a killed process left goes with the next. It does
//! not judge what is built; whoever names the source does.

mod cache;
mod error;
mod fingerprint;
mod harvest;
mod manifest;
mod output;
mod progress;
mod pruning;
pub(crate) mod recipe;
pub mod rehearsal;
mod shelf;
mod source;
mod turn;
mod workshop;

pub use self::cache::{Bundle, Cache, CacheError};
pub use self::error::BundleError;
pub use self::fingerprint::Fingerprint;
pub use self::progress::{Event, Phase, Watch};
pub use self::pruning::Pruned;
pub use self::recipe::PROGRAMS;
pub use self::shelf::{Fate, Shelved};
pub use self::source::{Bounds, Source, SourceError};
pub use self::workshop::{Workshop, fingerprint};
