//! A tenant sees nothing of another, by the places that files and processes have.

use sandbox::backend::Direct;

use super::{Pair, broken, each, examine};
use crate::admin::words::Check;

pub(super) const FILES: &str = "prove-neighbour-files";
pub(super) const PROCESSES: &str = "prove-neighbour-processes";

pub(super) async fn tried(pair: Pair<'_>) -> Vec<Check> {
    match attempted(pair).await {
        Ok(proofs) => proofs,
        Err(why) => each(&[FILES, PROCESSES], |id| broken(id, why.clone())),
    }
}

async fn attempted(pair: Pair<'_>) -> Result<Vec<Check>, String> {
    // What is looked for is there, or that it is not found would say nothing.
    let planted = examine::output(pair.sandbox, pair.other, PLANT).await?;
    let Some(place) = planted.lines().find_map(|line| line.strip_prefix("planted ")) else {
        return Err("the neighbour cannot write a file of its own".to_owned());
    };
    if !examine::output(pair.sandbox, pair.other, LOOK).await?.contains("seen ") {
        return Err("the neighbour does not find its own file".to_owned());
    }
    let Direct { ends, command } = examine::start(pair.sandbox, pair.other, SLEEP).await?;
    let looked = look(pair, place).await;
    let was_there = command.is_populated();
    let ended = pair.sandbox.end(&*command).await;
    drop(ends);
    ended.map_err(|fault| kit::chain(&fault))?;
    let (files, processes) = looked?;
    if !was_there {
        return Err("the neighbour's process was not there".to_owned());
    }
    Ok(vec![files, processes])
}

async fn look(pair: Pair<'_>, place: &str) -> Result<(Check, Check), String> {
    let neighbours = pair.sandbox.look(pair.other).await.map_err(|fault| kit::chain(&fault))?;
    let mut script = LOOK.to_owned();
    // Also by the name that it has on the host, where the attacker can only guess it.
    for place in neighbours.pile.iter().filter_map(|pile| pile.to_str()).chain([place]) {
        script.push_str(&format!(
            "if cat '{}' 2> /dev/null | grep -q {WORD}; then echo seen {place}; fi\n",
            quoted(place)
        ));
    }
    let told = pair.output(&script).await?;
    let seen: Vec<_> = told.lines().filter_map(|line| line.strip_prefix("seen ")).collect();
    let files = if !told.contains("looked") {
        broken(FILES, "the search was cut short")
    } else if seen.is_empty() {
        Check::pass(FILES, "a neighbour's file is found by no name, of its own system or of the host's")
    } else {
        broken(FILES, format!("a neighbour's file is seen at {}", seen.join(", ")))
    };
    let told = pair.output(LIST).await?;
    let processes = if !told.contains(OWN) {
        Check::not_tried(PROCESSES, "no program inside lists processes, not even a command's own")
    } else if told.contains(SLEEP) {
        broken(PROCESSES, "a neighbour's process is in the list")
    } else {
        Check::pass(PROCESSES, "a list of all processes has the command's own and none of a neighbour's")
    };
    Ok((files, processes))
}

/// Within single quotes.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}

const WORD: &str = "doctor-was-here-as-a-neighbour";

const PLANT: &str = r#"
cd "${HOME:-/tmp}" 2> /dev/null || cd /tmp
echo doctor-was-here-as-a-neighbour > doctor-neighbour && echo "planted $PWD/doctor-neighbour"
[ -f /pile/self.pile ] && echo doctor-was-here-as-a-neighbour >> /pile/self.pile
:
"#;

/// Not where nothing of a tenant's can be, which takes long to look through.
const LOOK: &str = r"
find / \( -path /proc -o -path /sys -o -path /dev -o -path /usr -o -path /lib -o -path /nix \) -prune -o -name doctor-neighbour -print 2> /dev/null |
    while read -r found; do echo seen $found; done
echo looked
";

const SLEEP: &str = "sleep 98765.4321";

const OWN: &str = "sleep 12345.6789";

/// All processes that a command sees, with one of its own.
const LIST: &str = r"
sleep 12345.6789 > /dev/null 2>&1 & own=$!
ps axww -o args 2> /dev/null || for process in /proc/[0-9]*; do tr '\0' ' ' < $process/cmdline; echo; done 2> /dev/null
kill $own
";
