//! Commands and file calls: which may run, what they wrote, how they ended.
//!
//! One kernel for all of them. [`table`] decides what is admitted and kept, [`output`] keeps what was written; both are
//! pure. [`driver`] owns them and moves each job through its life.

pub(crate) mod driver;
pub(crate) mod output;
mod pipes;
pub(crate) mod table;
