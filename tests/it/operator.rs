//! What an operator does with a tenant, beside a running service and without one.

mod copy;
mod doctor;
mod exec;
mod full_disk;
mod ordinary_user;
mod race;
pub(crate) mod setting;
mod shell;
mod tenant;
