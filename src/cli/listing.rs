//! Lists as verbs print them: a line each with a tab between the columns, or one JSON object.

use kit::Tenant;
use serde_json::{Value, json};

use super::say;

/// What can be a line of a list.
pub(super) trait Row {
    /// What a person reads, nothing where there is nothing to say. The order is the documentation's.
    fn columns(&self) -> Vec<Option<String>>;

    /// What a program reads.
    fn object(&self) -> Value;
}

/// Prints all of them under this name.
pub(super) fn print(name: &str, rows: &[impl Row], for_programs: bool) {
    if for_programs {
        let rows: Vec<Value> = rows.iter().map(Row::object).collect();
        return say::data(&json!({ "v": 1, name: rows }).to_string());
    }
    for row in rows {
        say::data(&line(row));
    }
}

/// One of them, as a person reads it.
pub(super) fn line(row: &impl Row) -> String {
    let columns = row.columns().into_iter().map(|column| column.unwrap_or_else(|| "-".to_owned()));
    columns.collect::<Vec<_>>().join("\t")
}

/// Whether something of `tenant` is asked for.
pub(super) fn is_meant(wanted: Option<&Tenant>, tenant: &Tenant) -> bool {
    wanted.is_none_or(|wanted| wanted == tenant)
}
