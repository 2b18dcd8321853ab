//! The verbs: what each is called, and who does it.

use std::process::ExitCode;

use clap::Subcommand;

#[cfg(feature = "tls")]
use super::cert;
use super::failure::Failure;
use super::mcp;
#[cfg(feature = "mcp-http")]
use super::{
    audit, bundle, check_config, clean, client, connect, doctor, exec, grant, invite, papers, quickstart, reload,
    sandbox, serve, session, session_key, shell, status, token, user, worker,
};
use crate::telemetry::Verbosity;

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    /// Set up a private service with one tenant, start it, and print what to paste into a client.
    #[cfg(feature = "mcp-http")]
    Quickstart(quickstart::Quickstart),
    /// Run the service: the edge, and the sandbox worker behind it.
    #[cfg(feature = "mcp-http")]
    #[command(alias = "mcp-http")]
    Serve(Box<serve::Serve>),
    #[cfg(feature = "mcp-http")]
    CheckConfig(Box<check_config::CheckConfig>),
    #[cfg(feature = "mcp-http")]
    Reload(reload::Reload),
    /// Serve one sandbox to a local MCP client over stdin and stdout, with no network.
    Mcp(Box<mcp::Mcp>),
    /// Make, list and remove tenants.
    #[cfg(feature = "mcp-http")]
    User(Box<user::User>),
    /// Mint, list, rotate and revoke the tokens that clients present.
    #[cfg(feature = "mcp-http")]
    Token(token::Token),
    /// Make, list and revoke the invites by which people let their clients in.
    #[cfg(feature = "mcp-http")]
    Invite(Box<invite::Invite>),
    /// List and revoke what clients were given by logging in.
    #[cfg(feature = "mcp-http")]
    Grant(grant::Grant),
    /// List and end the public sessions of the running service.
    #[cfg(feature = "mcp-http")]
    Session(session::Session),
    /// Add, list and remove the programs that people may let in, where they do not register themselves.
    #[cfg(feature = "mcp-http")]
    Client(client::Client),
    /// Change the keys that seal public sessions.
    #[cfg(feature = "mcp-http")]
    SessionKey(session_key::SessionKey),
    /// Make a certificate for trying the edge out.
    #[cfg(feature = "tls")]
    Cert(cert::Cert),
    #[cfg(feature = "mcp-http")]
    Connect(connect::Connect),
    #[cfg(feature = "mcp-http")]
    Exec(exec::Exec),
    #[cfg(feature = "mcp-http")]
    Shell(shell::Shell),
    #[cfg(feature = "mcp-http")]
    Status(status::Status),
    #[cfg(feature = "mcp-http")]
    Doctor(doctor::Doctor),
    #[cfg(feature = "mcp-http")]
    Clean(Box<clean::Clean>),
    #[cfg(feature = "mcp-http")]
    Sandbox(sandbox::Sandbox),
    #[cfg(feature = "mcp-http")]
    Bundle(bundle::Bundle),
    /// Look at the record of calls, and check that it was not changed.
    #[cfg(feature = "mcp-http")]
    Audit(audit::Audit),
    /// List, add, check and remove native workers; run one, or the sandbox worker, on its own.
    #[cfg(feature = "mcp-http")]
    Worker(worker::Worker),
    #[cfg(feature = "mcp-http")]
    Completions(papers::Completions),
    #[cfg(feature = "mcp-http")]
    Man(papers::Manual),
}

impl Verb {
    /// Does what it says; the exit code, where there was no failure.
    #[cfg_attr(not(feature = "mcp-http"), expect(unused_variables, reason = "only what serves says more or less"))]
    pub(super) fn run(self, verbosity: Verbosity) -> Result<ExitCode, Failure> {
        let done = match self {
            #[cfg(feature = "mcp-http")]
            Self::Audit(audit) => return audit.run(),
            #[cfg(feature = "mcp-http")]
            Self::CheckConfig(check) => return check.run(verbosity).map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Worker(worker) => return worker.run().map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Status(status) => return status.run().map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Doctor(doctor) => return doctor.run().map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Exec(exec) => return exec.run().map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Shell(shell) => return shell.run().map(ExitCode::from),
            #[cfg(feature = "mcp-http")]
            Self::Quickstart(quickstart) => quickstart.run(verbosity),
            #[cfg(feature = "mcp-http")]
            Self::Serve(serve) => serve.run(verbosity),
            #[cfg(feature = "mcp-http")]
            Self::Reload(reload) => reload.run(),
            #[cfg(feature = "mcp-http")]
            Self::Connect(connect) => connect.run(),
            Self::Mcp(mcp) => mcp.run(),
            #[cfg(feature = "mcp-http")]
            Self::User(user) => user.run(),
            #[cfg(feature = "mcp-http")]
            Self::Token(token) => token.run(),
            #[cfg(feature = "mcp-http")]
            Self::Invite(invite) => invite.run(),
            #[cfg(feature = "mcp-http")]
            Self::Grant(grant) => grant.run(),
            #[cfg(feature = "mcp-http")]
            Self::Session(session) => session.run(),
            #[cfg(feature = "mcp-http")]
            Self::Client(client) => client.run(),
            #[cfg(feature = "mcp-http")]
            Self::SessionKey(key) => key.run(),
            #[cfg(feature = "tls")]
            Self::Cert(cert) => cert.run(),
            #[cfg(feature = "mcp-http")]
            Self::Completions(completions) => completions.run(),
            #[cfg(feature = "mcp-http")]
            Self::Man(manual) => manual.run(),
            #[cfg(feature = "mcp-http")]
            Self::Clean(clean) => clean.run(),
            #[cfg(feature = "mcp-http")]
            Self::Sandbox(sandbox) => sandbox.run(),
            #[cfg(feature = "mcp-http")]
            Self::Bundle(bundle) => bundle.run(),
        };
        done.map(|()| ExitCode::SUCCESS)
    }

    /// Whether a program reads what comes of it, also why it failed.
    #[cfg(feature = "mcp-http")]
    pub(super) fn is_for_programs(&self) -> bool {
        match self {
            Self::User(user) => user.is_for_programs(),
            Self::Doctor(doctor) => doctor.is_for_programs(),
            Self::CheckConfig(check) => check.is_for_programs(),
            Self::Worker(worker) => worker.is_for_programs(),
            Self::Token(token) => token.is_for_programs(),
            Self::Connect(connect) => connect.is_for_programs(),
            Self::Status(status) => status.is_for_programs(),
            Self::Invite(invite) => invite.is_for_programs(),
            Self::Grant(grant) => grant.is_for_programs(),
            Self::Session(session) => session.is_for_programs(),
            Self::Bundle(bundle) => bundle.is_for_programs(),
            Self::Client(client) => client.is_for_programs(),
            #[cfg(feature = "tls")]
            Self::Cert(_) => false,
            Self::Quickstart(_)
            | Self::Serve(_)
            | Self::Reload(_)
            | Self::Mcp(_)
            | Self::SessionKey(_)
            | Self::Exec(_)
            | Self::Audit(_)
            | Self::Shell(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Sandbox(_)
            | Self::Clean(_) => false,
        }
    }
}
