use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::{Jobs, Submission};
use crate::backend::fake::{Fake, Script};
use crate::backend::{BackendError, CommandSpec, ControlLost, Exit, Killed, LONGEST_START, Shell};
use crate::jobs::table::{Kept, Left, Limits, Outcome, Refusal, State};

fn tenant() -> Tenant {
    Tenant::parse("a").unwrap()
}

fn jobs(fake: &Arc<Fake>) -> Jobs {
    Jobs::new(Arc::clone(fake) as _, Limits::default())
}

fn submission(kept: Kept) -> Submission {
    Submission {
        command: CommandSpec { command: "it".to_owned(), shell: Shell::Login, cwd: None, stdin: true, limit: None },
        stdin: None,
        timeout: Duration::from_secs(60),
        kept,
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(10), future).await.expect("it took more than ten seconds")
}

/// Lets everything of a scripted command end.
fn exit(script: Script, exit: Exit) {
    script.populated.send_replace(false);
    script.exit.send_replace(Some(exit));
}

#[tokio::test]
async fn a_command_that_ends_shows_its_code_and_all_it_wrote() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    soon(script.stdout.write_all(b"out")).await.unwrap();
    soon(script.stderr.write_all(b"err")).await.unwrap();
    exit(script, Exit::Code(3));
    soon(job.ended()).await;
    let finished = job.finished(1000).unwrap();
    assert!(matches!(finished.outcome, Outcome::Exited(3)));
    assert_eq!((finished.stdout.head, finished.stderr.head), (b"out".to_vec(), b"err".to_vec()));
}

#[tokio::test]
async fn standard_input_is_given_and_closed() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let text = vec![b'x'; 1 << 20];
    let job = jobs.submit(&tenant(), Submission { stdin: Some(text.clone()), ..submission(Kept::Hidden) }).unwrap();
    let mut read = Vec::new();
    soon(script.stdin.read_to_end(&mut read)).await.unwrap();
    assert!(read == text);
    exit(script, Exit::Code(0));
    soon(job.ended()).await;
}

#[tokio::test]
async fn a_background_process_that_keeps_the_pipe_open_does_not_hold_the_job() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    soon(script.stdout.write_all(b"hi")).await.unwrap();
    script.exit.send_replace(Some(Exit::Code(0)));
    soon(job.ended()).await;
    assert_eq!(job.finished(1000).unwrap().stdout.head, b"hi");
    // And it can go on writing: what it writes is read, although by nobody.
    soon(script.stdout.write_all(&[b'x'; 1 << 20])).await.unwrap();
}

#[tokio::test]
async fn a_cancelled_job_is_terminal_only_after_the_proof() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    assert!(matches!(jobs.cancel(id), Some(State::Cancelling)));
    soon(script.killed.wait_for(|killed| *killed)).await.unwrap();
    let look = jobs.look(id, 0, 1000, Duration::ZERO).await.unwrap();
    assert!(matches!(look.state, State::Cancelling));
    script.proof.send_replace(Some(Ok(Killed::Command)));
    drop((script.stdout, script.stderr));
    let look = soon(jobs.look(id, 0, 1000, Duration::from_secs(60))).await;
    assert!(matches!(look.unwrap().state, State::Ended(Outcome::Cancelled)));
}

#[tokio::test]
async fn a_job_that_takes_too_long_is_killed() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    let jobs = jobs(&fake);
    let limit = Duration::from_millis(20);
    let job = jobs.submit(&tenant(), Submission { timeout: limit, ..submission(Kept::Hidden) }).unwrap();
    soon(script.killed.wait_for(|killed| *killed)).await.unwrap();
    drop(script);
    soon(job.ended()).await;
    assert!(matches!(job.finished(1000).unwrap().outcome, Outcome::TimedOut(after) if after == limit));
}

#[tokio::test]
async fn a_caller_that_goes_away_takes_its_command_along() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    soon(job.started()).await.unwrap();
    drop(job);
    soon(script.killed.wait_for(|killed| *killed)).await.unwrap();
    drop(script);
    soon(jobs.close()).await;
    assert_eq!(jobs.active(&tenant()), 0);
}

#[tokio::test]
async fn a_released_job_stays_when_its_caller_goes() {
    let fake = Fake::new();
    let script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    assert_eq!(jobs.owner(id), Some(tenant()));
    exit(script, Exit::Signal(9));
    let look = soon(jobs.look(id, 0, 1000, Duration::from_secs(60))).await.unwrap();
    assert!(matches!(look.state, State::Ended(Outcome::Signalled(9))));
}

#[tokio::test]
async fn a_command_that_cannot_start_says_why() {
    let fake = Fake::new();
    fake.expect_start_to_fail(&tenant(), "it", BackendError::NoDirectory("/x".to_owned()));
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    let fault = soon(job.started()).await.unwrap_err();
    assert!(matches!(&*fault, BackendError::NoDirectory(path) if path == "/x"));
}

#[tokio::test]
async fn without_a_proof_of_death_nothing_is_admitted_any_more() {
    let fake = Fake::new();
    let script = fake.expect_start(&tenant(), "it");
    let lost = ControlLost { tenant: tenant(), reason: "test".to_owned() };
    script.proof.send_replace(Some(Err(lost)));
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    jobs.cancel(id);
    assert_eq!(soon(jobs.lost()).await.reason, "test");
    let refused = jobs.submit(&tenant(), submission(Kept::Hidden)).err();
    assert_eq!(refused, Some(Refusal::Closed));
}

