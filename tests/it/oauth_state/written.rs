//! A service that writes: each renewal of a client's tokens is a change that the edge asks the supervisor for.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kit::Secret;
use playground::oauth::keeper::File;
use playground::oauth::state::{Denied, View};
use rustix::fs::{FlockOperation, flock};

use super::served::native;
use super::{RESOURCE, Tokens, file, invite, log_in, said};
use crate::fake_worker::{FakeWorker, INITIALIZE, Manner, PUBLIC};
use crate::http::post;
use crate::process::{PATIENCE, Service};

/// Brings a client's refresh token to the edge; what came of it, or nothing where the edge is gone.
fn renew(address: SocketAddr, tokens: &Tokens) -> Option<(u16, String)> {
    let form = format!("grant_type=refresh_token&refresh_token={}", tokens.refresh.expose());
    let head = format!(
        "POST /oauth/token HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(head.as_bytes()).ok()?;
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok()?;
    let all = String::from_utf8(all).ok()?;
    let (head, body) = all.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    // A death in the middle of an answer is no promise.
    length.filter(|length: &usize| *length == body.len())?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

fn renewed(tokens: &Tokens, body: &str) -> Tokens {
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let secret = |name: &str| Secret::new(body[name].as_str().expect("a token"));
    Tokens { grant: tokens.grant.clone(), access: secret("access_token"), refresh: secret("refresh_token") }
}

/// So many logins of a tenant of each one's own.
fn logins(keeper: &File, count: usize) -> Vec<Tokens> {
    let one = |place: usize| log_in(keeper, &invite(keeper, &format!("t{place}")), RESOURCE).expect("let in");
    (0..count).map(one).collect()
}

#[test]
fn two_commands_and_a_service_that_write_at_once_lose_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let state = place.path().join("oauth.json");
    let keeper = file(&state);
    let before = logins(&keeper, 3);
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let over = AtomicBool::new(false);
    let (after, made) = std::thread::scope(|scope| {
        let client = |mut tokens: Tokens| {
            let over = &over;
            scope.spawn(move || {
                let mut count = 0;
                while !over.load(Ordering::Relaxed) || count < RENEWALS {
                    let (status, body) = renew(address, &tokens).expect("an answer");
                    assert_eq!(status, 200, "after {count} renewals: {body}");
                    tokens = renewed(&tokens, &body);
                    count += 1;
                }
                (tokens, count)
            })
        };
        let clients: Vec<_> = before.into_iter().map(client).collect();
        let command = |tenant: &'static str| {
            let state = &state;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for turn in 0..COMMANDS {
                    let made = said(&format!("invite create {tenant} --json"), state);
                    let made: serde_json::Value = serde_json::from_str(&made).expect("JSON");
                    let id = made["id"].as_str().expect("an id").to_owned();
                    if turn % 3 == 0 {
                        said(&format!("invite revoke {id}"), state);
                    } else {
                        kept.push(id);
                    }
                }
                kept
            })
        };
        let commands = [command("alice"), command("bob")];
        let made: Vec<String> = commands.into_iter().flat_map(|command| command.join().expect("ended")).collect();
        over.store(true, Ordering::Relaxed);
        let after: Vec<_> = clients.into_iter().map(|client| client.join().expect("ended")).collect();
        (after, made)
    });
    let (found, _) = keeper.read().expect("read");
    let open: Vec<_> = found.invites().map(|(id, _)| id.to_string()).filter(|id| made.contains(id)).collect();
    assert_eq!(
        (open.len(), made.len()),
        (2 * (COMMANDS - COMMANDS.div_ceil(3)), 2 * (COMMANDS - COMMANDS.div_ceil(3)))
    );
    assert_eq!(found.invites().count(), 3 + made.len(), "and what was revoked stays so");
    let view = View::from(found);
    for (tokens, count) in after {
        assert!(count >= RENEWALS);
        let access = view.access(&tokens.access, kit::clock::since_epoch()).expect("the last counts");
        assert_eq!(access.grant, tokens.grant);
        assert_eq!(renew(address, &tokens).expect("an answer").0, 200);
    }
    service.stop();
}

#[test]
fn a_renewal_is_seen_by_the_very_next_request_and_a_replay_ends_it() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let keeper = file(&place.path().join("oauth.json"));
    let first = log_in(&keeper, &invite(&keeper, "alice"), RESOURCE).expect("let in");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let status = |tokens: &Tokens| post(address, "/", Some(tokens.access.expose()), &[], INITIALIZE).status;
    let mut tokens = renewed(&first, &renew(address, &first).expect("an answer").1);
    for _ in 0..20 {
        assert_eq!(status(&tokens), 200);
        tokens = renewed(&tokens, &renew(address, &tokens).expect("an answer").1);
    }
    let (replayed, body) = renew(address, &first).expect("an answer");
    assert_eq!((replayed, body.contains("invalid_grant")), (400, true), "{body}");
    assert_eq!(status(&tokens), 401);
    assert_eq!(renew(address, &tokens).expect("an answer").0, 400);
    service.stop();
}

