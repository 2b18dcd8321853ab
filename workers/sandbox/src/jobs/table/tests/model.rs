//! The table against a model that forgets nothing, byte for byte.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use kit::clock;
use proptest::prelude::*;
use proptest::sample::Index;

use super::super::{JobId, Kept, Limits, Look, Outcome, Refusal, Room, State, Table};
use super::{admit, tenant};
use crate::jobs::output::{Output, Page, Stream};

/// All that a command wrote, and the places where what is kept begins and pages end.
struct Log {
    room: Room,
    bytes: Vec<(Stream, u8)>,
    unfinished: [Vec<u8>; 2],
    pieces: VecDeque<(Stream, usize)>,
    begin: usize,
    pages: BTreeMap<usize, usize>,
}

impl Log {
    fn new(room: Room) -> Self {
        let unfinished = [Vec::new(), Vec::new()];
        Self { room, bytes: Vec::new(), unfinished, pieces: VecDeque::new(), begin: 0, pages: BTreeMap::new() }
    }

    fn write(&mut self, stream: Stream, read: &[u8]) {
        let waiting = &mut self.unfinished[usize::from(stream == Stream::Stderr)];
        waiting.extend_from_slice(read);
        let rest = waiting.split_off(waiting.len() - held_back(waiting));
        let whole = std::mem::replace(waiting, rest);
        self.keep(stream, &whole);
    }

    fn seal(&mut self) {
        let [stdout, stderr] = std::mem::take(&mut self.unfinished);
        self.keep(Stream::Stdout, &stdout);
        self.keep(Stream::Stderr, &stderr);
    }

    fn keep(&mut self, stream: Stream, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let mut length = bytes.len().min(PIECE);
            if length < bytes.len() {
                length -= held_back(&bytes[..length]);
            }
            match self.pieces.back_mut() {
                Some((last, held)) if *last == stream && *held + length <= PIECE => *held += length,
                _ => self.pieces.push_back((stream, length)),
            }
            self.bytes.extend(bytes[..length].iter().map(|byte| (stream, *byte)));
            bytes = &bytes[length..];
            while self.bytes.len() - self.begin > self.room.bytes || self.pieces.len() > self.room.pieces {
                self.begin += self.pieces.pop_front().unwrap().1;
            }
            let begin = self.begin;
            self.pages.retain(|from, _| *from >= begin);
        }
    }

    /// Checks a page that was read at `cursor`; where it ends.
    fn check(&mut self, cursor: u64, most: usize, page: &Page) -> Result<u64, TestCaseError> {
        let end = self.bytes.len();
        let asked = usize::try_from(cursor).unwrap_or(end).min(end);
        let from = asked.max(self.begin);
        let to = usize::try_from(page.next).unwrap();
        prop_assert_eq!(page.dropped, (from - asked) as u64);
        prop_assert_eq!(page.has_more, to < end);
        let most = most.max(4);
        match self.pages.get(&from) {
            Some(before) => prop_assert_eq!(to, *before, "the page at {} is another one this time", from),
            None if end - from <= most => prop_assert_eq!(to, end),
            None => prop_assert!(to <= from + most && to + 3 >= from + most, "{} to {} for {}", from, to, most),
        }
        if to > from {
            self.pages.insert(from, to);
        }
        let mut place = from;
        let mut last = None;
        for chunk in &page.chunks {
            prop_assert!(!chunk.bytes.is_empty() && last != Some(chunk.stream));
            prop_assert_eq!(chunk.sequence, place as u64);
            for byte in &chunk.bytes {
                prop_assert_eq!(Some(&(chunk.stream, *byte)), self.bytes.get(place));
                place += 1;
            }
            last = Some(chunk.stream);
        }
        prop_assert_eq!(place, to);
        Ok(page.next)
    }
}

