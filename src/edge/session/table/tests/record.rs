//! What of ended sessions outlives the edge.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::{before, limits, session, today};
use crate::edge::config::Sessions as Limits;
use crate::edge::session::seal::Sealed;
use crate::edge::session::table::Table;
use crate::edge::session::tombstones::Tombstones;

/// The folder with both files.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn paths(&self) -> [PathBuf; 2] {
        ["first", "second"].map(|name| self.0.path().join(name))
    }

    fn files(&self) -> [File; 2] {
        let open = |path: &Path| File::options().read(true).append(true).create(true).open(path).expect("a file");
        self.paths().map(|path| open(&path))
    }

    fn table(&self) -> Table {
        self.table_with(limits(), today())
    }

    fn table_with(&self, limits: Limits, today: Duration) -> Table {
        Table::open(limits, Some(self.files()), today).expect("a table")
    }

    fn lengths(&self) -> [u64; 2] {
        self.paths().map(|path| std::fs::metadata(path).expect("a file").len())
    }

    /// How many lines are about this tenant.
    fn lines(&self, tenant: &str) -> usize {
        let name = format!("\"tenant\":\"{tenant}\"");
        let texts = self.paths().map(|path| std::fs::read_to_string(path).expect("a file"));
        texts.iter().flat_map(|text| text.lines()).filter(|line| line.contains(&name)).count()
    }

    #[track_caller]
    fn knows(&self, ended: &[Sealed], alive: &Sealed) {
        self.knows_with(limits(), ended, alive);
    }

    /// Whether a later edge knows that all of these have ended, and this one has not.
    #[track_caller]
    fn knows_with(&self, limits: Limits, ended: &[Sealed], alive: &Sealed) {
        let (table, now) = (self.table_with(limits, today()), kit::clock::now());
        for (number, session) in ended.iter().enumerate() {
            assert!(!table.touch(session, now, today()), "end {number} is forgotten");
        }
        assert!(table.touch(alive, now, today()));
    }
}

impl Table {
    fn record(&self) -> &Arc<Tombstones> {
        self.tombstones.as_ref().expect("a record")
    }
}

/// Bounds by which a record is due at this length.
fn due_at(length: u64) -> Limits {
    Limits { most_tombstone_bytes: 64 * length, ..limits() }
}

async fn end(table: &Table, session: &Sealed) {
    table.end(session, today()).await.expect("written");
}

#[tokio::test]
async fn a_later_edge_knows_what_has_ended() {
    let place = Place::new();
    let ended: Vec<_> = (1..=4).map(|issued| session("a", issued)).collect();
    let first = place.table();
    for session in &ended {
        end(&first, session).await;
    }
    let [file, _] = place.files();
    std::io::Write::write_all(&mut &file, b"{\"tenant\":\"a\",\"sess").expect("a torn line");
    place.knows(&ended, &session("a", 9));
    let late = session("a", 8);
    end(&place.table(), &late).await;
    place.knows(&[late], &session("a", 9));
}

#[tokio::test]
async fn a_record_made_small_keeps_the_living_alone_and_each_tenants_bound() {
    let place = Place::new();
    // "a" has one ended session that has expired meanwhile and one that has not; "b" as many as are kept, "c" one more.
    let (expired, live, late) = (session("a", 1), session("a", 500), session("a", 8));
    let kept = [session("b", 500), session("b", 501)];
    let many = [session("c", 500), session("c", 501), session("c", 502)];
    let first = place.table();
    for session in [&expired, &live, &kept[0], &kept[1], &many[0], &many[1], &many[2]] {
        end(&first, session).await;
    }
    let [file, _] = place.files();
    std::io::Write::write_all(&mut &file, b"{\"tenant\":\"a\",\"sess").expect("a torn line");
    drop(first);
    let small = |today| {
        let table = place.table_with(limits(), today);
        table.record().compact(kit::clock::now(), || table.kept(today)).expect("made small");
    };
    small(before(expired.expires));
    assert_eq!(place.lines("a"), 2);
    small(expired.expires);
    assert_eq!(["a", "b", "c"].map(|tenant| place.lines(tenant)), [1, 2, 3], "a minimum stands for the rest");
    assert!(place.lengths().contains(&0), "the other file is empty");
    let (second, now) = (place.table(), kit::clock::now());
    for session in [&live, &kept[0], &kept[1], &many[0], &many[1], &many[2]] {
        assert!(!second.touch(session, now, before(expired.expires)));
    }
    assert!(second.touch(&late, now, before(expired.expires)), "no other session has ended");
    small(before(many[2].expires));
    assert_eq!(place.lines("c"), 1);
    small(many[2].expires);
    assert_eq!(place.lines("a") + place.lines("b") + place.lines("c"), 0, "what has expired leaves nothing behind");
}

