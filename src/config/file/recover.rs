//! Every fault of a file at once: what is wrong is taken out, and the rest is read again.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

/// What the file says, if all of it can be read, or each fault.
pub(super) fn read<T: for<'de> Deserialize<'de>>(mut tree: Spanned<DeTable<'_>>) -> Result<T, Vec<Error>> {
    let mut faults: Vec<Error> = Vec::new();
    let mut gone: Vec<String> = Vec::new();
    for _ in 0..MOST_FAULTS {
        let fault = match T::deserialize(Deserializer::from(tree.clone())) {
            Ok(said) if faults.is_empty() => return Ok(said),
            Ok(_) => break,
            Err(fault) => fault,
        };
        let taken = fault.span().and_then(|span| take(tree.get_mut(), span.start));
        // What is missing only because it was taken out has been told.
        if !gone.iter().any(|name| fault.message() == format!("missing field `{name}`")) {
            faults.push(fault);
        }
        match taken {
            Some(name) => gone.push(name),
            None => break,
        }
    }
    Err(faults)
}

/// Takes out the innermost member that has its name or its value there. The place of a table is that of its header, so
/// that its members lie elsewhere.
fn take(table: &mut DeTable<'_>, at: usize) -> Option<String> {
    let named = |(name, _): (&Spanned<_>, &Spanned<_>)| {
        name.span().contains(&at).then(|| AsRef::<str>::as_ref(name.get_ref()).to_owned())
    };
    let found = table.iter().find_map(named);
    if found.is_none()
        && let Some(within) = table.iter_mut().find_map(|(_, value)| take_within(value.get_mut(), at))
    {
        return Some(within);
    }
    let valued = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        value.span().contains(&at).then(|| AsRef::<str>::as_ref(name.get_ref()).to_owned())
    };
    let found = found.or_else(|| table.iter().find_map(valued))?;
    table.remove(found.as_str());
    Some(found)
}

fn take_within(value: &mut DeValue<'_>, at: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => take(table, at),
        DeValue::Array(list) => list.iter_mut().find_map(|value| take_within(value.get_mut(), at)),
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
            None
        }
    }
}

/// Whoever has more begins with these.
const MOST_FAULTS: usize = 100;