/// How many bytes at the end are the beginning of a character.
fn held_back(bytes: &[u8]) -> usize {
    (1..=3.min(bytes.len()))
        .find(|length| {
            let tail = &bytes[bytes.len() - length..];
            std::str::from_utf8(tail).is_err_and(|fault| fault.valid_up_to() == 0 && fault.error_len().is_none())
        })
        .unwrap_or(0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    Running,
    Cancelling,
    Ended,
}

struct Modelled {
    id: u128,
    tenant: u8,
    kept: Kept,
    is: Is,
    begun: Instant,
    ended: Option<Instant>,
    done_with: bool,
    log: Log,
}

impl Modelled {
    fn runs(&self) -> bool {
        self.is != Is::Ended
    }
}

/// What may happen to a table. Jobs are named by an index among those that there are.
#[derive(Clone, Debug)]
enum Event {
    Admit { tenant: u8, retained: bool },
    Write { job: Index, stream: Stream, bytes: Vec<u8>, cut: usize },
    Look { job: Index, cursor: Index, most: usize },
    Cancel(Index),
    End(Index),
    Abandon(Index),
    Wait(u16),
    Forget(u8),
}

fn event() -> impl Strategy<Value = Event> {
    let index = any::<Index>;
    let text = prop_oneof!["\\PC{0,40}".prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..120)];
    let stream = prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)];
    prop_oneof![
        5 => (0_u8..4, any::<bool>()).prop_map(|(tenant, retained)| Event::Admit { tenant, retained }),
        8 => (index(), stream, text, 1_usize..50)
            .prop_map(|(job, stream, bytes, cut)| Event::Write { job, stream, bytes, cut }),
        6 => (index(), index(), 1_usize..300).prop_map(|(job, cursor, most)| Event::Look { job, cursor, most }),
        1 => index().prop_map(Event::Cancel),
        3 => index().prop_map(Event::End),
        1 => index().prop_map(Event::Abandon),
        1 => (0_u16..2000).prop_map(Event::Wait),
        1 => (0_u8..4).prop_map(Event::Forget),
    ]
}

struct Model {
    limits: Limits,
    jobs: Vec<Modelled>,
}

impl Model {
    fn sweep(&mut self, now: Instant) {
        let kept = self.limits.kept;
        self.jobs.retain(|job| job.ended.is_none_or(|ended| now - ended < kept));
    }

    /// What becomes of one more job; the one that gives way for it is gone then.
    fn admit(&mut self, now: Instant, id: u128, tenant: u8, kept: Kept) -> Result<(), Refusal> {
        self.sweep(now);
        let limits = &self.limits;
        let running = self.jobs.iter().filter(|job| job.runs() && job.tenant == tenant).count();
        if running >= limits.active_per_tenant {
            let most = limits.active_per_tenant;
            return Err(Refusal::TenantBusy { most, running: Vec::new() });
        }
        if self.jobs.iter().filter(|job| job.runs()).count() >= limits.active {
            return Err(Refusal::Busy { most: limits.active });
        }
        if kept == Kept::Retained {
            let held = |own: bool| {
                let ours = move |job: &&Modelled| job.kept == Kept::Retained && (!own || job.tenant == tenant);
                let count = self.jobs.iter().filter(ours).count();
                let ready = self.jobs.iter().filter(ours).filter(|job| !job.runs() && job.done_with);
                (count, ready.min_by_key(|job| (job.ended, job.id)).map(|job| job.id))
            };
            let ((own, own_oldest), (all, oldest)) = (held(true), held(false));
            let victim = if own >= limits.retained_per_tenant {
                let most = limits.retained_per_tenant;
                Some(own_oldest.ok_or(Refusal::TenantUnread { most, unread: Vec::new() })?)
            } else if all >= limits.retained {
                Some(oldest.ok_or(Refusal::Unread { most: limits.retained })?)
            } else {
                None
            };
            self.jobs.retain(|job| Some(job.id) != victim);
        }
        let log = Log::new(limits.output);
        let (is, begun) = (Is::Running, now);
        self.jobs.push(Modelled { id, tenant, kept, is, begun, ended: None, done_with: false, log });
        Ok(())
    }

    fn pick(&mut self, index: Index) -> Option<&mut Modelled> {
        if self.jobs.is_empty() { None } else { Some(index.get_mut(&mut self.jobs)) }
    }
}

/// A refusal names exactly those that stand in the way, in the order in which they began.
fn check_refusal(model: &Model, tenant: u8, refused: &Refusal) -> Result<(), TestCaseError> {
    let (named, stands): (_, fn(&Modelled) -> bool) = match refused {
        Refusal::TenantBusy { running, .. } => (running, Modelled::runs),
        Refusal::TenantUnread { unread, .. } => (unread, |job| job.kept == Kept::Retained),
        Refusal::Closed | Refusal::Leaving | Refusal::Busy { .. } | Refusal::Unread { .. } => return Ok(()),
    };
    let mut expected: Vec<_> = model.jobs.iter().filter(|job| job.tenant == tenant && stands(job)).collect();
    expected.sort_by_key(|job| (job.begun, job.id));
    let expected: Vec<_> =
        expected.iter().map(|job| (JobId::new(job.id), format!("command {}", job.id), !job.runs())).collect();
    let named: Vec<_> = named.iter().map(|job| (job.id, job.label.clone(), job.ended)).collect();
    prop_assert_eq!(named, expected);
    Ok(())
}

