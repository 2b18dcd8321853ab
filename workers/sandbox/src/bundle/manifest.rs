//! What else of this host a package's build reads, by what its manifest says.

use std::path::{Component, Path, PathBuf};

use toml::{Table, Value};

/// The paths that a `Cargo.toml` names, relative to where it lies. What only tests need is not among them.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// Of path dependencies, patches and replacements, for every target and for the whole workspace, and of sources that lie
    /// elsewhere.
    pub(super) needed: Vec<PathBuf>,
    /// Of the members of its workspace.
    pub(super) members: Vec<PathBuf>,
}

/// What a manifest names.
///
/// # Errors
/// When the text is no TOML.
pub(super) fn read(text: &str) -> Result<Named, toml::de::Error> {
    let manifest: Table = toml::from_str(text)?;
    let (mut paths, mut members) = (Vec::new(), Vec::new());
    dependencies(&manifest, &mut paths);
    for target in tables(&manifest, "target") {
        dependencies(target, &mut paths);
    }
    if let Some(workspace) = table(&manifest, "workspace") {
        dependencies(workspace, &mut paths);
        let patterns = workspace.get("members").and_then(Value::as_array).into_iter().flatten();
        members.extend(patterns.filter_map(Value::as_str).map(fixed));
    }
    for patched in tables(&manifest, "patch") {
        paths.extend(named(patched));
    }
    paths.extend(table(&manifest, "replace").into_iter().flat_map(named));
    if let Some(package) = table(&manifest, "package") {
        paths.extend(text_of(package, "build"));
        // The manifests of the folders above count anyway, and the rest of those does not.
        let is_above = |path: &Path| path.components().all(|part| part == Component::ParentDir);
        paths.extend(text_of(package, "workspace").filter(|path| !is_above(path)));
    }
    paths.extend(table(&manifest, "lib").and_then(|library| text_of(library, "path")));
    let programs = manifest.get("bin").and_then(Value::as_array).into_iter().flatten();
    paths.extend(programs.filter_map(Value::as_table).filter_map(|program| text_of(program, "path")));
    Ok(Named { needed: paths, members })
}

/// The paths that a `.cargo/config.toml` names, relative to the folder that `.cargo` lies in. What is no TOML names none:
/// cargo itself says what is wrong with it.
pub(super) fn configured(text: &str) -> Vec<PathBuf> {
    let Ok(config) = toml::from_str::<Table>(text) else { return Vec::new() };
    let overrides = config.get("paths").and_then(Value::as_array).into_iter().flatten();
    let mut paths: Vec<_> = overrides.filter_map(Value::as_str).map(PathBuf::from).collect();
    for patched in tables(&config, "patch") {
        paths.extend(named(patched));
    }
    for source in tables(&config, "source") {
        paths.extend(["directory", "local-registry"].into_iter().filter_map(|key| text_of(source, key)));
    }
    paths
}

fn dependencies(of: &Table, paths: &mut Vec<PathBuf>) {
    for key in ["dependencies", "build-dependencies", "build_dependencies"] {
        paths.extend(table(of, key).into_iter().flat_map(named));
    }
}

/// The `path` of each entry that has one.
fn named(table: &Table) -> impl Iterator<Item = PathBuf> {
    table.values().filter_map(Value::as_table).filter_map(|entry| text_of(entry, "path"))
}

fn table<'a>(of: &'a Table, key: &str) -> Option<&'a Table> {
    of.get(key).and_then(Value::as_table)
}

fn tables<'a>(of: &'a Table, key: &str) -> impl Iterator<Item = &'a Table> {
    table(of, key).into_iter().flat_map(Table::values).filter_map(Value::as_table)
}

fn text_of(of: &Table, key: &str) -> Option<PathBuf> {
    of.get(key).and_then(Value::as_str).map(PathBuf::from)
}

/// The part of a member's pattern that is no pattern: the folder that all it means lie in.
fn fixed(pattern: &str) -> PathBuf {
    let is_plain = |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    Path::new(pattern).components().take_while(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::{configured, read};

    fn check(manifest: &str, expected: &[&str]) {
        let named = read(manifest).unwrap();
        let mut found: Vec<_> =
            named.needed.iter().chain(&named.members).map(|path| path.display().to_string()).collect();
        found.sort();
        assert_eq!(found, expected, "{manifest}");
    }

    #[test]
    fn every_place_that_can_name_a_path_is_read() {
        check(
            "[dependencies]\na = { path = \"../a\" }\nb = \"1\"\nc = { version = \"1\", path = \"c\" }\n",
            &["../a", "c"],
        );
        check("[dependencies.a]\npath = \"../a\"\noptional = true\n", &["../a"]);
        check("[build-dependencies]\na.path = \"../a\"\n", &["../a"]);
        check("[target.'cfg(unix)'.dependencies]\na.path = \"../a\"\n", &["../a"]);
        check("[target.x86_64-unknown-linux-gnu.build-dependencies]\na.path = \"../a\"\n", &["../a"]);
        check("[workspace.dependencies]\na.path = \"../a\"\n", &["../a"]);
        check("[patch.crates-io]\na.path = \"../a\"\n[patch.'https://x/y']\nb.path = \"../b\"\n", &["../a", "../b"]);
        check("[replace]\n'a:1.0.0' = { path = \"../a\" }\n", &["../a"]);
        check("[workspace]\nmembers = [\"a\", \"../b/*\", \"c/**\", \"d-[xy]/e\"]\n", &["", "../b", "a", "c"]);
        check("[package]\nworkspace = \"../..\"\nbuild = \"../build.rs\"\n", &["../build.rs"]);
        check("[package]\nworkspace = \"../root\"\n", &["../root"]);
        check(
            "[package]\nbuild = false\n[lib]\npath = \"../l.rs\"\n[[bin]]\npath = \"../b.rs\"\n",
            &["../b.rs", "../l.rs"],
        );
    }

    #[test]
    fn what_only_tests_need_is_left_out() {
        check("[dev-dependencies]\na.path = \"../a\"\n[target.'cfg(unix)'.dev-dependencies]\na.path = \"../a\"\n", &[]);
    }

    #[test]
    fn what_is_no_manifest_says_where() {
        let fault = read("[package]\nname = = 1\n").unwrap_err().to_string();
        assert!(fault.contains("line 2"), "{fault}");
    }

    #[test]
    fn a_configuration_can_name_places_too() {
        let text = "paths = [\"../a\"]\n[patch.crates-io]\nb.path = \"../b\"\n[source.v]\ndirectory = \"vendor\"\n";
        let found: Vec<_> = configured(text).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(found, ["../a", "../b", "vendor"]);
        assert!(configured("= =").is_empty());
    }
}
