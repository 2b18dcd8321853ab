//! `shell`: a real terminal inside, and the person's own as it was afterwards.

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::LocalModes;

use super::setting::{EVERY_WAY, Served, Setting};
use crate::process::text;
use crate::terminal::Person;

#[test]
fn a_shell_has_a_terminal_with_jobs_and_sizes_and_gives_its_code() {
    for served in EVERY_WAY {
        let Some(setting) = Setting::with_alice("shell", served) else { return };
        let mut person = Person::types(&setting.command(&["shell", "alice"]));
        let before = person.manners();
        assert!(before.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO));
        person.sees("alice:");
        // Split, so that the echo of the keys is not taken for the answer.
        person.press("echo re''ady $TERM $(tty)\r");
        person.sees("ready xterm-test /dev/pts/");
        assert!(!person.manners().local_modes.contains(LocalModes::ICANON), "every key goes inside");
        person.press("stty size | sed s/^/size=/\r");
        person.sees("size=24 80");
        person.resize(50, 132);
        person.press("until stty size | grep -q '50 132'; do :; done; echo gr''own\r");
        person.sees("grown");
        person.press("PS1=pro''mpt\r");
        person.sees("prompt");
        // It starts nothing: a stop that meets a shell between its vfork and its child's exec stops the child alone, on
        // any Linux, and the shell above hears of nothing.
        let counts = r#"sh -c 'trap "echo aw\"\"ake" CONT; echo sl""eeping; while :; do read line; done'"#;
        person.press(&format!("{counts}\r"));
        person.sees("sleeping");
        person.press("\x1a");
        person.sees("Stopped");
        // Seen only once it has the terminal again: a key that comes before is not for it.
        person.press("fg\r");
        person.sees("awake");
        person.press("\x03");
        // Keys that come before may go with those that Ctrl-C throws away.
        person.sees("prompt");
        person.press("echo code=$?\r");
        person.sees("code=130");
        person.press("exit 5\r");
        assert_eq!(person.ended().code(), Some(5), "{served:?}");
        assert_eq!(person.manners().local_modes, before.local_modes, "as it was");
        setting.end();
    }
}

#[test]
fn however_a_shell_ends_the_terminal_is_as_it_was() {
    let Some(setting) = Setting::with_alice("ends of a shell", Served::Service) else { return };
    for (end, code) in [("kill", 137), ("signal", 143), ("worker", 4)] {
        let mut person = Person::types(&setting.command(&["shell", "alice"]));
        let before = person.manners();
        person.press("echo re''ady\r");
        person.sees("ready");
        match end {
            "kill" => {
                let stopped = setting.run(&["exec", "alice", "--", "sh", "-c", "kill -9 -1"]);
                assert_eq!(stopped.status.code(), Some(0), "{}", text(&stopped.stderr));
            }
            "signal" => kill_process(Pid::from_child(&person.child), Signal::TERM).expect("signalled"),
            _ => setting.service.as_ref().expect("served").child("__worker").kill(),
        }
        let status = person.ended();
        assert_eq!(status.code(), Some(code), "{end}");
        assert_eq!(person.manners().local_modes, before.local_modes, "{end}");
        assert_eq!(person.manners().output_modes, before.output_modes, "{end}");
    }
    setting.end();
}

#[test]
fn without_a_terminal_there_is_no_shell() {
    let Some(setting) = Setting::with_alice("a shell without a terminal", Served::Nobody) else { return };
    let refused = setting.run(&["shell", "alice"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("playground exec"), "{}", text(&refused.stderr));
    setting.end();
}

#[test]
fn a_tenant_cannot_type_into_the_terminal_of_the_person() {
    let Some(setting) = Setting::with_alice("typing into a terminal", Served::Service) else { return };
    let mut person = Person::types(&setting.command(&["shell", "alice"]));
    person.press("echo re''ady\r");
    person.sees("ready");
    // TIOCSTI on the terminal that the tenant has: even that one is refused.
    let typing = "python3 -c 'import fcntl,termios; fcntl.ioctl(0, termios.TIOCSTI, b\"x\")' || perl -e 'ioctl(STDIN, 0x5412, \"x\") || exit 9'; echo code=$?\r";
    person.press(typing);
    person.sees("code=");
    person.sees("\n");
    person.press("ls /proc/self/fd | tr '\\n' ,; echo en''d\r");
    person.sees("0,1,2,");
    person.press("exit\r");
    person.ended();
    setting.end();
}
