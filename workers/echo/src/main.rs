//! The example worker to copy.

fn main() {}
