//! A worker's tools on a real socket and on a pipe, driven by hand-made messages.

#[cfg(test)]
mod http;
#[cfg(test)]
mod revisions;
#[cfg(test)]
mod stdio;
#[cfg(test)]
mod worker;
