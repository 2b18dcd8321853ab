//! `quickstart`: the first command of a new user, which may be repeated at any time.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::host::{isolates, remove};
use crate::process::{PATIENCE, Service, playground, program, run, text};

/// A quickstart that runs, and what it printed to paste.
fn quickstart(state: &Path, more: &[&str]) -> (Service, String) {
    let mut command = playground(["quickstart", "--bind", "127.0.0.1:0", "--state"]);
    command.arg(state).args(more).stdout(Stdio::piped());
    let mut service = Service::start(command);
    let stdout = service.stdout.take().expect("piped");
    service.ready();
    // The ready line comes last, so all there is to paste has been written.
    let mut lines = Vec::new();
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        let last = line.contains("curl ");
        lines.push(line);
        if last {
            break;
        }
    }
    (service, lines.join("\n"))
}

#[test]
fn twice_finds_what_the_first_made_and_never_shows_the_token() {
    if !isolates("quickstart twice") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("it's mine");
    let (mut first, pasted) = quickstart(&state, &[]);
    let file = state.join("tokens/me.token");
    let token = std::fs::read_to_string(&file).expect("minted").trim().to_owned();
    assert!(token.starts_with("pgt_"));
    assert!(!pasted.contains(&token) && !first.rest().contains(&token), "the token is not shown");
    assert!(pasted.contains("claude mcp add --transport http") && pasted.contains("\"mcpServers\""), "{pasted}");
    first.stop();
    let (mut second, pasted) = quickstart(&state, &[]);
    assert_eq!(std::fs::read_to_string(&file).expect("kept").trim(), token, "the same token");
    assert!(second.log.iter().any(|line| line.contains("found the sandbox of me")), "{}", second.rest());
    assert!(!pasted.contains(&token) && !second.rest().contains(&token));
    second.stop();
    let (third, pasted) = quickstart(&state, &["--show-token"]);
    assert!(pasted.contains(&token), "now it was asked for");
    third.stop();
    let mut list = playground(["token", "list", "--state"]);
    list.arg(&state);
    assert_eq!(text(&run(list).stdout).lines().count(), 1, "one token was minted");
    remove(&state, "me");
    assert!(!file.exists(), "a token that opens nothing is not left behind");
}

#[test]
fn a_lost_token_file_is_made_again() {
    if !isolates("quickstart resumes") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    quickstart(&state, &[]).0.stop();
    let file = state.join("tokens/me.token");
    std::fs::write(&file, "pgt_of_someone_else\n").expect("spoilt");
    quickstart(&state, &[]).0.stop();
    assert!(!std::fs::read_to_string(&file).expect("there").contains("someone_else"));
    remove(&state, "me");
}

#[test]
fn the_printed_curl_line_works_as_it_stands() {
    if !isolates("the printed curl line") {
        return;
    }
    let curl = ["/usr/bin/curl", "/bin/curl", "/usr/local/bin/curl"];
    let Some(curl) = curl.iter().find(|curl| Path::new(curl).exists()) else {
        return crate::process::skip("the printed curl line", "there is no curl");
    };
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("it's mine");
    let (mut service, pasted) = quickstart(&state, &[]);
    let line = pasted.lines().find(|line| line.trim_start().starts_with("curl ")).expect("a curl line").trim();
    let mut shell = program("/bin/sh");
    let folder = Path::new(curl).parent().expect("a folder");
    shell.arg("-c").arg(line).env("PATH", format!("{}:/bin:/usr/bin", folder.display()));
    let output = run(shell);
    assert_eq!(output.status.code(), Some(0), "{line}\n{}", text(&output.stderr));
    let answer = text(&output.stdout);
    assert!(answer.to_lowercase().contains("\nmcp-session-id: "), "the next call needs it: {answer}");
    assert!(answer.contains("\"serverInfo\""), "{line}\n{answer}\n{}", service.rest());
    service.stop();
    remove(&state, "me");
}

#[test]
fn a_state_that_is_served_already_is_refused_with_what_to_do() {
    if !isolates("quickstart beside a service") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let (first, _) = quickstart(&state, &[]);
    let mut command = playground(["quickstart", "--bind", "127.0.0.1:0", "--state"]);
    command.arg(&state);
    let second = run(command);
    assert_eq!(second.status.code(), Some(7));
    assert!(text(&second.stderr).contains("--state DIR"), "{}", text(&second.stderr));
    first.stop();
    remove(&state, "me");
}

#[test]
fn a_taken_port_is_refused_with_what_to_do() {
    if !isolates("quickstart on a taken port") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let mut command = playground(["quickstart", "--bind"]);
    command.arg(other.local_addr().expect("an address").to_string()).arg("--state").arg(&state);
    let output = run(command);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("choose another address with --bind"), "{}", text(&output.stderr));
    remove(&state, "me");
}

#[test]
fn an_interrupt_leaves_nothing_running() {
    if !isolates("quickstart's end") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let state = place.path().join("state");
    let (mut service, _) = quickstart(&state, &[]);
    let family = service.family();
    assert!(family.len() >= 2, "an edge and a worker");
    service.signal(Signal::INT);
    assert_eq!(service.ended_within(PATIENCE).code(), Some(0), "{}", service.rest());
    assert!(family.iter().all(|member| member.gone_within(std::time::Duration::from_secs(2))));
    remove(&state, "me");
}
