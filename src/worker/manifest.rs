//! The list of native workers, in the format that the original reads.
//!
//! `{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"}]}`, strictly: unknown members
//! are refused at both levels, tenants and addresses are distinct, and every fault names its file and place. What the
//! original does not know may be added to an entry: `"path":"/mcp"` for a worker that is not at `/`, and
//! `"bridge":"modern"` for one that knows only sessions and is to have clients of the modern era too.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kit::{Secret, Tenant, TenantError};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::address::{Loopback, NotLoopback};
use super::endpoint::{Endpoint, NotEndpoint};
use super::terms::{Bridge, Terms};

/// A manifest whose token files have been read.
#[derive(Debug)]
pub struct Manifest {
    pub workers: Vec<Entry>,
}

#[derive(Debug)]
pub struct Entry {
    pub tenant: Tenant,
    pub address: Loopback,
    pub bearer: Secret,
    pub terms: Terms,
}

/// What is wrong with a manifest, and where.
#[derive(Debug, thiserror::Error)]
#[error("{}:{line}:{column}", file.display())]
pub struct ManifestError {
    file: PathBuf,
    line: usize,
    column: usize,
    #[source]
    fault: Fault,
}

#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("the manifest cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("the manifest is larger than {MOST_BYTES} bytes")]
    TooLarge,
    #[error("{0}")]
    Malformed(String),
    #[error("the manifest lists {0} workers; 1 to {MOST_WORKERS} are allowed")]
    Count(usize),
    #[error("tenant")]
    Tenant(#[source] TenantError),
    #[error("tenant `{0}` is listed twice")]
    TenantTwice(Tenant),
    #[error("address")]
    Address(#[source] NotLoopback),
    #[error("address `{0}` is listed twice; each tenant has a worker of its own")]
    AddressTwice(Loopback),
    #[error("path")]
    Path(#[source] NotEndpoint),
    #[error("token file {} cannot be read", .0.display())]
    TokenFile(PathBuf, #[source] io::Error),
    #[error("token file {} must hold {FEWEST_TOKEN_BYTES} to {MOST_TOKEN_BYTES} of A-Z a-z 0-9 - . _ ~ + / = and at most one line end", .0.display())]
    Token(PathBuf),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow)]
    workers: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    tenant: String,
    address: String,
    token_file: PathBuf,
    path: Option<String>,
    #[serde(default)]
    bridge: Bridge,
}

/// Reads a manifest and every token file it names; blocking, for the start.
///
/// # Errors
/// The first fault, with its place in the manifest.
pub fn load(file: &Path) -> Result<Manifest, ManifestError> {
    let text = read_bounded(file, MOST_BYTES)
        .map_err(|fault| at(file, (0, 0), Fault::Unreadable(fault)))?
        .ok_or_else(|| at(file, (0, 0), Fault::TooLarge))?;
    parse(file, &text, |path| read_bounded(path, MOST_TOKEN_BYTES + 2))
}

/// Parses the text of a manifest, asking `read` for each token file; `None` from it means that the file is too large.
fn parse(
    file: &Path,
    text: &str,
    read: impl Fn(&Path) -> io::Result<Option<String>>,
) -> Result<Manifest, ManifestError> {
    let malformed = |place, fault: &serde_json::Error| at(file, place, Fault::Malformed(fault.to_string()));
    let rows: File<'_> =
        serde_json::from_str(text).map_err(|fault| malformed((fault.line(), fault.column()), &fault))?;
    if rows.workers.is_empty() || rows.workers.len() > MOST_WORKERS {
        return Err(at(file, (1, 1), Fault::Count(rows.workers.len())));
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let (mut tenants, mut addresses) = (HashSet::new(), HashSet::new());
    let mut workers = Vec::with_capacity(rows.workers.len());
    for raw in rows.workers {
        let place = place_of(text, raw.get());
        let fail = |fault| at(file, place, fault);
        let row: Row = serde_json::from_str(raw.get()).map_err(|fault| malformed(place, &fault))?;
        let tenant = Tenant::parse(&row.tenant).map_err(|fault| fail(Fault::Tenant(fault)))?;
        let address = Loopback::parse(&row.address).map_err(|fault| fail(Fault::Address(fault)))?;
        if !tenants.insert(tenant.clone()) {
            return Err(fail(Fault::TenantTwice(tenant)));
        }
        if !addresses.insert(address) {
            return Err(fail(Fault::AddressTwice(address)));
        }
        let path = folder.join(&row.token_file);
        let token = read(&path).map_err(|fault| fail(Fault::TokenFile(path.clone(), fault)))?;
        let bearer = token.as_deref().and_then(bearer).ok_or_else(|| fail(Fault::Token(path)))?;
        let path = row.path.as_deref().map(Endpoint::parse).transpose().map_err(|fault| fail(Fault::Path(fault)))?;
        let terms = Terms { path: path.unwrap_or_default(), bridge: row.bridge, ..Terms::default() };
        workers.push(Entry { tenant, address, bearer, terms });
    }
    Ok(Manifest { workers })
}

/// The token files that a manifest names, as far as it can be read at all; blocking.
#[must_use]
pub fn token_files(file: &Path) -> Vec<PathBuf> {
    let text = read_bounded(file, MOST_BYTES).ok().flatten().unwrap_or_default();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let folder = file.parent().unwrap_or(Path::new(""));
    let rows = read.get("workers").and_then(serde_json::Value::as_array);
    let named = rows.into_iter().flatten().filter_map(|row| row.get("token_file")?.as_str());
    named.map(|name| folder.join(name)).collect()
}

/// The bearer in a token file: the original's alphabet and lengths, with at most one line end behind it.
#[must_use]
pub fn bearer(text: &str) -> Option<Secret> {
    let token = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    let fits = (FEWEST_TOKEN_BYTES..=MOST_TOKEN_BYTES).contains(&token.len());
    (fits && token.bytes().all(allowed)).then(|| Secret::new(token))
}

fn at(file: &Path, (line, column): (usize, usize), fault: Fault) -> ManifestError {
    ManifestError { file: file.to_owned(), line, column, fault }
}

/// Line and column, counted from one, of a slice that lies inside `text`.
fn place_of(text: &str, part: &str) -> (usize, usize) {
    let offset = part.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |end| end + 1) + 1;
    (line, column)
}

fn read_bounded(path: &Path, most: usize) -> io::Result<Option<String>> {
    let mut text = String::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    fs::File::open(path)?.take(limit).read_to_string(&mut text)?;
    Ok((text.len() <= most).then_some(text))
}

/// The original's bounds.
const MOST_BYTES: usize = 1024 * 1024;
const MOST_WORKERS: usize = 1024;
const FEWEST_TOKEN_BYTES: usize = 32;
const MOST_TOKEN_BYTES: usize = 1024;

#[cfg(test)]
mod tests {
    use super::{Bridge, Fault, Manifest, ManifestError, bearer, parse};
    use std::path::Path;

    fn check(text: &str) -> Result<Manifest, ManifestError> {
        parse(Path::new("/etc/w/workers.json"), text, |path| {
            assert!(path.starts_with("/etc/w") || path == Path::new("/keys/a.key"), "{}", path.display());
            Ok(Some("k".repeat(32)))
        })
    }

    #[test]
    fn the_originals_manifest_is_read() {
        let text = r#"{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"},
                       {"tenant":"Bob B","address":"[::1]:8401","token_file":"/keys/a.key"}]}"#;
        let manifest = check(text).expect("a manifest");
        assert_eq!(manifest.workers.len(), 2);
        assert_eq!(manifest.workers[1].tenant.as_str(), "Bob B");
    }

    #[test]
    fn a_worker_that_is_elsewhere_than_the_originals_says_at_which_path() {
        let row = |path: &str| {
            check(&format!(r#"{{"workers":[{{"tenant":"a","address":"127.0.0.1:1","token_file":"k"{path}}}]}}"#))
        };
        let uri = |manifest: Manifest| manifest.workers[0].terms.path.uri();
        assert_eq!(uri(row("").expect("a manifest")), "/");
        assert_eq!(uri(row(r#","path":"/mcp""#).expect("a manifest")), "/mcp");
        assert!(matches!(row(r#","path":"mcp""#).expect_err("no path").fault, Fault::Path(_)));
    }

    #[test]
    fn a_worker_is_bridged_only_where_its_entry_says_so() {
        let row = |bridge: &str| {
            check(&format!(r#"{{"workers":[{{"tenant":"a","address":"127.0.0.1:1","token_file":"k"{bridge}}}]}}"#))
        };
        let terms = |manifest: Manifest| manifest.workers[0].terms.bridge;
        assert_eq!(terms(row("").expect("a manifest")), Bridge::Refuse);
        assert_eq!(terms(row(r#","bridge":"refuse""#).expect("a manifest")), Bridge::Refuse);
        assert_eq!(terms(row(r#","bridge":"modern""#).expect("a manifest")), Bridge::Modern);
        assert!(row(r#","bridge":"legacy""#).is_err());
    }

    #[test]
    fn a_fault_names_its_file_and_place() {
        let row = r#"{"tenant":"a","address":"127.0.0.1:1","token_file":"k"}"#;
        let text = format!("{{\"workers\":[\n  {row},\n  {row}]}}");
        let fault = check(&text).expect_err("a tenant listed twice");
        assert_eq!(fault.to_string(), "/etc/w/workers.json:3:3");
        assert!(matches!(fault.fault, Fault::TenantTwice(_)));
    }

    #[test]
    fn what_the_original_refuses_is_refused() {
        for bad in [
            r#"{"workers":[]}"#,
            r#"{"workers":[{"tenant":"a","address":"127.0.0.1:1","token_file":"k","x":1}]}"#,
            r#"{"workers":[{"tenant":"a","address":"127.0.0.1:1","token_file":"k"}],"x":1}"#,
            r#"{"workers":[{"tenant":"","address":"127.0.0.1:1","token_file":"k"}]}"#,
            r#"{"workers":[{"tenant":"a","address":"10.0.0.1:1","token_file":"k"}]}"#,
            r#"{"workers":[{"tenant":"a","address":"127.0.0.1:0","token_file":"k"}]}"#,
            r#"{"workers":[{"tenant":"a","address":"localhost:1","token_file":"k"}]}"#,
            r#"{"workers":[{"tenant":"a","address":"127.0.0.1:1","token_file":"k"},{"tenant":"b","address":"127.0.0.1:1","token_file":"k"}]}"#,
            "[]",
            "",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_to_1024_workers_are_allowed() {
        let rows = |count: usize| {
            let rows: Vec<_> = (1..=count)
                .map(|n| format!(r#"{{"tenant":"t{n}","address":"127.0.0.1:{n}","token_file":"k"}}"#))
                .collect();
            format!(r#"{{"workers":[{}]}}"#, rows.join(","))
        };
        assert!(check(&rows(1024)).is_ok());
        assert!(matches!(check(&rows(1025)).expect_err("too many").fault, Fault::Count(1025)));
    }

    #[test]
    fn a_bearer_has_32_to_1024_characters_and_at_most_one_line_end() {
        for good in
            ["k".repeat(32), "k".repeat(1024), format!("{}\n", "k".repeat(32)), format!("{}\r\n", "k".repeat(32))]
        {
            assert!(bearer(&good).is_some(), "{good:?}");
        }
        for bad in ["k".repeat(31), "k".repeat(1025), format!("{}\n\n", "k".repeat(32)), format!("{} ", "k".repeat(32))]
        {
            assert!(bearer(&bad).is_none(), "{bad:?}");
        }
    }
}