/// Without the names, which are checked apart.
fn kind(answer: Result<(), Refusal>) -> Result<(), Refusal> {
    answer.map_err(|refused| match refused {
        Refusal::TenantBusy { most, .. } => Refusal::TenantBusy { most, running: Vec::new() },
        Refusal::TenantUnread { most, .. } => Refusal::TenantUnread { most, unread: Vec::new() },
        Refusal::Closed | Refusal::Leaving | Refusal::Busy { .. } | Refusal::Unread { .. } => refused,
    })
}

fn is(state: &State) -> Is {
    match state {
        State::Running => Is::Running,
        State::Cancelling => Is::Cancelling,
        State::Ended(_) => Is::Ended,
    }
}

fn look(table: &mut Table<()>, now: Instant, id: u128, cursor: u64, most: usize) -> Option<Look> {
    table.look(now, JobId::new(id), cursor, most)
}

/// Does one event to both, and checks what the table answers.
fn happen(
    table: &mut Table<()>,
    model: &mut Model,
    now: &mut Instant,
    next: u128,
    event: Event,
) -> Result<(), TestCaseError> {
    match event {
        Event::Admit { tenant, retained } => {
            let kept = if retained { Kept::Retained } else { Kept::Hidden };
            let answer = admit(table, *now, next, &format!("t{tenant}"), kept);
            prop_assert_eq!(kind(answer.clone()), model.admit(*now, next, tenant, kept));
            if let Err(refused) = &answer {
                check_refusal(model, tenant, refused)?;
            }
        }
        Event::Write { job, stream, bytes, cut } => {
            let Some(job) = model.pick(job) else { return Ok(()) };
            for part in bytes.chunks(cut) {
                match table.output(JobId::new(job.id)) {
                    Some(output) => output.append(stream, part),
                    None => prop_assert!(!job.runs()),
                }
                if job.runs() {
                    job.log.write(stream, part);
                }
            }
        }
        Event::Look { job, cursor, most } => {
            let Some(id) = model.pick(job).map(|job| job.id) else { return Ok(()) };
            model.sweep(*now);
            let Some(job) = model.jobs.iter_mut().find(|job| job.id == id) else {
                prop_assert!(look(table, *now, id, 0, most).is_none());
                return Ok(());
            };
            let cursor = cursor.index(job.log.bytes.len() + 20) as u64;
            let looked = look(table, *now, id, cursor, most).unwrap();
            job.log.check(cursor, most, &looked.page)?;
            job.done_with |= !job.runs() && !looked.page.has_more;
            prop_assert_eq!((is(&looked.state), looked.begun, looked.ended), (job.is, job.begun, job.ended));
        }
        Event::Cancel(job) => {
            let Some(job) = model.pick(job) else { return Ok(()) };
            match job.is {
                Is::Running => job.is = Is::Cancelling,
                Is::Cancelling => {}
                Is::Ended => job.done_with = true,
            }
            prop_assert_eq!(table.cancel(JobId::new(job.id)).map(is), Some(job.is));
        }
        Event::End(job) => {
            let Some(job) = model.pick(job).filter(|job| job.runs()) else { return Ok(()) };
            table.end(*now, JobId::new(job.id), Outcome::Exited(0));
            job.log.seal();
            job.done_with = job.is == Is::Cancelling;
            (job.is, job.ended) = (Is::Ended, Some(*now));
            model.jobs.retain(|job| job.runs() || job.kept != Kept::Abandoned);
        }
        Event::Abandon(job) => {
            let Some(job) = model.pick(job) else { return Ok(()) };
            table.abandon(JobId::new(job.id));
            job.kept = Kept::Abandoned;
            model.jobs.retain(|job| job.runs() || job.kept != Kept::Abandoned);
        }
        Event::Wait(seconds) => *now += Duration::from_secs(u64::from(seconds)),
        Event::Forget(name) => {
            table.forget_tenant(&tenant(&format!("t{name}")));
            model.jobs.retain(|job| job.runs() || job.tenant != name);
        }
    }
    Ok(())
}

/// The same jobs in the same states, and no bound passed.
fn compare(table: &Table<()>, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(table.jobs.len(), model.jobs.len());
    for job in &model.jobs {
        let id = JobId::new(job.id);
        prop_assert_eq!(table.state(id).map(is), Some(job.is));
        prop_assert_eq!(table.is_retained(id), job.kept == Kept::Retained);
        prop_assert_eq!(table.is_silent(id, job.log.bytes.len() as u64), job.runs());
        prop_assert!(job.log.bytes.len() - job.log.begin <= model.limits.output.bytes);
    }
    let mut running: Vec<_> = model.jobs.iter().filter(|job| job.runs()).map(|job| JobId::new(job.id)).collect();
    running.sort_unstable();
    prop_assert!(running.len() <= model.limits.active);
    prop_assert_eq!(table.active(None), running);
    let retained = model.jobs.iter().filter(|job| job.kept == Kept::Retained);
    prop_assert!(retained.clone().count() <= model.limits.retained);
    for name in 0..4 {
        prop_assert!(retained.clone().filter(|job| job.tenant == name).count() <= model.limits.retained_per_tenant);
    }
    Ok(())
}

