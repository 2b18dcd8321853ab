//! A pile keeps what was appended to it, whatever its tenant does.

use sandbox::backend::AppendOnly;

use super::{Pair, broken, each};
use crate::admin::words::Check;

pub(super) const APPEND: &str = "prove-pile-append";
pub(super) const TRUNCATE: &str = "prove-pile-truncate";
pub(super) const OVERWRITE: &str = "prove-pile-overwrite";
pub(super) const RENAME: &str = "prove-pile-rename";
pub(super) const REMOVE: &str = "prove-pile-remove";
pub(super) const UNLOCK: &str = "prove-pile-unlock";

const ALL: [&str; 6] = [APPEND, TRUNCATE, OVERWRITE, RENAME, REMOVE, UNLOCK];

pub(super) async fn tried(pair: Pair<'_>) -> Vec<Check> {
    if pair.sandbox.assurances().append_only == AppendOnly::None {
        let why =
            "this backend does not promise on this host that piles are append-only, and makes none that is said to be";
        return each(&ALL, |id| Check::not_tried(id, why));
    }
    let told = match pair.output(ATTEMPTS).await {
        Ok(told) if told.contains("there") => told,
        Ok(_) => return each(&ALL, |id| broken(id, "there is no /pile/self.pile")),
        Err(why) => return each(&ALL, |id| broken(id, why.clone())),
    };
    each(&ALL, |id| judged(id, &told))
}

fn judged(id: &str, told: &str) -> Check {
    let kind = id.trim_start_matches("prove-pile-");
    let of = |word: &str| -> Vec<_> {
        let lines = told.lines().filter_map(|line| line.strip_prefix(word)?.trim_start().split_once(' '));
        lines.filter(|(about, _)| *about == kind).map(|(_, how)| how).collect()
    };
    let (held, lost) = (of("held"), of("broken"));
    let controls = format!("control broken {kind} ");
    match (&held[..], &lost[..]) {
        (_, []) if kind != "append" && !told.contains(&controls) => {
            broken(id, "an ordinary file withstands the same, so nothing is known")
        }
        ([], []) => broken(id, "the attempts were cut short"),
        (_, []) if kind == "append" => Check::pass(id, "what was appended is at the end of the pile"),
        (held, []) => Check::pass(id, format!("the pile is as it was after: {}", held.join("; "))),
        (_, lost) => broken(id, format!("the pile is not as it was after: {}", lost.join("; "))),
    }
}

/// Says of each attempt whether the pile is the same after it. Before, the same is done to an ordinary file, which must not
/// withstand it: an attempt that cannot work anywhere shows nothing.
const ATTEMPTS: &str = r#"
cd "${HOME:-/tmp}" 2> /dev/null || cd /tmp
try() {
    kind=$1; shift
    echo other > doctor.other
    sh -c "$*" > /dev/null 2>&1
    now=$(cksum < $P 2> /dev/null)
    if [ "$now" = "$was" ]; then echo "held $kind $*"; else echo "broken $kind $*"; was=$now; fi
}
all() {
    try truncate ': > $P'
    try truncate 'truncate -s 0 $P'
    try truncate 'cp doctor.other $P'
    try overwrite 'printf XXXX 1<> $P'
    try overwrite 'dd if=/dev/zero of=$P bs=4 count=1 conv=notrunc'
    try rename 'mv -f $P $P.moved'
    try rename 'mv -f doctor.other $P'
    try rename 'ln -f doctor.other $P'
    try remove 'rm -f $P'
    try remove 'rm -rf ${P%/*}'
    try unlock 'chflags 0 $P; : > $P'
    try unlock 'chattr -a $P; : > $P'
    try unlock 'chmod 666 $P; : > $P'
}
mkdir doctor.control
for attempt in 'truncate : > $P' 'overwrite printf XXXX 1<> $P' 'rename mv -f $P $P.moved' 'remove rm -f $P' 'unlock chmod 666 $P; : > $P'; do
    P=$PWD/doctor.control/pile; export P; echo was > $P; was=$(cksum < $P)
    try $(echo "$attempt" | cut -d' ' -f1) "${attempt#* }" | sed 's/^/control /'
done
rm -rf doctor.control
P=/pile/self.pile; export P; [ -f $P ] && echo there || exit
printf 'doctor was here\n' >> $P
if [ "$(tail -c 16 $P)" = 'doctor was here' ]; then echo held append by the shell; else echo broken append by the shell; fi
was=$(cksum < $P)
all
rm -f doctor.other
"#;

#[cfg(test)]
mod tests {
    use super::{ALL, APPEND, ATTEMPTS, REMOVE, TRUNCATE, judged};
    use crate::admin::words::Verdict;

    #[test]
    fn one_attempt_that_works_is_a_guarantee_that_is_broken() {
        let told = "control broken truncate : > $P\nthere\nheld append by the shell\nheld truncate : > $P\n";
        assert_eq!(judged(TRUNCATE, told).result, Verdict::Pass);
        let vain = told.replace("control broken", "control held");
        assert_eq!(judged(TRUNCATE, &vain).result, Verdict::Fail, "it cannot work anywhere");
        let told = format!("{told}broken truncate truncate -s 0 $P\n");
        let told = told.as_str();
        assert_eq!(judged(APPEND, told).result, Verdict::Pass);
        let broken = judged(TRUNCATE, told);
        assert_eq!(broken.result, Verdict::Fail);
        assert!(broken.what.ends_with("after: truncate -s 0 $P"), "{}", broken.what);
        assert_eq!(judged(REMOVE, told).result, Verdict::Fail, "what was not tried is not held");
    }

    #[test]
    fn every_kind_is_attempted() {
        for id in ALL {
            let kind = id.trim_start_matches("prove-pile-");
            assert!(ATTEMPTS.contains(&format!("try {kind} ")) || kind == "append", "{id}");
        }
    }
}
