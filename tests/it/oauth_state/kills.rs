//! Every store that a command saves, and the command killed at any moment of that.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use playground::identity::CredentialId;
use playground::identity::store::Ledger;
use playground::identity::store::last_used::LastUsed;
use playground::store::Loose;

use super::file;
use crate::process::{Watched, playground, program, text};

/// Of each store so many commands are killed as `PLAYGROUND_TEST_KILLS` says, which is 40 where it says nothing;
/// `PLAYGROUND_TEST_SEED` makes a run like an earlier one, as far as the machine lets it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the long run is asked for by the environment")]
fn a_command_killed_at_any_moment_leaves_every_store_whole_with_all_it_had_told() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let kills = number("PLAYGROUND_TEST_KILLS", 40);
    let seed = number("PLAYGROUND_TEST_SEED", u64::from(kit::clock::since_epoch().subsec_nanos()) | 1);
    for store in [Store::Credentials, Store::Logins] {
        let told = Run::new(store, seed).kill(kills);
        // Not by a macro, whose output the harness keeps to itself when a test passes.
        let line = format!("{store:?}: seed {seed}, {told:?}\n");
        std::io::Write::write_all(&mut std::io::stderr().lock(), line.as_bytes()).expect("written");
    }
}

/// The same of the record of last uses, which a service writes: here a process that does nothing else.
#[test]
#[expect(clippy::disallowed_methods, reason = "the long run is asked for by the environment")]
fn a_process_killed_while_it_notes_uses_leaves_the_record_whole_with_all_it_had_told() {
    let kills = std::env::var("PLAYGROUND_TEST_KILLS").map_or(40_u64, |text| text.parse().expect("a number"));
    if let Some(state) = std::env::var_os(NOTES_IN) {
        return note_for_ever(Path::new(&state));
    }
    let place = tempfile::tempdir().expect("a folder");
    let used = LastUsed::in_state(place.path());
    let (mut random, mut told, mut in_mid_save) = (u64::from(kit::clock::since_epoch().subsec_nanos()) | 1, 0, 0_u64);
    for _ in 0..kills {
        let mut command = program(std::env::current_exe().expect("this program"));
        command.args(["--exact", NOTING, "--nocapture"]).env(NOTES_IN, place.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        while !line.starts_with("noted ") {
            line.clear();
            assert!(output.read_line(&mut line).expect("read") > 0, "it notes until it is killed");
        }
        random = xorshift(random);
        assert!(!Watched::of(child.id()).gone_within(Duration::from_micros(random % 5000)), "it goes on until then");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("read");
        // A line that its death cut off is no promise.
        let whole = rest.rfind('\n').and_then(|end| rest.get(..end)).unwrap_or_default();
        let last = whole.lines().chain([line.trim_end()]).filter_map(|line| line.strip_prefix("noted ")?.parse().ok());
        told = last.max().map_or(told, |last: u64| last.max(told));
        let entries = std::fs::read_dir(place.path()).expect("listed");
        let beside = |name: &std::ffi::OsStr| name.to_string_lossy().contains(".new-");
        in_mid_save += u64::from(entries.flatten().any(|entry| beside(&entry.file_name())));
        let read = used.read().expect("a whole record");
        let kept = read.values().max().expect("something is noted").as_secs() / 3600;
        assert!(kept >= told, "{told} was told to be noted, and {kept} is the last");
        assert_eq!(read.len(), 8, "none of those that are used is lost");
    }
    let line = format!("last uses: {kills} killed, {in_mid_save} of them in mid save\n");
    std::io::Write::write_all(&mut std::io::stderr().lock(), line.as_bytes()).expect("written");
}

/// Notes the use of some credentials, each hour a little later than the one before, and says so behind it.
fn note_for_ever(state: &Path) {
    let used = LastUsed::in_state(state);
    let first = used.read().expect("a whole record").values().max().map_or(0, |last| last.as_secs() / 3600);
    for hour in first + 1.. {
        let ids = (0..8).map(|number| CredentialId::parse(&format!("id-{number}")).expect("an id")).collect();
        used.note(ids, hour).expect("noted");
        let line = format!("noted {hour}\n");
        std::io::Write::write_all(&mut std::io::stdout().lock(), line.as_bytes()).expect("heard");
    }
}

const NOTES_IN: &str = "PLAYGROUND_TEST_NOTES_IN";
const NOTING: &str =
    "oauth_state::kills::a_process_killed_while_it_notes_uses_leaves_the_record_whole_with_all_it_had_told";

#[derive(Clone, Copy, Debug)]
enum Store {
    Credentials,
    Logins,
}

/// What became of the commands.
#[derive(Debug, Default)]
struct Told {
    killed: u64,
    /// Those that were done before they were killed.
    finished: u64,
    /// Those whose file stood half written beside the store.
    in_mid_save: u64,
    made: usize,
    taken: usize,
}

struct Run {
    store: Store,
    place: tempfile::TempDir,
    random: u64,
    told: Told,
    /// Ids that are surely there.
    there: BTreeSet<String>,
    /// Ids that are surely not there any more.
    gone: BTreeSet<String>,
}

/// A command under way, and what it takes away where it does.
struct Command {
    child: Child,
    takes: Option<String>,
}

impl Run {
    fn new(store: Store, seed: u64) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        Self { store, place, random: seed, told: Told::default(), there: BTreeSet::new(), gone: BTreeSet::new() }
    }

    fn kill(mut self, kills: u64) -> Told {
        let whole = self.typical();
        while self.told.killed < kills {
            // Two at once, which also wait for each other's lock.
            let commands = [self.start(), self.start()];
            let early = self.below(2) == 0;
            if early {
                self.until_it_writes(&commands[0]);
            }
            let wait = if early { Duration::from_micros(1500) } else { whole * 2 };
            let wait = Duration::from_micros(self.below(u64::try_from(wait.as_micros()).expect("short")));
            let first = Watched::of(commands[0].child.id());
            let over = first.gone_within(wait);
            self.told.finished += u64::from(over);
            for command in commands {
                self.end(command);
            }
            self.check();
        }
        // The next command tidies up.
        let last = self.start_making();
        self.told.made += usize::from(self.wait(last).is_some());
        let left: Vec<_> = self.beside().into_iter().filter(|name| name.contains(".new-")).collect();
        assert_eq!(left, Vec::<String>::new());
        self.told
    }

    /// How long a command takes that is not killed.
    fn typical(&mut self) -> Duration {
        let began = kit::clock::now();
        for _ in 0..4 {
            let command = self.start_making();
            let made = self.wait(command).expect("made");
            self.there.insert(made);
        }
        kit::clock::now().duration_since(began) / 4
    }

    fn start(&mut self) -> Command {
        let some = usize::try_from(self.below(self.there.len().max(1) as u64)).expect("small");
        let takes = self.there.iter().nth(some).cloned().filter(|_| self.there.len() > 4);
        match takes {
            Some(id) if self.below(3) == 0 => {
                // From here nobody knows, until it has said so.
                self.there.remove(&id);
                let child = self.spawn(&["revoke", &id]);
                Command { child, takes: Some(id) }
            }
            Some(_) | None => self.start_making(),
        }
    }

    fn start_making(&self) -> Command {
        let line: &[&str] = match self.store {
            Store::Credentials => &["mint", "alice"],
            Store::Logins => &["create", "alice", "--json"],
        };
        Command { child: self.spawn(line), takes: None }
    }

    fn spawn(&self, line: &[&str]) -> Child {
        let (noun, flag) = match self.store {
            Store::Credentials => ("token", "--tokens"),
            Store::Logins => ("invite", "--oauth-state"),
        };
        let mut command = playground([noun]);
        command.args(line).arg(flag).arg(self.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().expect("starts")
    }

    /// Kills it, unless it has ended, and takes up what it told.
    fn end(&mut self, mut command: Command) {
        command.child.kill().expect("killed");
        self.told.killed += 1;
        let takes = command.takes.take();
        let done = command.child.wait().expect("ended").success();
        let made = made(self.store, &mut command.child);
        match takes {
            Some(id) if done => {
                self.told.taken += 1;
                self.gone.insert(id);
            }
            Some(_) => {}
            None => {
                self.told.made += usize::from(made.is_some());
                self.there.extend(made);
            }
        }
    }

    fn wait(&self, mut command: Command) -> Option<String> {
        assert!(command.child.wait().expect("ended").success());
        made(self.store, &mut command.child)
    }

    /// Readable at once, before any other command has had a chance to tidy up.
    fn check(&mut self) {
        self.told.in_mid_save += u64::from(self.beside().iter().any(|name| name.contains(".new-")));
        let listed: BTreeSet<String> = match self.store {
            Store::Credentials => {
                let listed = Ledger::at(self.path(), Loose::Refuse).list().expect("a whole store");
                listed.into_iter().map(|one| one.id.to_string()).collect()
            }
            Store::Logins => {
                let (state, _) = file(&self.path()).read().expect("a whole state");
                state.invites().map(|(id, _)| id.to_string()).collect()
            }
        };
        let lost: Vec<_> = self.there.difference(&listed).collect();
        assert!(lost.is_empty(), "told to be there and is not: {lost:?}");
        let back: Vec<_> = self.gone.intersection(&listed).collect();
        assert!(back.is_empty(), "told to be gone and is not: {back:?}");
        // What a command did before it could tell has been done too.
        self.there = listed;
        for name in self.beside() {
            let mode = std::fs::metadata(self.place.path().join(&name)).expect("there").mode() & 0o7777;
            assert_eq!(mode, 0o600, "{name}");
        }
        if matches!(self.store, Store::Logins) && self.there.len() > 40 {
            // A tenant has so many invites and no more.
            for id in std::mem::take(&mut self.there) {
                let child = self.spawn(&["revoke", &id]);
                self.wait(Command { child, takes: None });
                self.gone.insert(id);
            }
        }
    }

    /// Until a file stands beside the store, or the command has ended.
    fn until_it_writes(&self, command: &Command) {
        let watched = Watched::of(command.child.id());
        let lock = format!("{}.lock", self.path().file_name().expect("a name").to_string_lossy());
        while !watched.gone_within(Duration::ZERO) {
            if self.beside().iter().any(|name| name.contains(".new-") && *name != lock) {
                return;
            }
        }
    }

    fn beside(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.place.path()).expect("listed");
        entries.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned()).collect()
    }

    fn path(&self) -> PathBuf {
        let name = match self.store {
            Store::Credentials => "tokens.json",
            Store::Logins => "oauth-state.json",
        };
        Path::new(self.place.path()).join(name)
    }

    /// A number that a seed tells (Marsaglia's xorshift).
    fn below(&mut self, bound: u64) -> u64 {
        self.random = xorshift(self.random);
        self.random % bound.max(1)
    }
}

fn xorshift(mut random: u64) -> u64 {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    random
}

/// The id of what a command printed; a line that its death cut off is no promise.
fn made(store: Store, child: &mut Child) -> Option<String> {
    let mut output = Vec::new();
    child.stdout.take()?.read_to_end(&mut output).expect("read");
    let text = text(&output);
    let line = text.strip_suffix('\n')?;
    match store {
        Store::Credentials => line.split('_').nth(1).map(str::to_owned),
        Store::Logins => {
            let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            object["id"].as_str().map(str::to_owned)
        }
    }
}
