//! The bridge, driven as the edge drives it: a loopback socket before it, real processes behind it.

#[cfg(test)]
mod bridge;
