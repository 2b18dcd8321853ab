//! The wait for what somebody else holds, where only asking again tells that it is free.
//!
//! A lock cannot be waited for under a deadline in any other way. The thread blocks; it is for threads that may.

use std::time::Duration;

use crate::clock;

/// Tries until it succeeds, fails otherwise than by being held, or was held for `most`: then that is the answer.
///
/// # Errors
/// As the last attempt.
pub fn until<T, E>(
    most: Duration,
    mut attempt: impl FnMut() -> Result<T, E>,
    held: impl Fn(&E) -> bool,
) -> Result<T, E> {
    let began = clock::now();
    let mut pause = SHORTEST;
    loop {
        match attempt() {
            Err(fault) if held(&fault) && clock::now().saturating_duration_since(began) < most => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
            }
            done => return done,
        }
    }
}

/// Most who hold a lock let go of it within a file's writing.
const SHORTEST: Duration = Duration::from_micros(200);
/// A person does not see it, and a core is not spent on it.
const LONGEST: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::until;

    fn tried(most: Duration, answers: &[Result<u8, &'static str>]) -> (Result<u8, &'static str>, usize) {
        let mut asked = 0;
        let last = *answers.last().expect("an answer");
        let attempt = || {
            asked += 1;
            answers.get(asked - 1).copied().unwrap_or(last)
        };
        let got = until(most, attempt, |fault| *fault == "held");
        (got, asked)
    }

    #[test]
    fn what_is_held_is_asked_for_again() {
        assert_eq!(tried(Duration::MAX, &[Err("held"), Err("held"), Ok(1)]), (Ok(1), 3));
    }

    #[test]
    fn what_fails_otherwise_is_not() {
        assert_eq!(tried(Duration::MAX, &[Err("held"), Err("denied")]), (Err("denied"), 2));
    }

    #[test]
    fn what_stays_held_is_the_answer_when_the_time_is_up() {
        assert_eq!(tried(Duration::ZERO, &[Err("held")]), (Err("held"), 1));
        let (got, asked) = tried(Duration::from_millis(1), &[Err("held")]);
        assert_eq!(got, Err("held"));
        assert!(asked > 1, "asked {asked} times");
    }
}
