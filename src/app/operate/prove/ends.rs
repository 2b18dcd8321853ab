//! A command that is cancelled is dead with all that it started, and nobody else is.

use std::os::fd::OwnedFd;

use sandbox::backend::{Direct, Ends, Proof};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::Receiver;

use super::{Pair, broken, each, examine};
use crate::admin::words::Check;

pub(super) const TREE: &str = "prove-cancel-tree";
pub(super) const SPARES: &str = "prove-cancel-spares";

pub(super) async fn tried(pair: Pair<'_>) -> Vec<Check> {
    if pair.sandbox.assurances().proof == Proof::None {
        let why = "this backend cannot prove that a command is dead, says so, and refuses background jobs";
        return each(&[TREE, SPARES], |id| Check::not_tried(id, why));
    }
    match attempted(pair).await {
        Ok(proofs) => proofs,
        Err(why) => each(&[TREE, SPARES], |id| broken(id, why.clone())),
    }
}

async fn attempted(pair: Pair<'_>) -> Result<Vec<Check>, String> {
    let mut bystanders = Vec::new();
    for tenant in [pair.one, pair.other] {
        bystanders.push(examine::start(pair.sandbox, tenant, BYSTANDER).await?);
    }
    let tree = cancelled(pair).await;
    let seen = pair.output(LIST).await;
    let spared = bystanders.iter().all(|bystander| bystander.command.is_populated());
    for bystander in bystanders {
        pair.sandbox.end(&*bystander.command).await.map_err(|fault| kit::chain(&fault))?;
    }
    let tree = match (tree, seen) {
        (Err(why), _) | (_, Err(why)) => broken(TREE, why),
        (Ok(()), Ok(seen)) if seen.contains(MARK) => {
            broken(TREE, "a later command sees a process of the cancelled one")
        }
        (Ok(()), Ok(_)) => Check::pass(
            TREE,
            "a tree with processes that forked twice, left its session and ignore SIGTERM is proven dead",
        ),
    };
    let spares = if spared {
        Check::pass(SPARES, "another command of the same tenant and one of its neighbour lived on")
    } else {
        broken(SPARES, "a command that was not cancelled is dead")
    };
    Ok(vec![tree, spares])
}

/// Starts a tree that does not want to end, ends it, and has the kernel's word for it.
async fn cancelled(pair: Pair<'_>) -> Result<(), String> {
    let Direct { ends, command } = examine::start(pair.sandbox, pair.one, STUBBORN).await?;
    let up = match ends {
        Ends::Pipes { stdout, .. } => tokio::time::timeout(examine::PATIENCE, first_line(stdout)).await,
        Ends::Terminal(_) => return Err("there are no pipes".to_owned()),
    };
    let was_there = command.is_populated();
    pair.sandbox.end(&*command).await.map_err(|fault| kit::chain(&fault))?;
    match up {
        Ok(Ok(line)) if line == "up\n" && was_there => {}
        _ => return Err("a command does not begin in time".to_owned()),
    }
    if command.is_populated() { Err("a tree that was ended is alive".to_owned()) } else { Ok(()) }
}

async fn first_line(stdout: OwnedFd) -> std::io::Result<String> {
    let mut line = String::new();
    BufReader::new(Receiver::from_owned_fd(stdout)?).read_line(&mut line).await?;
    Ok(line)
}

const BYSTANDER: &str = "sleep 1000";

/// In no other command line.
const MARK: &str = "31415.9265";

const STUBBORN: &str = "
trap '' TERM INT HUP
daemon=$(command -v setsid) || { command -v daemon > /dev/null && daemon='daemon -f'; }
($daemon sh -c 'trap \"\" TERM HUP; sleep 31415.9265 & sleep 31415.9265' &)
(sh -c '(trap \"\" TERM; exec sleep 31415.9265) &' &)
sleep 31415.9265 & echo up; sleep 31415.9265; :";

const LIST: &str = r"ps axww -o args 2> /dev/null || for process in /proc/[0-9]*; do tr '\0' ' ' < $process/cmdline; echo; done 2> /dev/null; :";
