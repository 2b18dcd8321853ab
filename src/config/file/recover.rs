//! Every fault of a file at once: what is wrong is taken out, and the rest is read again.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue, Deserializer, Error};

/// What could be read.
#[derive(Debug)]
pub(super) struct Rest<T> {
    /// Without what is wrong; none where that leaves nothing.
    pub(super) said: Option<T>,
    pub(super) faults: Vec<Error>,
    /// The keys of what was taken out.
    pub(super) lost: Vec<String>,
}

/// What the file says, and each fault.
pub(super) fn read<T: for<'de> Deserialize<'de>>(mut tree: Spanned<DeTable<'_>>) -> Rest<T> {
    let (mut faults, mut lost) = (Vec::new(), Vec::<String>::new());
    for _ in 0..MOST_FAULTS {
        let fault: Error = match T::deserialize(Deserializer::from(tree.clone())) {
            Ok(said) => return Rest { said: Some(said), faults, lost },
            Err(fault) => fault,
        };
        let taken = fault.span().and_then(|span| take(tree.get_mut(), span.start));
        // What is missing only because it was taken out has been told.
        if !lost.iter().any(|name| fault.message() == format!("missing field `{name}`")) {
            faults.push(fault);
        }
        match taken {
            Some(name) => lost.push(name),
            None => break,
        }
    }
    Rest { said: None, faults, lost }
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
    // Of a list the one that is wrong goes alone, so that the others are looked at too.
    let is_less = table.get_mut(found.as_str()).is_some_and(|value| take_one(value.get_mut(), at));
    if !is_less {
        table.remove(found.as_str());
    }
    Some(found)
}

fn take_one(value: &mut DeValue<'_>, at: usize) -> bool {
    let DeValue::Array(list) = value else { return false };
    let before = list.len();
    *list = std::mem::replace(list, DeArray::new()).into_iter().filter(|one| !one.span().contains(&at)).collect();
    list.len() < before
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