/// Reads a log by its chain of cursors; what comes out is all that is kept, and the rest is counted.
fn read_whole(log: &mut Log, most: usize, mut page: impl FnMut(u64) -> Page) -> Result<(), TestCaseError> {
    let (mut cursor, mut read, mut dropped) = (0, Vec::new(), 0);
    loop {
        let page = page(cursor);
        cursor = log.check(cursor, most, &page)?;
        dropped += page.dropped;
        read.extend(page.chunks.iter().flat_map(|chunk| chunk.bytes.iter().map(|byte| (chunk.stream, *byte))));
        if !page.has_more {
            break;
        }
    }
    prop_assert!(read == log.bytes[log.begin..]);
    prop_assert_eq!(dropped, log.begin as u64);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_table_is_what_its_model_is_whatever_happens(
        events in prop::collection::vec(event(), 0..150),
        bytes in 1_usize..1500,
        pieces in 1_usize..12,
        most in 1_usize..200,
    ) {
        let output = Room { bytes, pieces };
        let limits =
            Limits { active_per_tenant: 3, active: 7, retained_per_tenant: 2, retained: 5, output, ..Limits::default() };
        let mut table: Table<()> = Table::new(limits.clone());
        let mut model = Model { limits, jobs: Vec::new() };
        let mut now = clock::now();
        for (next, event) in (0..).zip(events) {
            happen(&mut table, &mut model, &mut now, next, event)?;
            compare(&table, &model)?;
        }
        model.sweep(now);
        for job in &mut model.jobs {
            read_whole(&mut job.log, most, |cursor| look(&mut table, now, job.id, cursor, most).unwrap().page)?;
        }
    }

    #[test]
    fn eight_and_thirty_two_run_and_eight_and_sixty_four_are_retained_and_no_more(
        events in prop::collection::vec(
            prop_oneof![
                6 => (0_u8..12, any::<bool>()).prop_map(|(tenant, retained)| Event::Admit { tenant, retained }),
                3 => any::<Index>().prop_map(Event::End),
                2 => (any::<Index>(), any::<Index>())
                    .prop_map(|(job, cursor)| Event::Look { job, cursor, most: 1000 }),
            ],
            0..400,
        ),
    ) {
        let mut table: Table<()> = Table::new(Limits::default());
        let mut model = Model { limits: Limits::default(), jobs: Vec::new() };
        let mut now = clock::now();
        for (next, event) in (0..).zip(events) {
            happen(&mut table, &mut model, &mut now, next, event)?;
            compare(&table, &model)?;
        }
    }
}

#[test]
fn ten_mebibytes_through_a_ring_of_four_are_kept_and_counted_byte_for_byte() {
    let mut output = Output::new(Room::default());
    let mut log = Log::new(Room::default());
    let text = "0123456789 aß€😀 and \u{fffd}\n".repeat(4000).into_bytes();
    let (mut written, mut step) = (0_usize, 1_usize);
    let mut polled = 0;
    while written < 10 << 20 {
        // Reads of all sizes up to more than a piece, on both streams in turns.
        step = step.wrapping_mul(1_103_515_245).wrapping_add(12_345) % 100_003;
        let begin = written % 997;
        let part = &text[begin..(begin + step).min(text.len())];
        let stream = if step.is_multiple_of(3) { Stream::Stderr } else { Stream::Stdout };
        output.append(stream, part);
        log.write(stream, part);
        written += part.len();
        // A reader that is too slow, and one that repeats itself.
        if step.is_multiple_of(4) {
            polled = log.check(polled, 16_000, &output.page(polled, 16_000)).unwrap();
            log.check(written as u64 / 2, 45_000, &output.page(written as u64 / 2, 45_000)).unwrap();
        }
    }
    output.seal();
    log.seal();
    assert_eq!(log.bytes.len(), written);
    assert!(written - log.begin > (4 << 20) - PIECE && written - log.begin <= 4 << 20);
    read_whole(&mut log, 16_000, |cursor| output.page(cursor, 16_000)).unwrap();
    read_whole(&mut log, 45_000, |cursor| output.page(cursor, 45_000)).unwrap();
}

/// What one piece of the ring holds at most.
const PIECE: usize = 64 << 10;
