//! The end of everybody, against a model of what processes do meanwhile.

use std::collections::BTreeMap;
use std::io;

use proptest::prelude::*;
use rustix::process::Pid;

use super::{Lost, Patience, end_all};
use crate::sys::reaper::{Reaped, Reaper};

/// Which descendants one round of killing reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Those whose parent is the reaper, as on Linux.
    Children,
    /// All but those below a descendant that is a reaper itself, as on FreeBSD.
    Tree,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// Somebody starts another, who may take so many moments to die once told to.
    Fork {
        by: usize,
        dies_in: u8,
    },
    Exit {
        who: usize,
    },
    /// Somebody becomes a reaper too.
    Acquire {
        who: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Process {
    /// [`OURS`] is the reaper under test.
    parent: u32,
    dies_in: Option<u8>,
    is_told: bool,
    is_ended: bool,
    is_reaper: bool,
}

struct Model {
    reach: Reach,
    processes: BTreeMap<u32, Process>,
    born: u32,
    events: std::vec::IntoIter<Event>,
}

const OURS: u32 = 1;

impl Model {
    /// The reaper's child alone; `events` come one before each call, as long as there are any.
    fn new(reach: Reach, immortal: bool, events: Vec<Event>) -> Self {
        let mut model = Self { reach, processes: BTreeMap::new(), born: OURS, events: events.into_iter() };
        model.bear(OURS, (!immortal).then_some(0));
        model
    }

    fn bear(&mut self, parent: u32, dies_in: Option<u8>) {
        self.born += 1;
        let child = Process { parent, dies_in, is_told: false, is_ended: false, is_reaper: false };
        self.processes.insert(self.born, child);
    }

    /// The one of those who live and were not told to die that a number stands for.
    fn somebody(&self, number: usize) -> Option<u32> {
        let free: Vec<_> = self.processes.iter().filter(|(_, one)| !one.is_ended && !one.is_told).collect();
        free.get(number % free.len().max(1)).map(|(id, _)| **id)
    }

    fn end(&mut self, who: u32) {
        let heir = self.heir(who);
        for one in self.processes.values_mut().filter(|one| one.parent == who) {
            one.parent = heir;
        }
        if let Some(one) = self.processes.get_mut(&who) {
            one.is_ended = true;
        }
    }

    /// Who gets the orphans of somebody.
    fn heir(&self, who: u32) -> u32 {
        let takes_them = |id: u32| id == OURS || self.processes[&id].is_reaper && !self.processes[&id].is_ended;
        let mut above = self.processes[&who].parent;
        while !takes_them(above) {
            above = self.processes[&above].parent;
        }
        above
    }

    fn is_reached(&self, who: u32) -> bool {
        let parent = self.processes[&who].parent;
        match self.reach {
            _ if parent == OURS => true,
            Reach::Children => false,
            Reach::Tree => !self.processes[&parent].is_reaper && self.is_reached(parent),
        }
    }

    fn reached(&self) -> Vec<u32> {
        self.processes.keys().copied().filter(|who| self.is_reached(*who)).collect()
    }

    fn moment(&mut self) {
        match self.events.next() {
            Some(Event::Fork { by, dies_in }) => {
                if let Some(by) = self.somebody(by) {
                    self.bear(by, Some(dies_in));
                }
            }
            Some(Event::Exit { who }) => {
                if let Some(who) = self.somebody(who).filter(|who| self.processes[who].dies_in.is_some()) {
                    self.end(who);
                }
            }
            Some(Event::Acquire { who }) => {
                if let Some(who) = self.somebody(who) {
                    self.processes.get_mut(&who).unwrap().is_reaper = true;
                }
            }
            None => {}
        }
        let told: Vec<_> =
            self.processes.iter().filter(|(_, one)| one.is_told && !one.is_ended).map(|(id, _)| *id).collect();
        for who in told {
            match self.processes.get_mut(&who).unwrap().dies_in.as_mut() {
                Some(0) => self.end(who),
                Some(moments) => *moments -= 1,
                None => {}
            }
        }
    }
}

impl Reaper for Model {
    fn acquire() -> io::Result<Self> {
        Ok(Self::new(Reach::Tree, false, Vec::new()))
    }

    fn kill_all(&mut self) -> io::Result<()> {
        for who in self.reached() {
            self.processes.get_mut(&who).unwrap().is_told = true;
        }
        self.moment();
        Ok(())
    }

    fn count(&mut self) -> io::Result<usize> {
        self.moment();
        Ok(self.reached().len())
    }

    fn reap(&mut self) -> io::Result<Option<Reaped>> {
        self.moment();
        let ended = self.processes.iter().find(|(_, one)| one.parent == OURS && one.is_ended).map(|(id, _)| *id);
        Ok(ended.map(|who| {
            self.processes.remove(&who);
            Reaped { pid: Pid::from_raw(i32::try_from(who).unwrap()).unwrap(), code: Some(0), signal: None }
        }))
    }
}

struct Rounds(u32);

impl Patience for Rounds {
    fn pause(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (any::<usize>(), 0..4u8).prop_map(|(by, dies_in)| Event::Fork { by, dies_in }),
        2 => any::<usize>().prop_map(|who| Event::Exit { who }),
        1 => any::<usize>().prop_map(|who| Event::Acquire { who }),
    ]
}

fn reach() -> impl Strategy<Value = Reach> {
    prop_oneof![Just(Reach::Children), Just(Reach::Tree)]
}

proptest! {
    #[test]
    fn nobody_is_left_whatever_they_do_meanwhile(reach in reach(), events in prop::collection::vec(event(), 0..120)) {
        let mut model = Model::new(reach, false, events);
        let mut ended = Vec::new();
        // A tree is at most as deep as it has processes, and each takes a few moments to die.
        let done = end_all(&mut model, &mut Rounds(1000), |child| ended.push(child.pid.as_raw_nonzero().get()));
        prop_assert!(done.is_ok());
        prop_assert!(model.processes.is_empty());
        ended.sort_unstable();
        let once = ended.len();
        ended.dedup();
        prop_assert_eq!(once, ended.len());
        prop_assert!(ended.contains(&2), "the reaper's own child is seen to end");
    }

    #[test]
    fn who_cannot_be_killed_is_not_called_dead(reach in reach(), events in prop::collection::vec(event(), 0..60)) {
        let mut model = Model::new(reach, true, events);
        let lost = end_all(&mut model, &mut Rounds(200), |_| {});
        prop_assert!(matches!(lost, Err(Lost::Left(left)) if left >= 1), "{:?}", lost);
        prop_assert!(model.processes.contains_key(&2));
    }
}

#[test]
fn a_system_that_does_not_tell_is_not_believed() {
    struct Silent;
    impl Reaper for Silent {
        fn acquire() -> io::Result<Self> {
            Ok(Self)
        }
        fn kill_all(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn count(&mut self) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
        fn reap(&mut self) -> io::Result<Option<Reaped>> {
            Ok(None)
        }
    }
    assert!(matches!(end_all(&mut Silent, &mut Rounds(9), |_| {}), Err(Lost::Unknown(_))));
}
