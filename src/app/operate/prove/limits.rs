//! A tenant uses no more than it may.

use kit::clock;
use sandbox::backend::UidMap;
use sandbox::settings::Limits;

use super::{Pair, broken, each};
use crate::admin::words::Check;

pub(super) const MEMORY: &str = "prove-limit-memory";
pub(super) const PROCESSES: &str = "prove-limit-processes";
pub(super) const CPU: &str = "prove-limit-cpu";
pub(super) const OPEN_FILES: &str = "prove-limit-open-files";
pub(super) const FILE_SIZE: &str = "prove-limit-file-size";

pub(super) async fn tried(pair: Pair<'_>) -> Vec<Check> {
    if pair.sandbox.assurances().uid_map == UidMap::Machine {
        let why = "a machine has the size that it was made with, and its own kernel shares that among its programs";
        return each(&[MEMORY, PROCESSES, CPU, OPEN_FILES, FILE_SIZE], |id| Check::not_tried(id, why));
    }
    let limits = match pair.limits().await {
        Ok(limits) => limits,
        Err(why) => return each(&[MEMORY, PROCESSES, CPU, OPEN_FILES, FILE_SIZE], |id| broken(id, why.clone())),
    };
    vec![
        memory(pair, &limits).await,
        processes(pair, &limits).await,
        cpu(pair, &limits).await,
        open_files(pair, &limits).await,
        file_size(pair, &limits).await,
    ]
}

/// One buffer that is larger than all that the tenant may have, written to the end; and before it one that is not, or that
/// the other is refused would say nothing.
async fn memory(pair: Pair<'_>, limits: &Limits) -> Check {
    let more = limits.memory.saturating_add(64 << 20);
    let script = format!(
        "take() {{ dd if=/dev/zero of=/dev/null bs=$1 count=1 > /dev/null 2>&1 && echo $2; }}
         take {LITTLE} little; take {more} whole; :"
    );
    match pair.output(&script).await {
        Ok(told) if told.contains("whole") => {
            broken(MEMORY, format!("a program has {more} bytes, of {} allowed", limits.memory))
        }
        Ok(told) if told.contains("little") => {
            let what = format!("a program that wants {more} bytes is refused or ended; {} are allowed", limits.memory);
            Check::pass(MEMORY, what)
        }
        Ok(_) => broken(MEMORY, format!("a program has not even {LITTLE} bytes, so nothing is known")),
        Err(why) => broken(MEMORY, why),
    }
}

async fn processes(pair: Pair<'_>, limits: &Limits) -> Check {
    let more = limits.processes.saturating_add(20);
    let script = format!(
        "echo up; i=0; while [ $i -lt {more} ]; do sleep 100 > /dev/null 2>&1 & i=$((i+1)); done 2> /dev/null; echo all"
    );
    match pair.output(&script).await {
        Ok(told) if told.contains("all") => {
            broken(PROCESSES, format!("{more} processes run, of {} allowed", limits.processes))
        }
        Ok(told) if told.contains("up") => {
            Check::pass(PROCESSES, format!("a command cannot start {more} processes; {} are allowed", limits.processes))
        }
        Ok(_) => broken(PROCESSES, "a command does not begin"),
        Err(why) => broken(PROCESSES, why),
    }
}

/// Two loops, and what they used of the time that passed. On a busy host they use less, and nothing is held against it.
async fn cpu(pair: Pair<'_>, limits: &Limits) -> Check {
    let holder = pair.holder("cpu").unwrap_or("nothing");
    let Some(percent) = limits.cpu_percent.filter(|_| !holder.contains("priority")) else {
        return Check::not_tried(CPU, format!("no bound of processor time is promised here; it is shared by {holder}"));
    };
    let begun = clock::now();
    let told = pair.output(LOOPS).await;
    let passed = clock::now().saturating_duration_since(begun).as_secs_f64();
    match told.map(|told| told.lines().last().and_then(seconds)) {
        Err(why) => broken(CPU, why),
        Ok(None) => Check::not_tried(CPU, "the shell inside does not tell what its children used"),
        Ok(Some(used)) => {
            let allowed = passed * f64::from(u32::try_from(percent).unwrap_or(u32::MAX)) / 100.0;
            let what = format!("two loops used {used:.2} s of {passed:.2} s; {percent} percent are allowed");
            if used <= allowed + SLACK { Check::pass(CPU, what) } else { broken(CPU, what) }
        }
    }
}

