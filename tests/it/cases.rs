//! What other servers' users had to report, tried on this one: each a sentence that must be true.

mod endings;
mod streams;
mod tenancy;
