//! The tables that say which test proves what are true: every test that they name exists, and no row is missing.
//!
//! A row is `| id | what | test(s) | result |`. A test stands in backticks, as
//!
//! - `edge::cases::a_name` for one of this folder, by its module,
//! - `kit::durable::tests::a_name` for one within a crate,
//! - `sandbox linux::a_module::a_name` for one of a crate's test program,
//! - `conformance: a-scenario` for a scenario that the conformance run demands,
//! - `tests/e2e/flows: "words"` for a check of a script, by the words that it prints.
//!
//! A row without a test says in its result why it has none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// `(table, letters, numbers)`: the ids that must each have one row there, no more and no fewer of these letters.
const LISTS: &[(&str, &str, &[std::ops::RangeInclusive<usize>])] = &[
    ("tests/conformance/README.md", "HL", &[1..=31]),
    ("tests/conformance/README.md", "HM", &[1..=28]),
    ("tests/conformance/README.md", "PT", &[1..=10]),
    ("tests/conformance/README.md", "TX", &[1..=10]),
    ("tests/conformance/README.md", "GW", &[1..=16]),
    ("tests/conformance/README.md", "RS", &[1..=15]),
    ("tests/conformance/README.md", "AS", &[1..=10]),
    ("tests/it/README.md", "B", &[1..=35]),
    // With gaps, as the cases have.
    ("tests/it/README.md", "E", &[1..=2, 4..=5, 7..=8, 10..=11, 13..=14, 16..=17, 19..=20, 22..=23, 25..=26]),
    ("tests/it/README.md", "L", &[1..=2, 4..=5, 7..=7, 13..=13, 16..=16, 19..=20, 22..=23, 25..=26]),
    ("tests/it/README.md", "D", &[1..=24]),
];

/// Where the crates are whose tests can be named; the first word of a path is one of these, or a module of this folder.
const CRATES: &[(&str, &str)] = &[
    ("playground", "."),
    ("kit", "workers/kit"),
    ("sandbox", "workers/sandbox"),
    ("stdio", "workers/stdio"),
    ("echo", "workers/echo"),
];

const HERE: &str = "tests/it";
const SCENARIOS: &str = "tests/conformance/scenarios.txt";

