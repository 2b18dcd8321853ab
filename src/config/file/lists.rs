//! Lists of texts, of which each that is wrong is told: a deserializer would stop at the first and know only where the list
//! is.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::edge::network::Network;
use crate::spelled;

/// What was taken out of the lists.
#[derive(Debug, Default)]
pub(super) struct Wrong {
    /// Where each was, in bytes, and what is wrong with it.
    pub(super) faults: Vec<(usize, String)>,
    /// The keys of the lists that have fewer now.
    pub(super) lost: Vec<String>,
}

/// Takes out of each list what cannot stand there. What is no text is left to be told with its kind.
pub(super) fn sift(file: &mut DeTable<'_>) -> Wrong {
    let mut wrong = Wrong::default();
    for (table, key, check) in LISTS {
        let table = match table {
            None => Some(&mut *file),
            Some(name) => file
                .get_mut(name)
                .and_then(|table| if let DeValue::Table(table) = table.get_mut() { Some(table) } else { None }),
        };
        let Some(DeValue::Array(list)) = table.and_then(|table| table.get_mut(key)).map(Spanned::get_mut) else {
            continue;
        };
        let before = wrong.faults.len();
        let had = std::mem::replace(list, DeArray::new()).into_iter();
        *list = had.filter(|one| is_right(one, check, &mut wrong.faults)).collect();
        if wrong.faults.len() > before {
            wrong.lost.push(key.to_owned());
        }
    }
    wrong
}

fn is_right(one: &Spanned<DeValue<'_>>, check: Check, faults: &mut Vec<(usize, String)>) -> bool {
    let Some(Err(fault)) = one.get_ref().as_str().map(check) else { return true };
    faults.push((one.span().start, fault));
    false
}

type Check = fn(&str) -> Result<(), String>;

fn host(text: &str) -> Result<(), String> {
    spelled::host(text).map(drop).map_err(|fault| fault.to_string())
}

fn domain(text: &str) -> Result<(), String> {
    spelled::domain(text).map(drop).map_err(|fault| fault.to_string())
}

fn contact(text: &str) -> Result<(), String> {
    spelled::contact(text).map(drop).map_err(|fault| fault.to_string())
}

fn network(text: &str) -> Result<(), String> {
    text.parse::<Network>().map(drop).map_err(|fault| fault.to_string())
}

/// The table, the key, and what each entry must be.
const LISTS: [(Option<&str>, &str, Check); 5] = [
    (None, "hosts", host),
    (None, "trusted_proxies", network),
    (Some("oauth"), "bearer_hosts", host),
    (Some("acme"), "domains", domain),
    (Some("acme"), "contacts", contact),
];
