//! Which resources a worker is to be asked to watch, and what it has said to that.
//!
//! ```text
//! wanted by someone -> asked -> watched or refused -> wanted by nobody -> asked to stop, if watched
//! ```
//!
//! The worker is asked one thing after the other, so that its last word on a resource is about what was wanted last.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

#[derive(Debug, Default)]
pub(super) struct Watchlist {
    // Bounded by what the listeners of a session wish for, and what was watched for those that have left.
    resources: HashMap<String, Resource>,
    /// Where something may have to be asked.
    due: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Resource {
    listeners: usize,
    /// Nothing until the worker has answered.
    is_watched: Option<bool>,
}

/// What the worker is to be asked next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Errand {
    Watch(String),
    Stop(String),
}

impl Watchlist {
    /// One more listener wants it watched.
    pub(super) fn want(&mut self, uri: &str) {
        let resource = self.resources.entry(uri.to_owned()).or_default();
        resource.listeners += 1;
        if resource.is_watched.is_none() {
            self.due.insert(uri.to_owned());
        }
    }

    /// One listener less does.
    pub(super) fn leave(&mut self, uri: &str) {
        let Entry::Occupied(mut entry) = self.resources.entry(uri.to_owned()) else { return };
        let resource = entry.get_mut();
        resource.listeners = resource.listeners.saturating_sub(1);
        if resource.listeners > 0 {
            return;
        }
        if resource.is_watched == Some(true) {
            self.due.insert(uri.to_owned());
        } else {
            // If it is being asked for just now, the answer will say so.
            entry.remove();
            self.due.remove(uri);
        }
    }

    /// Whoever gets an errand of [`Errand::Watch`] says how it went before asking for the next.
    pub(super) fn next(&mut self) -> Option<Errand> {
        while let Some(uri) = self.due.pop_first() {
            match self.resources.get(&uri).map(|resource| (resource.listeners > 0, resource.is_watched)) {
                Some((true, None)) => return Some(Errand::Watch(uri)),
                Some((false, Some(true))) => {
                    self.resources.remove(&uri);
                    return Some(Errand::Stop(uri));
                }
                Some(_) | None => {}
            }
        }
        None
    }

    /// What the worker has said to [`Errand::Watch`].
    pub(super) fn asked(&mut self, uri: String, is_watched: bool) {
        match self.resources.get_mut(&uri) {
            Some(resource) => resource.is_watched = Some(is_watched),
            None if is_watched => {
                self.resources.insert(uri.clone(), Resource { listeners: 0, is_watched: Some(true) });
                self.due.insert(uri);
            }
            None => {}
        }
    }

    pub(super) fn is_watched(&self, uri: &str) -> Option<bool> {
        self.resources.get(uri)?.is_watched
    }
}

#[cfg(test)]
mod tests {
    use super::Errand::{Stop, Watch};
    use super::Watchlist;

    #[test]
    fn a_resource_is_watched_from_its_first_listener_to_its_last() {
        let mut list = Watchlist::default();
        list.want("a");
        assert_eq!(list.next(), Some(Watch("a".to_owned())));
        assert_eq!(list.is_watched("a"), None);
        list.asked("a".to_owned(), true);
        list.want("a");
        list.leave("a");
        assert_eq!((list.next(), list.is_watched("a")), (None, Some(true)));
        list.leave("a");
        assert_eq!((list.next(), list.next(), list.is_watched("a")), (Some(Stop("a".to_owned())), None, None));
    }

    #[test]
    fn what_the_worker_refuses_is_not_stopped_and_is_asked_for_again_by_the_next() {
        let mut list = Watchlist::default();
        list.want("a");
        assert_eq!(list.next(), Some(Watch("a".to_owned())));
        list.asked("a".to_owned(), false);
        assert_eq!(list.is_watched("a"), Some(false));
        list.leave("a");
        assert_eq!(list.next(), None);
        list.want("a");
        assert_eq!(list.next(), Some(Watch("a".to_owned())));
    }

    #[test]
    fn who_comes_and_goes_while_the_worker_is_asked_leaves_what_was_wanted_last() {
        let mut list = Watchlist::default();
        list.want("a");
        assert_eq!(list.next(), Some(Watch("a".to_owned())));
        list.leave("a");
        list.asked("a".to_owned(), true);
        assert_eq!(list.next(), Some(Stop("a".to_owned())), "it was left while it was asked for");
        list.want("a");
        assert_eq!(list.next(), Some(Watch("a".to_owned())), "it was wanted again while it was stopped");
        list.leave("a");
        list.want("a");
        list.asked("a".to_owned(), true);
        assert_eq!((list.next(), list.is_watched("a")), (None, Some(true)));
        list.leave("a");
        list.want("a");
        assert_eq!(list.next(), None);
    }

    #[test]
    fn nothing_is_kept_for_listeners_that_never_got_their_turn() {
        let mut list = Watchlist::default();
        for number in 0..1000 {
            list.want(&number.to_string());
            list.leave(&number.to_string());
        }
        assert_eq!((list.resources.len(), list.due.len(), list.next()), (0, 0, None));
    }
}
