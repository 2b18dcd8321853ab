//! A person's terminal: a pty, with the program as its session's first process.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::process::{PATIENCE, Watched, program};

pub(crate) struct Person {
    keys: File,
    /// The program's side, which stays open so that it can be looked at.
    inner: OwnedFd,
    pub(crate) child: Child,
    screen: Receiver<Vec<u8>>,
    pub(crate) seen: String,
}

impl Person {
    /// Starts `playground` with these arguments on a terminal of its own.
    pub(crate) fn types(playground: &Command) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let outer = openpt(flags).expect("a terminal");
        unlockpt(&outer).expect("unlocked");
        let inner = ioctl_tiocgptpeer(&outer, flags).expect("its inner side");
        resize(&outer, 24, 80);
        let mut command = program("/usr/bin/setsid");
        command.arg("--ctty").arg(playground.get_program()).args(playground.get_args());
        command.envs(playground.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm-test");
        let side = || Stdio::from(inner.try_clone().expect("copied"));
        let child = command.stdin(side()).stdout(side()).stderr(side()).spawn().expect("starts");
        let (tell, screen) = channel();
        let mut reading = File::from(outer.try_clone().expect("copied"));
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(read) = reading.read(&mut piece) {
                if tell.send(piece[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { keys: File::from(outer), inner, child, screen, seen: String::new() }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("pressed");
    }

    /// Waits until the screen shows this after what was waited for last.
    pub(crate) fn sees(&mut self, what: &str) {
        let deadline = kit::clock::now() + PATIENCE;
        let mut rest = std::mem::take(&mut self.seen);
        while !rest.contains(what) {
            match self.screen.recv_timeout(deadline.saturating_duration_since(kit::clock::now())) {
                Ok(piece) => rest.push_str(&String::from_utf8_lossy(&piece)),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => panic!("no {what:?} in: {rest}"),
            }
        }
        let end = rest.find(what).map_or(0, |at| at + what.len());
        self.seen = rest.split_off(end);
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        resize(&self.keys, rows, columns);
    }

    /// How the terminal is set now.
    pub(crate) fn manners(&self) -> Termios {
        tcgetattr(&self.inner).expect("asked")
    }

    pub(crate) fn ended(&mut self) -> ExitStatus {
        assert!(Watched::of(self.child.id()).gone_within(PATIENCE), "it did not end");
        self.child.wait().expect("ended")
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(terminal: impl std::os::fd::AsFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("resized");
}