#[test]
fn a_state_that_somebody_holds_is_told_with_503_and_holds_up_nothing_else() {
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let keeper = file(&place.path().join("oauth.json"));
    let tokens = log_in(&keeper, &invite(&keeper, "alice"), RESOURCE).expect("let in");
    let mut service = Service::start(native(place.path()));
    let address = service.ready();
    let lock = std::fs::File::open(place.path().join("oauth.json.lock")).expect("opened");
    flock(lock.as_fd(), FlockOperation::NonBlockingLockExclusive).expect("held");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| renew(address, &tokens).expect("an answer"));
        // Each opens a session, of which a tenant has so many.
        for _ in 0..10 {
            assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
            assert_eq!(post(address, "/", Some(tokens.access.expose()), &[], INITIALIZE).status, 200);
        }
        assert!(!waiting.is_finished(), "all of them were answered meanwhile");
        let (status, body) = waiting.join().expect("ended");
        assert_eq!(status, 503, "{body}");
        assert!(body.contains("does not know whether it was done"), "{body}");
    });
    drop(lock);
    service.stop();
}

/// Every tenth of the kills of `PLAYGROUND_TEST_KILLS`: each costs the start of a service.
#[test]
#[expect(clippy::disallowed_methods, reason = "the long run is asked for by the environment")]
fn a_service_killed_while_it_writes_has_kept_all_that_it_had_answered() {
    let kills: u64 = std::env::var("PLAYGROUND_TEST_KILLS").map_or(40, |text| text.parse().expect("a number"));
    let place = tempfile::tempdir().expect("a folder");
    FakeWorker::start(Manner::Answers).write(place.path());
    let state = place.path().join("oauth.json");
    let keeper = file(&state);
    let mut clients = logins(&keeper, 3);
    let (mut answered, mut unknown) = (0, 0);
    for turn in 0..kills.div_ceil(10) {
        let mut service = Service::start(native(place.path()));
        let address = service.ready();
        let edge = service.child("__edge");
        let last: Vec<(Tokens, u64)> = std::thread::scope(|scope| {
            let client = |mut tokens: Tokens| {
                scope.spawn(move || {
                    let mut count = 0;
                    while let Some((status, body)) = renew(address, &tokens) {
                        if status != 200 {
                            assert_eq!(status, 503, "{body}");
                            break;
                        }
                        tokens = renewed(&tokens, &body);
                        count += 1;
                    }
                    (tokens, count)
                })
            };
            let running: Vec<_> = clients.drain(..).map(client).collect();
            // Some renewals later, whatever is being written then.
            let moment = Duration::from_micros(50_000 + turn.wrapping_mul(7_919_003) % 300_000);
            assert!(!edge.gone_within(moment));
            service.signal(rustix::process::Signal::KILL);
            running.into_iter().map(|client| client.join().expect("ended")).collect()
        });
        service.ended_within(PATIENCE);
        assert!(edge.gone_within(PATIENCE));
        let (found, _) = keeper.read().expect("a whole state");
        let view = View::from(found);
        for (tokens, count) in last {
            answered += count;
            let access = view.access(&tokens.access, kit::clock::since_epoch());
            assert_eq!(access.map(|access| access.grant), Some(tokens.grant.clone()), "an answer was lost");
            clients.push(match super::refresh(&keeper, &tokens) {
                Ok(next) => next,
                // The one that was under way was done, and its answer was lost with the service.
                Err(Denied::SpentRefresh) => {
                    unknown += 1;
                    log_in(&keeper, &invite(&keeper, "again"), RESOURCE).expect("let in")
                }
                Err(other) => panic!("{other}"),
            });
        }
    }
    let line = format!("services: {} killed, {answered} answers kept, {unknown} not known\n", kills.div_ceil(10));
    std::io::stderr().lock().write_all(line.as_bytes()).expect("written");
    assert!(answered > 0);
    // Nothing is left beside the state once another has written.
    said("invite create alice", &state);
    let left = |name: &str| name.contains(".new-");
    let names = std::fs::read_dir::<&Path>(place.path()).expect("listed");
    let names = names.map(|entry| entry.expect("listed").file_name().to_string_lossy().into_owned());
    assert_eq!(names.filter(|name| left(name)).count(), 0);
}

const RENEWALS: usize = 25;
const COMMANDS: usize = 12;
