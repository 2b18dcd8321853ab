//! Where a `playground.toml` names other files.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config::Places;
use crate::worker::entry::place;

/// Each path that it says, as it says it.
pub(super) fn read(file: &DeTable<'_>, text: &str) -> Places {
    let mut places = Places::default();
    table(file, &mut |path, at| places.add(path, place(text, at)));
    places
}

fn table(table: &DeTable<'_>, found: &mut impl FnMut(PathBuf, usize)) {
    for (name, said) in table {
        let is_path = PATHS.contains(&AsRef::<str>::as_ref(name.get_ref()));
        match said.get_ref().as_str().filter(|_| is_path) {
            Some(path) => found(PathBuf::from(path), said.span().start),
            None => within(said.get_ref(), found),
        }
    }
}

fn within(value: &DeValue<'_>, found: &mut impl FnMut(PathBuf, usize)) {
    match value {
        DeValue::Table(members) => table(members, found),
        DeValue::Array(list) => list.iter().map(Spanned::get_ref).for_each(|value| within(value, found)),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {}
    }
}

/// The keys whose values are paths.
const PATHS: [&str; 8] = ["state", "tokens", "admin", "workers", "cert", "key", "client_ca", "token_file"];
