//! Who listens for a worker's changes in one session, and what each has yet to hear.
//!
//! A change is told once however often it came since the listener last looked; so what waits for one that is slow is as
//! small as its wishes.

use std::collections::{HashMap, HashSet};

use tokio::sync::watch;

use crate::edge::Cause;

use super::session::Use;
use super::watchlist::{Errand, Watchlist};
use super::wishes::{Change, Wishes};

/// The listeners of a session.
pub(super) struct Feed(watch::Sender<State>);

struct State {
    listeners: HashMap<u64, Listener>,
    next: u64,
    /// Someone looks after the worker's stream.
    is_tended: bool,
    standing: Standing,
    watchlist: Watchlist,
}

struct Listener {
    wishes: Wishes,
    due: Vec<Change>,
    is_lost: bool,
}

/// How it stands with the worker's stream.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    Opening,
    /// It has been open; that it is opened again after a break is no listener's matter.
    Open,
    /// The worker has none.
    Absent,
    /// It cannot be had any more.
    Lost(Cause),
}

/// One listener's place; left when dropped.
pub(super) struct Seat {
    used: Use,
    number: u64,
}

/// What a listener hears next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    Change(Change),
    /// Nothing any more.
    Over,
}

impl Feed {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(State {
            listeners: HashMap::new(),
            next: 0,
            is_tended: false,
            standing: Standing::Opening,
            watchlist: Watchlist::default(),
        }))
    }

    /// Lets all hear of it who wish to.
    pub(super) fn tell(&self, change: &Change) {
        self.0.send_if_modified(|state| {
            let mut told = false;
            for listener in state.listeners.values_mut().filter(|listener| listener.wishes.include(change)) {
                if !listener.due.contains(change) {
                    listener.is_lost |= listener.due.len() >= MOST_DUE;
                    listener.due.extend((!listener.is_lost).then(|| change.clone()));
                    told = true;
                }
            }
            told
        });
    }

    pub(super) fn stands(&self, standing: Standing) {
        self.0.send_if_modified(|state| {
            let is_other = state.standing != standing;
            state.standing = standing;
            is_other
        });
    }

    pub(super) async fn is_deserted(&self) {
        let mut state = self.0.subscribe();
        // The sender is borrowed, so it is there.
        let _ = state.wait_for(|state| state.listeners.is_empty()).await;
    }

    /// Ends the tending if nobody has come since all left.
    pub(super) fn leave_untended(&self) -> bool {
        let mut is_left = false;
        self.0.send_modify(|state| {
            is_left = state.listeners.is_empty();
            state.is_tended = !is_left;
            if is_left {
                state.standing = Standing::Opening;
            }
        });
        is_left
    }

    /// What the worker is to be asked about its resources; nothing once all have left and nothing is watched.
    pub(super) async fn errand(&self) -> Option<Errand> {
        let mut changes = self.0.subscribe();
        loop {
            let (mut errand, mut is_over) = (None, false);
            changes.mark_unchanged();
            self.0.send_if_modified(|state| {
                errand = state.watchlist.next();
                is_over = state.listeners.is_empty();
                false
            });
            if errand.is_some() || is_over {
                return errand;
            }
            let _ = changes.changed().await;
        }
    }

    /// What the worker has said to being asked to watch a resource.
    pub(super) fn asked(&self, uri: String, is_watched: bool) {
        self.0.send_modify(|state| state.watchlist.asked(uri, is_watched));
    }
}

impl Seat {
    /// Says also whether the worker's stream has to be tended from now on.
    pub(super) fn take(used: Use, wishes: Wishes) -> (Self, bool) {
        let (mut number, mut begins) = (0, false);
        used.feed.0.send_modify(|state| {
            number = state.next;
            state.next += 1;
            begins = !std::mem::replace(&mut state.is_tended, true);
            for uri in &wishes.uris {
                state.watchlist.want(uri);
            }
            state.listeners.insert(number, Listener { wishes, due: Vec::new(), is_lost: false });
        });
        (Self { used, number }, begins)
    }

    /// How the worker's stream stands once that is known; none when the session ends before.
    pub(super) async fn standing(&self) -> Option<Standing> {
        let mut state = self.used.feed.0.subscribe();
        tokio::select! {
            () = self.used.ended() => None,
            known = state.wait_for(|state| state.standing != Standing::Opening) => {
                known.ok().map(|state| state.standing.clone())
            }
        }
    }

    /// Waits until the worker has answered for each of the resources.
    pub(super) async fn answered(&self) {
        let mut state = self.used.feed.0.subscribe();
        let is_answered = |state: &State| {
            let listener = state.listeners.get(&self.number);
            listener
                .is_none_or(|listener| listener.wishes.uris.iter().all(|uri| state.watchlist.is_watched(uri).is_some()))
        };
        tokio::select! {
            () = self.used.ended() => {}
            _ = state.wait_for(is_answered) => {}
        }
    }

    /// Gives up the resources that the worker does not watch by now, and says what remains.
    pub(super) fn settle(&self) -> Wishes {
        let mut settled = Wishes::default();
        self.used.feed.0.send_modify(|state| {
            let State { listeners, watchlist, .. } = state;
            let Some(listener) = listeners.get_mut(&self.number) else { return };
            let uris = std::mem::take(&mut listener.wishes.uris);
            let (watched, others): (Vec<_>, Vec<_>) =
                uris.into_iter().partition(|uri| watchlist.is_watched(uri) == Some(true));
            others.iter().for_each(|uri| watchlist.leave(uri));
            listener.wishes.uris = watched;
            settled = listener.wishes.clone();
            let Listener { wishes, due, .. } = listener;
            due.retain(|change| wishes.include(change));
        });
        settled
    }

    /// Dropped while it waits, nothing is lost.
    pub(super) async fn next(&self) -> Heard {
        let mut changes = self.used.feed.0.subscribe();
        loop {
            let mut heard = None;
            changes.mark_unchanged();
            self.used.feed.0.send_if_modified(|state| {
                let is_lost = matches!(state.standing, Standing::Absent | Standing::Lost(_));
                heard = match state.listeners.get_mut(&self.number) {
                    Some(listener) if !listener.due.is_empty() => Some(Heard::Change(listener.due.remove(0))),
                    Some(listener) if !listener.is_lost && !is_lost => None,
                    Some(_) | None => Some(Heard::Over),
                };
                false
            });
            if let Some(heard) = heard {
                return heard;
            }
            tokio::select! {
                biased;
                () = self.used.ended() => return Heard::Over,
                _ = changes.changed() => {}
            }
        }
    }
}

impl std::ops::Deref for Seat {
    type Target = Use;

    fn deref(&self) -> &Use {
        &self.used
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.used.feed.0.send_modify(|state| {
            let left = state.listeners.remove(&self.number);
            // Once for each, although a listener wishes for each but once.
            let uris: HashSet<_> = left.into_iter().flat_map(|listener| listener.wishes.uris).collect();
            uris.iter().for_each(|uri| state.watchlist.leave(uri));
        });
    }
}

/// Beyond its wishes a worker may tell of parts of a resource, without end. Who is so far behind hears that it is over, and asks for everything again.
const MOST_DUE: usize = 1024;