/// A process may have so many, and cannot allow itself more.
async fn open_files(pair: Pair<'_>, limits: &Limits) -> Check {
    let holder = pair.holder("open files").unwrap_or("nothing");
    if !holder.contains("rlimit") {
        let why = format!("held by {holder} for the whole sandbox, which no shell comes near");
        return Check::not_tried(OPEN_FILES, why);
    }
    let script = "hard=$(ulimit -H -n); echo hard $hard; (ulimit -n $((hard + 1))) 2> /dev/null && echo raised; :";
    let told = match pair.output(script).await {
        Ok(told) => told,
        Err(why) => return broken(OPEN_FILES, why),
    };
    let hard = told.lines().find_map(|line| line.strip_prefix("hard ")?.parse::<u64>().ok());
    match hard {
        Some(hard) if hard <= limits.open_files && !told.contains("raised") => {
            Check::pass(OPEN_FILES, format!("a process may open {hard} files, and cannot allow itself more"))
        }
        Some(hard) => {
            broken(OPEN_FILES, format!("a process may open {hard} files or more, of {} allowed", limits.open_files))
        }
        None => broken(OPEN_FILES, "a process may open any number of files"),
    }
}

async fn file_size(pair: Pair<'_>, limits: &Limits) -> Check {
    if limits.file_size > MOST_TRIED || limits.disk.is_some_and(|disk| disk <= limits.file_size) {
        return Check::not_tried(
            FILE_SIZE,
            format!("the bound of {} bytes is more than is written for a try", limits.file_size),
        );
    }
    let blocks = limits.file_size.div_ceil(1 << 20).saturating_add(2);
    let script = format!(
        "cd \"${{HOME:-/tmp}}\"; dd if=/dev/zero of=doctor.big bs=1048576 count={blocks} > /dev/null 2>&1; wc -c < doctor.big; rm -f doctor.big"
    );
    match pair.output(&script).await.map(|told| told.trim().parse::<u64>()) {
        Ok(Ok(size)) if size <= limits.file_size => {
            Check::pass(FILE_SIZE, format!("a file ends at {size} bytes; {} are allowed", limits.file_size))
        }
        Ok(Ok(size)) => broken(FILE_SIZE, format!("a file has {size} bytes, of {} allowed", limits.file_size)),
        Ok(Err(_)) => broken(FILE_SIZE, "a file cannot be written at all"),
        Err(why) => broken(FILE_SIZE, why),
    }
}

/// The seconds in the last line of `times`, as in `0m1.25s 0m0.03s`.
fn seconds(line: &str) -> Option<f64> {
    line.split_whitespace()
        .map(|part| {
            let (minutes, seconds) = part.strip_suffix('s')?.split_once('m')?;
            Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
        })
        .sum()
}

const LOOPS: &str = "
(while :; do :; done) & one=$!; (while :; do :; done) & other=$!
sleep 2; kill $one $other; wait $one $other 2> /dev/null; times";

const LITTLE: u64 = 1 << 20;

/// What the kernel lets through before it counts, in seconds.
const SLACK: f64 = 0.5;

const MOST_TRIED: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn what_a_shell_says_of_its_childrens_time_is_read() {
        assert_eq!(seconds("0m1.25s 0m0.50s"), Some(1.75));
        assert_eq!(seconds("1m0.000s 0m1.000s"), Some(61.0));
        assert_eq!(seconds("what"), None);
    }
}
