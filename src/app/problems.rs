//! All that stands in the way of serving, found without serving.

mod sandboxes;

use std::path::Path;

use super::{changeable, edge_user, loose, loose_at, trust};
use crate::admin::socket;
use crate::config::Config;
use crate::identity::store::Ledger;
use crate::oauth::keeper::File;
use crate::state::StateDir;

/// Each in a sentence, found without listening; blocking.
#[must_use]
pub fn problems(config: &Config) -> Vec<String> {
    let mut problems: Vec<_> = changeable::problems(config).iter().map(|fault| kit::chain(fault)).collect();
    problems.extend(sandboxes::problems(config));
    problems.extend(trust::read(config).err().map(|fault| kit::chain(&fault)));
    problems.extend(edge_user(config).err().map(|fault| kit::chain(&fault)));
    let own = |path: &&Path| config.state.as_ref().is_some_and(|state| path.parent() == Some(state.path()));
    let made_by_then = |path: &&Path| own(path) && path.parent().is_some_and(|folder| !folder.exists());
    let monitoring = config.admin_socket.as_deref().filter(|path| !made_by_then(path)).map(socket::could_listen);
    problems.extend(monitoring.and_then(Result::err).map(|fault| kit::chain(&fault)));
    let listed = Ledger::at(config.credentials.clone(), loose(config)).list();
    problems.extend(listed.err().map(|fault| kit::chain(&fault)));
    let oauth = config
        .oauth
        .as_ref()
        .map(|oauth| File::at(oauth.state.clone(), loose_at(config, &oauth.state, StateDir::oauth)));
    problems.extend(oauth.and_then(|file| file.read().err()).map(|fault| kit::chain(&fault)));
    problems
}
