//! What is kept of documents: so many, each for its time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::OnceCell;

use super::{DocumentUrl, Documented, Undocumented};

#[derive(Default)]
pub(super) struct Cache(Mutex<HashMap<DocumentUrl, Place>>);

/// Empty while the document is being fetched, by one for all who wait.
pub(super) type Place = Arc<OnceCell<Held>>;

/// What came of a fetch, and until when it counts.
pub(super) struct Held {
    pub(super) outcome: Result<Arc<Documented>, Undocumented>,
    pub(super) until: Instant,
}

impl Cache {
    /// The place of a document; none while every place is waited for.
    pub(super) fn place(&self, url: &DocumentUrl, now: Instant) -> Option<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(url).filter(|place| place.get().is_none_or(|held| held.until > now)) {
            return Some(Arc::clone(place));
        }
        places.remove(url);
        if places.len() >= MOST_PLACES {
            // A place that nobody waits in any more was left by a future that was dropped.
            places.retain(|_, place| place.get().map_or_else(|| Arc::strong_count(place) > 1, |held| held.until > now));
        }
        if places.len() >= MOST_PLACES {
            // What was refused goes first, then what would go soonest: naming addresses drives out few who are in use.
            let worst = places.iter().filter_map(|(url, place)| Some((url, place.get()?)));
            let worst = worst.min_by_key(|(_, held)| (held.outcome.is_ok(), held.until)).map(|(url, _)| url.clone())?;
            places.remove(&worst);
        }
        let place = Place::default();
        places.insert(url.clone(), Arc::clone(&place));
        Some(place)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// More kinds of clients than any server has.
pub(super) const MOST_PLACES: usize = 256;

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::{Cache, Held, MOST_PLACES, Place};
    use crate::oauth::documents::{DocumentUrl, Documented, Undocumented};
    use crate::oauth::state::ClientId;

    fn url(number: usize) -> DocumentUrl {
        DocumentUrl::parse(&ClientId::parse(&format!("https://a.example/{number}")).unwrap()).unwrap()
    }

    fn good(number: usize) -> Result<Arc<Documented>, Undocumented> {
        let id = ClientId::parse(url(number).as_str()).unwrap();
        Ok(Arc::new(Documented { id, host: "a.example".to_owned(), name: None, redirects: Vec::new() }))
    }

    fn fill(place: &Place, outcome: Result<Arc<Documented>, Undocumented>, until: Instant) {
        assert!(place.set(Held { outcome, until }).is_ok());
    }

    #[test]
    fn a_document_counts_for_its_time_and_not_longer() {
        let (cache, now) = (Cache::default(), kit::clock::now());
        let first = cache.place(&url(1), now).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.place(&url(1), now).unwrap()), "who comes meanwhile waits for the same");
        fill(&first, good(1), now + Duration::from_secs(2));
        assert!(Arc::ptr_eq(&first, &cache.place(&url(1), now + Duration::from_secs(1)).unwrap()));
        assert!(!Arc::ptr_eq(&first, &cache.place(&url(1), now + Duration::from_secs(2)).unwrap()));
    }

    #[test]
    fn it_has_so_many_places_and_what_was_refused_goes_first() {
        let (cache, now) = (Cache::default(), kit::clock::now());
        let mut waited_for = Vec::new();
        for number in 0..MOST_PLACES {
            waited_for.push(cache.place(&url(number), now).unwrap());
        }
        assert!(cache.place(&url(MOST_PLACES), now).is_none(), "all are waited for");
        for (number, place) in waited_for.iter().enumerate() {
            let late = now + Duration::from_secs(1000 + number as u64);
            fill(place, if number == 7 { Err(Undocumented::Busy) } else { good(number) }, late);
        }
        assert!(cache.place(&url(MOST_PLACES), now).is_some_and(|place| place.get().is_none()));
        assert_eq!(cache.len(), MOST_PLACES);
        let kept = |number: usize| {
            let place = cache.place(&url(number), now).unwrap();
            Arc::ptr_eq(&place, &waited_for[number])
        };
        assert!(kept(0) && kept(255));
        assert!(!kept(7), "the refused one had gone");
    }

    #[test]
    fn a_place_that_nobody_waits_in_any_more_can_be_had() {
        let (cache, now) = (Cache::default(), kit::clock::now());
        for number in 0..MOST_PLACES {
            drop(cache.place(&url(number), now).unwrap());
        }
        assert!(cache.place(&url(MOST_PLACES), now).is_some());
    }
}
