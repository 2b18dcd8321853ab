//! When an authority is asked.

use std::time::Duration;

/// A time to ask for the next certificate, at the latest when a third of this one's is left.
///
/// `chance` is anywhere in its range, so that what was issued together does not come together again.
pub(super) fn renewal(from: Duration, until: Duration, chance: u16) -> Duration {
    let whole = until.saturating_sub(from);
    until.saturating_sub(whole / 3).saturating_sub(part(whole / 30, chance))
}

/// The pause after so many failures in a row: some in the first hour, as many as authorities allow, and then ever fewer.
pub(super) fn pause(first: Duration, tries: u32, chance: u16) -> Duration {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(usize::MAX);
    let factor = FACTORS.get(index).or(FACTORS.last()).copied().unwrap_or(1);
    let pause = first.saturating_mul(factor).min(LONGEST);
    pause + part(pause / 4, chance)
}

fn part(whole: Duration, chance: u16) -> Duration {
    whole * u32::from(chance) / u32::from(u16::MAX)
}

/// With a minute first: 1, 5, 15 minutes, then hours up to a day. The fifth failure is in the second hour.
const FACTORS: [u32; 8] = [1, 5, 15, 60, 180, 360, 720, 1440];

const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{LONGEST, pause, renewal};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn ninety_days_are_renewed_with_thirty_to_thirty_three_left() {
        let from = DAY * 1000;
        assert_eq!(renewal(from, from + DAY * 90, 0), from + DAY * 60);
        assert_eq!(renewal(from, from + DAY * 90, u16::MAX), from + DAY * 57);
    }

    #[test]
    fn five_failures_take_more_than_an_hour() {
        let minute = Duration::from_secs(60);
        let before_the_fifth: Duration = (1..=4).map(|tries| pause(minute, tries, 0)).sum();
        assert!(before_the_fifth > minute * 60);
        assert_eq!(pause(minute, 1, 0), minute);
        assert_eq!(pause(minute, 8, 0), DAY);
        assert_eq!(pause(minute, u32::MAX, 0), DAY);
    }

    proptest! {
        #[test]
        fn a_pause_never_shrinks_and_has_an_end(first in 1u64..100_000, tries in 1u32..20, chance in any::<u16>()) {
            let first = Duration::from_secs(first);
            prop_assert!(pause(first, tries, 0) <= pause(first, tries + 1, 0));
            prop_assert!(pause(first, tries, chance) >= first.min(LONGEST));
            prop_assert!(pause(first, tries, chance) <= LONGEST + LONGEST / 4);
        }

        #[test]
        fn a_renewal_lies_within_the_certificates_time(from in 0u64..1 << 40, whole in 1u64..1 << 30, chance in any::<u16>()) {
            let (from, whole) = (Duration::from_secs(from), Duration::from_secs(whole));
            let at = renewal(from, from + whole, chance);
            prop_assert!(at > from && at <= from + whole - whole / 3);
        }
    }
}
