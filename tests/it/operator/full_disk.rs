//! A full disk: what takes away still works, and makes room.

use crate::host::isolates;
use crate::process::{is_root, program, run, skip, text};

#[test]
fn on_a_full_disk_tokens_are_revoked_and_tenants_destroyed() {
    if !is_root() {
        return skip("a full disk", "only root can mount one");
    }
    if !isolates("a full disk") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let mut command = program("/usr/bin/unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-euc", SCRIPT, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_playground")).arg(place.path());
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/nowhere");
    let output = run(command);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

const SCRIPT: &str = r#"
mount -t tmpfs -o size=64m,mode=700 full "$2"
export PLAYGROUND_STATE="$2/state"
"$1" user create alice --no-pile --disk 16MiB --overcommit > /dev/null
"$1" user create bob --no-pile --disk 16MiB --overcommit > /dev/null
cat /dev/zero > "$2/fill" 2> /dev/null || :
cat /dev/zero > "$2/state/fill" 2> /dev/null || :
if echo x > "$2/probe"; then echo the disk is not full; exit 1; fi 2> /dev/null
id=$("$1" token list | awk '$2 == "alice" { print $1 }')
"$1" token revoke "$id"
"$1" token list | grep -q alice && exit 1
grep -q '"act":"token revoke"' "$2/state/operator.jsonl"
cat /dev/zero > "$2/state/fill" 2> /dev/null || :
"$1" user destroy bob --yes
"$1" user list | grep -q bob && exit 1
grep -q '"act":"user destroy"' "$2/state/operator.jsonl"
rm "$2/fill" "$2/state/fill"
"$1" user destroy alice --yes
[ "$(wc -c < "$2/state/ballast")" -gt 100000 ]
"#;
