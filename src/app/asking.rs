//! Who may ask something of a running service: its operators at their socket, and whoever sends a hangup.

use kit::tasks::Tasks;
use tokio::sync::mpsc;

use super::BuildError;
use super::fault::io;
use crate::admin::operator::{self, Asked};
use crate::config::Config;
use crate::signal::{Hangup, Hangups};

/// The operator's questions, from a socket where there is a state to keep it in.
pub(super) fn operators(config: &Config, tasks: &Tasks, ask: mpsc::Sender<Asked>) -> Result<(), BuildError> {
    if let Some(state) = &config.state {
        let listener = operator::bind(&state.operator_socket()).map_err(io("make the operator socket"))?;
        tasks.start(operator::serve(listener, ask));
    }
    Ok(())
}

/// A hangup asks for a reload, unless it is that of the terminal.
pub(super) async fn heed(mut hangups: Hangups, ask: mpsc::Sender<Asked>) {
    loop {
        let asked = match hangups.next().await {
            Hangup::Asked => Asked::Reload(None),
            Hangup::TerminalGone => Asked::TerminalGone,
        };
        if ask.send(asked).await.is_err() {
            return;
        }
    }
}