#[tokio::test]
async fn a_look_waits_for_output_and_gives_up_in_time() {
    let fake = Fake::new();
    let mut script = fake.expect_start(&tenant(), "it");
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    let look = soon(jobs.look(id, 0, 1000, Duration::from_millis(10))).await.unwrap();
    assert!(look.page.chunks.is_empty());
    let (look, _) = tokio::join!(soon(jobs.look(id, 0, 1000, Duration::from_secs(60))), script.stdout.write_all(b"x"));
    assert_eq!(look.unwrap().page.next, 1);
    exit(script, Exit::Code(0));
    soon(jobs.look(id, 1, 1000, Duration::from_secs(60))).await.unwrap();
}

#[tokio::test]
async fn halting_a_tenant_ends_its_jobs_and_bars_it() {
    let fake = Fake::new();
    let script = fake.expect_start(&tenant(), "it");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    drop((script.stdout, script.stderr));
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    soon(jobs.halt(&tenant())).await;
    assert_eq!(jobs.owner(id), None);
    assert_eq!(jobs.submit(&tenant(), submission(Kept::Hidden)).err(), Some(Refusal::Leaving));
}

#[tokio::test]
async fn a_file_call_counts_while_it_lasts() {
    let fake = Fake::new();
    let jobs = jobs(&fake);
    let held: Vec<_> = (0..8).map(|_| jobs.occupy(&tenant(), "read_file /x").unwrap()).collect();
    assert!(matches!(jobs.occupy(&tenant(), "read_file /x").err(), Some(Refusal::TenantBusy { most: 8, .. })));
    drop(held);
    assert!(jobs.occupy(&tenant(), "read_file /x").is_ok());
    assert_eq!(jobs.active(&tenant()), 0);
}

#[tokio::test]
async fn what_a_command_leaves_running_is_counted_with_its_end() {
    let fake = Fake::new();
    let (left, alone) = (fake.expect_start(&tenant(), "it"), fake.expect_start(&tenant(), "it"));
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    soon(job.started()).await.unwrap();
    let other = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    left.exit.send_replace(Some(Exit::Code(0)));
    exit(alone, Exit::Code(0));
    soon(job.ended()).await;
    soon(other.ended()).await;
    assert_eq!(job.finished(1000).unwrap().aftermath.left, Left::Processes(1));
    assert_eq!(other.finished(1000).unwrap().aftermath.left, Left::Nothing);
}

#[tokio::test(start_paused = true)]
async fn a_start_that_is_never_answered_ends_the_job_and_is_given_up() {
    let fake = Fake::new();
    let dropped = fake.expect_start_to_hang(&tenant());
    let jobs = jobs(&fake);
    let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
    job.ended().await;
    assert!(matches!(job.finished(1000).unwrap().outcome, Outcome::Unanswered(LONGEST_START)));
    // The backend ends what may have begun: it sees that nobody waits.
    assert!(dropped.await.is_err());
}

#[tokio::test(start_paused = true)]
async fn what_a_sandbox_takes_to_start_is_no_time_of_its_command() {
    let second = Duration::from_secs(1);
    for (start, is_started) in [(599, true), (601, false)] {
        let fake = Fake::that_starts_within(second * 600);
        let script = fake.expect_start_after(&tenant(), second * start);
        let jobs = jobs(&fake);
        let job = jobs.submit(&tenant(), submission(Kept::Hidden)).unwrap();
        if is_started {
            job.started().await.unwrap();
            tokio::time::advance(second * 59).await;
            exit(script, Exit::Code(0));
        }
        job.ended().await;
        let outcome = job.finished(1000).unwrap().outcome;
        if is_started {
            assert!(matches!(outcome, Outcome::Exited(0)));
        } else {
            assert!(matches!(outcome, Outcome::Unanswered(after) if after == second * 600));
        }
    }
}

#[tokio::test]
async fn a_job_whose_task_breaks_down_is_ended_with_its_command() {
    let fake = Fake::new();
    let mut script = fake.expect_start_to_break(&tenant(), "it");
    let jobs = jobs(&fake);
    let id = jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    soon(script.killed.wait_for(|killed| *killed)).await.unwrap();
    let look = jobs.look(id, 0, 1000, Duration::ZERO).await.unwrap();
    assert!(matches!(look.state, State::Running), "not before the proof");
    script.proof.send_replace(Some(Ok(Killed::Command)));
    let look = soon(jobs.look(id, 0, 1000, Duration::from_secs(60))).await.unwrap();
    assert!(matches!(look.state, State::Ended(Outcome::Broken)));
    assert_eq!(jobs.active(&tenant()), 0);
    // And without a proof nothing is admitted any more.
    let script = fake.expect_start_to_break(&tenant(), "it");
    let lost = ControlLost { tenant: tenant(), reason: "test".to_owned() };
    script.proof.send_replace(Some(Err(lost)));
    jobs.submit(&tenant(), submission(Kept::Retained)).unwrap().release();
    assert_eq!(soon(jobs.lost()).await.reason, "test");
}
