//! A subreaper: the orphans among its descendants become its children, of which `/proc` tells and `wait` is sure.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, set_child_subreaper, waitid};

use super::Reaper;

pub(crate) const IS_HERE: bool = true;

pub(crate) struct Own(());

impl Reaper for Own {
    fn acquire() -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self(()))
    }

    fn kill_all(&mut self) -> io::Result<()> {
        // Children alone: until it is collected here, no other process can have a child's number. Theirs become ours.
        for child in children()? {
            let _ = kill_process(child, Signal::KILL);
        }
        Ok(())
    }

    fn count(&mut self) -> io::Result<usize> {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::All, look) {
            Err(Errno::CHILD) => Ok(0),
            // One that is born while the table is read is not in the list.
            Ok(_) => Ok(children()?.len().max(1)),
            Err(fault) => Err(fault.into()),
        }
    }
}

fn children() -> io::Result<Vec<Pid>> {
    let ours = getpid().as_raw_nonzero().get();
    let entries = fs::read_dir("/proc")?;
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    Ok(processes.filter(|process| parent(*process) == Some(ours)).filter_map(Pid::from_raw).collect())
}

fn parent(process: i32) -> Option<i32> {
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    // A name may hold anything, so what follows is counted from its end: the state, then the parent.
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