#[test]
fn every_row_has_a_test_that_exists_or_a_reason() {
    let mut faults = Vec::new();
    for table in tables() {
        for row in rows(&read(table)) {
            if let Err(fault) = row.check(&root()) {
                faults.push(format!("{table}: {}: {fault}", row.id));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_id_has_one_row() {
    let mut faults = Vec::new();
    for (table, letters, numbers) in LISTS {
        let rows = rows(&read(table));
        let mut seen: BTreeMap<String, usize> =
            numbers.iter().cloned().flatten().map(|number| (format!("{letters}-{number}"), 0)).collect();
        for row in rows.iter().filter(|row| row.id.starts_with(&format!("{letters}-"))) {
            match seen.get_mut(&row.id) {
                Some(times) => *times += 1,
                None => faults.push(format!("{table}: {} is no id of the list", row.id)),
            }
        }
        faults.extend(
            seen.iter().filter(|(_, times)| **times != 1).map(|(id, times)| format!("{table}: {id} has {times} rows")),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_reader_tells_a_true_row_from_a_false_one() {
    let true_ones = [
        "| X-1 | this | `tables::the_reader_tells_a_true_row_from_a_false_one` | pass |",
        "| X-1 | a unit test | `playground::edge::config::tests::what_fits_stays_as_it_is`, twice | pass |",
        "| X-1 | a test program | `echo echo::it_returns_the_text_that_it_is_given` | pass |",
        "| X-1 | a script | `tests/e2e/flows: \"asks\"` | pass |",
        "| X-1 | a bar \\| within | | not offered: there is none |",
    ];
    let false_ones = [
        ("| X-1 | this | `tables::the_reader_tells_nothing` | pass |", "no test `the_reader_tells_nothing`"),
        ("| X-1 | no test but a function | `tables::rows` | pass |", "no test `rows`"),
        ("| X-1 | a part of a name | `tables::every_id_has_one` | pass |", "no test `every_id_has_one`"),
        ("| X-1 | elsewhere | `tabels::every_id_has_one_row` | pass |", "no file"),
        ("| X-1 | a script | `tests/e2e/flows: \"is said nowhere\"` | pass |", "says nowhere"),
        ("| X-1 | a scenario | `conformance: of-nobody` | pass |", "no scenario"),
        ("| X-1 | nothing | | pass |", "neither a test nor a reason"),
        ("| X-1 | nothing at all | | |", "neither a test nor a reason"),
        ("| X-1 | no result | `tables::every_id_has_one_row` | |", "no result"),
    ];
    let head = "| id | what | test(s) | result |\n|---|---|---|---|\n";
    for line in true_ones {
        let row = rows(&format!("{head}{line}\n")).pop().expect("a row is read");
        assert_eq!(row.check(&root()), Ok(()), "{line}");
    }
    for (line, told) in false_ones {
        let row = rows(&format!("{head}{line}\n")).pop().expect("a row is read");
        let fault = row.check(&root()).expect_err(line);
        assert!(fault.contains(told), "{line}: {fault}");
    }
    assert!(rows("| request | why |\n|---|---|\n| X-1 | of another table |\n").is_empty());
}

struct Row {
    id: String,
    tests: Vec<String>,
    result: String,
}

impl Row {
    fn check(&self, root: &Path) -> Result<(), String> {
        if self.result.is_empty() && !self.tests.is_empty() {
            return Err("no result".to_owned());
        }
        if self.tests.is_empty() && (self.result.is_empty() || self.result.starts_with("pass")) {
            return Err("neither a test nor a reason".to_owned());
        }
        self.tests.iter().try_for_each(|test| exists(root, test))
    }
}

fn tables() -> Vec<&'static str> {
    let mut tables: Vec<_> = LISTS.iter().map(|(table, ..)| *table).collect();
    tables.dedup();
    tables
}

/// The rows of every table whose head is `id`, `what`, `test(s)`, `result`.
fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut ours = false;
    for line in text.lines() {
        let Some(cells) = cells(line) else {
            ours = false;
            continue;
        };
        match cells.as_slice() {
            [id, what, tests, result] if [id, what, tests, result] == ["id", "what", "test(s)", "result"] => {
                ours = true
            }
            [id, _, tests, result] if ours && !id.starts_with('-') => rows.push(Row {
                id: id.clone(),
                tests: tests.split('`').skip(1).step_by(2).map(str::to_owned).collect(),
                result: result.clone(),
            }),
            cells => assert!(!ours || cells.iter().all(|cell| cell.starts_with('-')), "a row has four cells: {line}"),
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.trim().strip_prefix('|')?.strip_suffix('|')?.replace("\\|", "\u{1}");
    Some(line.split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect())
}

fn exists(root: &Path, test: &str) -> Result<(), String> {
    if let Some(scenario) = test.strip_prefix("conformance: ") {
        let list = fs::read_to_string(root.join(SCENARIOS)).unwrap_or_default();
        let listed = list.lines().any(|line| line.split_whitespace().nth(1) == Some(scenario));
        return if listed { Ok(()) } else { Err(format!("no scenario `{scenario}` in {SCENARIOS}")) };
    }
    if let Some((place, words)) = test.split_once(": ") {
        let words = words.trim_matches('"');
        let said = scripts(&root.join(place)).iter().any(|script| read_at(script).contains(words));
        return if said { Ok(()) } else { Err(format!("{place} says nowhere `{words}`")) };
    }
    let (folder, path) = folder_of(root, test)?;
    let mut modules: Vec<_> = path.split("::").collect();
    let name = modules.pop().unwrap_or_default();
    let file = file_of(&folder, &modules).ok_or_else(|| format!("no file of `{test}`"))?;
    if has_test(&read_at(&file), name) { Ok(()) } else { Err(format!("no test `{name}` in {}", file.display())) }
}

/// The folder that a path starts from, and the path from there.
fn folder_of<'a>(root: &Path, test: &'a str) -> Result<(PathBuf, &'a str), String> {
    let place = |name: &str| CRATES.iter().find(|(known, _)| *known == name).map(|(_, place)| root.join(place));
    if let Some((name, path)) = test.split_once(' ') {
        let place = place(name).ok_or_else(|| format!("no crate `{name}`"))?;
        return Ok((place.join("tests"), path));
    }
    Ok(match test.split_once("::").and_then(|(name, path)| Some((place(name)?, path))) {
        Some((place, path)) => (place.join("src"), path),
        None => (root.join(HERE), test),
    })
}

/// `a::b::c` is `a/b/c.rs`, or a program's `a/main.rs`, or `a/b.rs` with a `mod c` in it.
fn file_of(folder: &Path, modules: &[&str]) -> Option<PathBuf> {
    for length in (0..=modules.len()).rev() {
        let (outer, inner) = modules.split_at(length);
        let path: PathBuf = outer.iter().collect();
        let candidates = match length {
            0 => vec![folder.join("lib.rs"), folder.join("main.rs")],
            _ => vec![folder.join(path.with_extension("rs")), folder.join(path).join("main.rs")],
        };
        for file in candidates.into_iter().filter(|file| file.is_file()) {
            let text = read_at(&file);
            if inner.iter().all(|module| text.contains(&format!("mod {module} {{"))) {
                return Some(file);
            }
        }
    }
    None
}

/// Whether a function of that name stands below a test's attribute.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(at, line)| {
        let declared = line
            .strip_prefix("async ")
            .unwrap_or(line)
            .strip_prefix("fn ")
            .is_some_and(|rest| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with(['(', '<'])));
        let above = lines.iter().take(at).rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        declared && above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    })
}

/// A script, or those of a folder and the folders below; what is installed there is none.
fn scripts(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut found = Vec::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && name != "node_modules" {
            found.extend(scripts(&path));
        } else if name == "run" || [".mjs", ".py"].iter().any(|end| name.ends_with(end)) {
            found.push(path);
        }
    }
    found
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(table: &str) -> String {
    read_at(&root().join(table))
}

fn read_at(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}
