//! Lists as verbs print them: a line each with a tab between the columns, or one JSON object.

use clap::Args;
use kit::Tenant;
use serde_json::{Value, json};

use super::say;

/// How a list is wanted, and where to look for it.
#[derive(Debug, Args)]
pub(super) struct Listing<P: Args> {
    /// Print one JSON object.
    #[arg(long)]
    pub(super) json: bool,

    #[command(flatten)]
    pub(super) place: P,
}

/// The same of what belongs to tenants.
#[derive(Debug, Args)]
pub(super) struct OfTenant<P: Args> {
    /// Only this tenant's.
    #[arg(long, value_parser = Tenant::parse)]
    tenant: Option<Tenant>,

    #[command(flatten)]
    pub(super) listing: Listing<P>,
}

impl<P: Args> Listing<P> {
    /// Prints all of them under this name.
    pub(super) fn print(&self, name: &str, rows: &[impl Row]) {
        print(name, rows, self.json);
    }
}

impl<P: Args> OfTenant<P> {
    /// Whether something of this tenant is asked for.
    pub(super) fn means(&self, tenant: &Tenant) -> bool {
        self.tenant.as_ref().is_none_or(|wanted| wanted == tenant)
    }

    /// The tenant that is asked for, in a line that says what to type.
    pub(super) fn whose(&self) -> &str {
        self.tenant.as_ref().map_or("TENANT", Tenant::as_str)
    }
}

/// What can be a line of a list.
pub(super) trait Row {
    /// What a person reads, nothing where there is nothing to say. The order is the documentation's.
    fn columns(&self) -> Vec<Option<String>>;

    /// What a program reads.
    fn object(&self) -> Value;
}

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
