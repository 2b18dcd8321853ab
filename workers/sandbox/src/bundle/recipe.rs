//! How a bundle is built: what the builder runs, and which programs it is to make.

use super::progress::Phase;

/// What a machine finds at `/opt/faculties`.
pub const PROGRAMS: [&str; 14] = [
    "wiki",
    "compass",
    "orient",
    "message",
    "files",
    "teams",
    "memory",
    "relations",
    "status",
    "decide",
    "gauge",
    "patience",
    "reason",
    "web",
];

/// Where the builder finds the folder above the sources, which it cannot write to.
pub(crate) const SOURCES: &str = "/src";
/// Where it builds.
pub(crate) const SCRATCH: &str = "/build";

/// All that counts of how a bundle is built, beside its sources.
pub(super) fn text() -> String {
    let parts = [PACKAGES, RUST, BUILD, &PROGRAMS.join(" "), std::env::consts::ARCH];
    parts.join("\n--\n")
}

/// What is run in the builder, in this order.
pub(super) fn steps(name: &str) -> [(Phase, Vec<String>); 3] {
    [
        // What builds programs, by root of the builder.
        (Phase::Packages, words(&["sudo", "-n", "sh", "-c", PACKAGES], &[])),
        // The compiler, also the one that the sources pin.
        (Phase::Rust, words(&["sh", "-c", RUST, "sh", name], &[])),
        (Phase::Build, build(name)),
    ]
}

fn build(name: &str) -> Vec<String> {
    words(&["sh", "-c", BUILD, "sh", name], &PROGRAMS)
}

/// The crate that a line of cargo's tells of.
pub(super) fn compiled(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("Compiling ")?.split(' ').next()
}

/// How many crates there can be to compile at most, by what is locked.
pub(super) fn locked(lock: &str) -> usize {
    lock.lines().filter(|line| line.trim_end() == "[[package]]").count()
}

fn words(script: &[&str], programs: &[&str]) -> Vec<String> {
    let options = programs.iter().flat_map(|program| ["--bin", program]);
    script.iter().copied().chain(options).map(str::to_owned).collect()
}

/// A new machine may still be upgrading itself.
const PACKAGES: &str = "set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=300 build-essential ca-certificates curl libasound2-dev pkg-config";

const RUST: &str = "set -eu
curl --proto =https --tlsv1.2 -fsS -o /tmp/rustup.sh https://sh.rustup.rs
sh /tmp/rustup.sh -y --profile minimal --no-modify-path --target wasm32-unknown-unknown
cd \"/src/$1\"
\"$HOME/.cargo/bin/rustup\" target add wasm32-unknown-unknown";

/// At its end the programs are where this host sees them.
const BUILD: &str = "set -eu
cd \"/src/$1\"
shift
export PATH=\"$HOME/.cargo/bin:$PATH\" CARGO_TARGET_DIR=/build CARGO_TERM_COLOR=never
cargo build --release --locked --no-default-features \"$@\"
sync";

#[cfg(test)]
mod tests {
    use super::{build, compiled, locked};

    #[test]
    fn what_cargo_compiles_is_read_off_its_lines() {
        assert_eq!(compiled("   Compiling serde_json v1.0.1"), Some("serde_json"));
        assert_eq!(compiled("   Compiling f v0.1.0 (/src/f)"), Some("f"));
        assert_eq!(compiled("    Finished `release` profile"), None);
        assert_eq!(locked("version = 4\n\n[[package]]\nname = \"a\"\n\n[[package]]\nname = \"b\"\n"), 2);
    }

    #[test]
    fn the_name_of_the_sources_is_a_word_of_its_own() {
        let words = build("it's; $(x)");
        assert_eq!(words[4], "it's; $(x)");
        assert_eq!(words[5..7], ["--bin", "wiki"]);
        assert_eq!(words.len(), 5 + 2 * 14);
    }
}
