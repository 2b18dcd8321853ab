//! The native workers of a `playground.toml`, each part with its place.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::worker::entry::{Dialect, Entries, Entry, EntryFault, Found, Limits, Member, Node, Value};

/// What a file says of native workers.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) entries: Vec<Entry>,
    /// What counts where an entry says nothing.
    pub(super) limits: Limits,
}

/// Reads each `[[worker]]` and `[limits.worker]`.
pub(super) fn read(file: &DeTable<'_>) -> (Said, Vec<Found>) {
    let mut reader = Entries::new(Dialect::Toml);
    let mut said = Said::default();
    if let Some(workers) = file.get("worker") {
        match node(workers).value {
            Value::List(list) => said.entries = list.iter().filter_map(|node| reader.read(node)).collect(),
            Value::Table(_) | Value::Text(_) | Value::Flag(_) | Value::Whole(_) | Value::Other => {
                reader.fault(workers.span().start, EntryFault::Kind { name: "worker", wanted: "a table [[worker]]" });
            }
        }
    }
    let limits = file.get("limits").and_then(|limits| limits.get_ref().as_table()?.get("worker"));
    said.limits = limits.map(|limits| reader.limits(&node(limits))).unwrap_or_default();
    (said, reader.faults)
}

fn node(said: &Spanned<DeValue<'_>>) -> Node {
    let value = match said.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Integer(number) => {
            u64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Other, Value::Whole)
        }
        DeValue::Array(list) => Value::List(list.iter().map(node).collect()),
        DeValue::Table(table) => {
            let member = |(name, said): (&Spanned<_>, &Spanned<_>)| Member {
                at: name.span().start,
                name: AsRef::<str>::as_ref(name.get_ref()).to_owned(),
                node: node(said),
            };
            Value::Table(table.iter().map(member).collect())
        }
        DeValue::Float(_) | DeValue::Datetime(_) => Value::Other,
    };
    Node { at: said.span().start, end: said.span().end, value }
}
