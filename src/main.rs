//! The command line's front door.

fn main() {}
