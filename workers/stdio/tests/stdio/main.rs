//! The bridge, driven as the edge drives it: a loopback socket before it, real processes behind it.

#[cfg(test)]
mod limits;
#[cfg(test)]
mod modern;
#[cfg(test)]
mod processes;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod world;
