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
    let columns = row.columns().into_iter().map(|column| column.map_or_else(|| "-".to_owned(), |text| shown(&text)));
    columns.collect::<Vec<_>>().join("\t")
}

/// A text as a terminal shows it in the order in which it stands, whatever a client has put into it.
pub(super) fn shown(text: &str) -> String {
    let is_unseen = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
            || ('\u{200b}'..='\u{200f}').contains(&letter)
            || ('\u{2028}'..='\u{202e}').contains(&letter)
            || ('\u{2060}'..='\u{206f}').contains(&letter)
            || ('\u{e0000}'..='\u{e007f}').contains(&letter)
    };
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_unseen(letter) { plain.extend(letter.escape_unicode()) } else { plain.push(letter) }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_turns_or_hides_a_text_is_spelled() {
        assert_eq!(shown("Ünïcode `a` 'b'"), "Ünïcode `a` 'b'");
        assert_eq!(shown("a\u{202e}b\u{200b}c\td"), "a\\u{202e}b\\u{200b}c\\u{9}d");
    }
}
