//! What stands behind the edge: the children this program starts, and how they are kept alive.

pub mod child;
pub mod handoff;
pub mod restart;
