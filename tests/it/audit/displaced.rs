//! A record that is moved or deleted while it is written to.

use std::fs;
use std::path::Path;

use super::{CALL, command, lines, recorded, verified};
use crate::admin_socket::get;
use crate::fake_worker::{INITIALIZE, PUBLIC};
use crate::http::post;
use crate::process::{Service, playground, run, text};
use playground::audit::Folder;

fn status(place: &Path) -> (Option<i32>, String) {
    let mut command = playground(["status", "--state", "state", "--tokens", "tokens.json"]);
    command.current_dir(place);
    let output = run(command);
    (output.status.code(), text(&output.stdout))
}

#[test]
fn a_record_that_was_moved_or_deleted_goes_on_in_its_place_and_status_says_so() {
    type Lose = fn(&Path);
    let ways: [Lose; 3] = [
        |file| fs::rename(file, file.with_extension("away")).expect("moved"),
        |file| fs::remove_file(file).expect("removed"),
        |file| {
            fs::copy(file, file.with_extension("copy")).expect("copied");
            fs::rename(file.with_extension("copy"), file).expect("moved");
        },
    ];
    for (at, lose) in ways.into_iter().enumerate() {
        let place = tempfile::tempdir().expect("a folder");
        let mut service = Service::start(command(place.path(), ""));
        let address = service.ready();
        assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
        let folder = Folder { path: place.path().join("state"), keep: 16 };
        recorded(&folder, "initialize");
        lose(&folder.current());
        service.line_with("was moved or deleted");
        let (code, said) = status(place.path());
        assert_eq!(code, Some(5), "{said}");
        assert!(said.starts_with("problem\t") && said.contains("audit.jsonl was moved or deleted"), "{said}");
        let opened = post(address, "/", Some(PUBLIC), &[], INITIALIZE);
        let session = opened.head.get("mcp-session-id").expect("a session").clone();
        assert_eq!(post(address, "/", Some(PUBLIC), &[("mcp-session-id", &session)], CALL).status, 200);
        service.stop();
        let all = lines(&folder);
        assert!(all.iter().any(|line| line["tool"] == "dig"), "{at}: {all:?}");
        assert!(all.iter().any(|line| line["displaced"] == true), "{at}: {all:?}");
        let report = verified(&folder);
        assert_eq!(report.faults, [], "{at}");
        assert!(report.notes.iter().any(|note| note.contains("moved or deleted")), "{at}: {:?}", report.notes);
        assert_eq!(report.first == Some(1), at == 2, "{at}: it goes on with the next number");
    }
}

#[test]
fn calls_are_refused_where_nothing_can_be_written_in_its_place_and_that_is_wished() {
    for (more, status_of_call) in [("", 200), ("[audit]\non_failure = \"refuse\"\n", 503)] {
        let place = tempfile::tempdir().expect("a folder");
        let mut service = Service::start(command(place.path(), more));
        let address = service.ready();
        assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
        let file = place.path().join("state/audit.jsonl");
        let away = place.path().join("state/away");
        // Built aside, so that the path is never empty for a look between both.
        let pipe = place.path().join("state/pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
            .expect("made");
        fs::hard_link(&file, &away).expect("linked");
        fs::rename(&pipe, &file).expect("moved");
        service.line_with("the record of calls cannot be written");
        assert!(get(&place.path().join("state/admin.sock"), "/readyz").text.contains(r#""audit":false"#));
        assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, status_of_call);
        let (code, said) = status(place.path());
        assert_eq!(code, Some(5), "{said}");
        assert!(said.contains("a FIFO"), "{said}");
        fs::rename(&away, &file).expect("moved back");
        service.line_with("the record of calls is written again");
        assert_eq!(post(address, "/", Some(PUBLIC), &[], INITIALIZE).status, 200);
        service.stop();
        let report = verified(&Folder { path: place.path().join("state"), keep: 16 });
        assert_eq!((report.faults, report.first), (Vec::new(), Some(1)));
    }
}