#[tokio::test]
async fn the_record_grows_to_its_bound_and_an_end_beyond_it_is_not_promised() {
    let place = Place::new();
    let (first, second, third) = (session("a", 1), session("a", 1), session("a", 1));
    end(&place.table(), &first).await;
    let [each, _] = place.lengths();
    let table = |most| place.table_with(Limits { most_tombstone_bytes: most, ..limits() }, today());
    let full = table(2 * each - 1);
    full.end(&second, today()).await.expect_err("one byte too few");
    assert_eq!(place.lengths(), [each, 0], "nothing is written");
    assert!(!full.touch(&second, kit::clock::now(), today()), "for now it has ended all the same");
    end(&table(2 * each), &third).await;
    assert_eq!(place.lengths(), [2 * each, 0]);
}

#[tokio::test]
async fn a_record_is_made_small_from_its_length_on_and_not_before_and_then_when_it_has_doubled() {
    let place = Place::new();
    let now = kit::clock::now();
    let first = session("a", 1);
    end(&place.table(), &first).await;
    let [each, _] = place.lengths();
    place.table_with(due_at(each + 1), today()).compact(now, today()).expect("nothing to do");
    assert_eq!(place.lengths(), [each, 0], "one byte below");
    let table = place.table_with(due_at(each), today());
    table.compact(now, today()).expect("made small");
    assert_eq!(place.lengths(), [0, each]);
    table.compact(now, today()).expect("nothing to do");
    assert_eq!(place.lengths(), [0, each], "it is all kept, and stays until it has doubled");
    let second = session("a", 2);
    end(&table, &second).await;
    assert_eq!(place.lengths(), [0, 2 * each]);
    table.compact(now, today()).expect("made small");
    assert_eq!(place.lengths(), [2 * each - 1, 0], "in the other one, with one empty line");
    place.knows(&[first, second], &session("a", 9));
}

#[tokio::test]
async fn what_does_not_fit_is_left_as_it_is_and_tried_again_after_a_pause() {
    let place = Place::new();
    let now = kit::clock::now();
    let ended: Vec<_> = (1..=2).map(|issued| session("a", issued)).collect();
    for session in &ended {
        end(&place.table(), session).await;
    }
    let [length, _] = place.lengths();
    let table = place.table_with(Limits { most_tombstone_bytes: length - 2, ..limits() }, today());
    let unfit = |now| table.compact(now, today()).is_err();
    assert!(unfit(now));
    assert_eq!(place.lengths(), [length, 0], "nothing has turned");
    let pause = Duration::from_secs(60);
    assert_eq!(
        [now, now + before(pause), now + pause].map(unfit),
        [false, false, true],
        "it is tried again then alone"
    );
    // Once they have expired there is nothing to fit.
    table.compact(now + 2 * pause, ended[1].expires).expect("made small");
    assert_eq!(place.lengths()[0], 0);
}

/// What a later edge would find is looked at wherever a kill could fall, and ends are promised there as well.
#[tokio::test(flavor = "multi_thread")]
async fn at_every_instant_of_being_made_small_the_record_holds_every_end_and_takes_more() {
    let place = Place::new();
    let limits = Limits { most_tombstones_per_tenant: 50, ..limits() };
    let table = place.table_with(limits.clone(), today());
    let alive = session("t0", 90);
    let mut ended = Vec::new();
    for number in 0..40 {
        let session = session(&format!("t{}", number % 4), 1 + number);
        end(&table, &session).await;
        ended.push(session);
    }
    let runtime = tokio::runtime::Handle::current();
    let now = kit::clock::now();
    for round in 0..6 {
        let instants = std::cell::Cell::new(0);
        let ended = std::cell::RefCell::new(&mut ended);
        let look = || {
            instants.set(instants.get() + 1);
            let number = ended.borrow().len();
            let more = session(&format!("t{}", number % 5), 1 + (round + instants.get()) % 40);
            tokio::task::block_in_place(|| runtime.block_on(end(&table, &more)));
            ended.borrow_mut().push(more);
            place.knows_with(limits.clone(), &ended.borrow()[..], &alive);
        };
        let kept = || {
            look();
            let tenants = (0..5).map(|number| format!("t{number}"));
            let of = |name: String| table.state.lock().expect("no panic").keep(&super::tenant(&name), today());
            tenants.map(of).inspect(|_| look())
        };
        table.record().compact(now, kept).expect("made small");
        look();
        assert!(instants.get() > 10, "{}", instants.get());
        assert_eq!(place.lengths().iter().filter(|length| **length == 0).count(), 1);
    }
}
