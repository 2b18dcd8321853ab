//! Every limit of the edge, each with the reason for its default.

mod shares;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::network::Network;

/// What the edge allows. Built once, by whoever starts the edge; no stage reads anything else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub connections: Connections,
    pub requests: Requests,
    pub rates: Rates,
    pub exchanges: Exchanges,
    pub sessions: Sessions,
    pub answers: Answers,
    pub bridges: Bridges,
    pub stop: Stop,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Connections {
    /// In all. Each holds a descriptor and, when slow, some 40 KiB.
    pub most: usize,
    /// From one address (IPv6: one /64); loopback and listed proxies are exempt, since many clients stand behind them.
    pub most_per_address: usize,
    pub proxies: Vec<Network>,
    /// Whether a connection from a listed proxy begins with a PROXY header, and is closed without one. It has as long as a
    /// request head.
    pub proxy_protocol: bool,
    /// From the first byte of a request head, or from the start of the connection, to the end of that head.
    pub head: Duration,
    pub most_head_bytes: usize,
    pub most_headers: usize,
    /// Between two requests. Longer than the usual 60 s pause of a client, so that polling clients keep theirs.
    pub idle: Duration,
    /// How long a client may take not a single byte of what is ready for it.
    pub write_stall: Duration,
    /// How long a client may take over one piece of an answer, of at most 64 KiB: some 500 bytes a second. On HTTP/2,
    /// where a client that does not read leaves the socket free, this is the clock that finds it.
    pub piece: Duration,
    /// Streams of one HTTP/2 connection at a time.
    pub most_streams: u32,
    pub handshake: Duration,
    /// TLS handshakes under way, each of which holds a connection slot: half of those at the most, so that those that are
    /// served keep theirs. Beyond it the oldest goes, of whichever address has the most under way.
    pub most_handshakes: usize,
    /// Of those, from one address, beyond which its own oldest goes; exempt are the same as from the limit of its
    /// connections.
    pub most_handshakes_per_address: usize,
    /// From the order to stop, for those who have been accepted and have sent nothing of a request yet.
    pub newcomers: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Requests {
    /// Names the edge answers to, each `name` or `name:port`. None: any well-formed Host is served.
    pub hosts: Vec<String>,
    /// Of those names, the ones at which there is no logging in but by a token of the operator's, whatever the others
    /// have: clients that find they could log in leave out the token that they were given.
    pub bearer_hosts: Vec<String>,
    /// Origins whose pages may call. None: a request that carries an Origin is refused.
    pub origins: Vec<String>,
    /// Large enough for the file tools' 3 MiB in base64 with room to spare.
    pub most_body_bytes: usize,
    /// Without one byte of the body arriving.
    pub body_idle: Duration,
    /// For the whole body.
    pub body_total: Duration,
    /// Bytes a second of a body, counted once `body_idle` has passed: trickling is refused, a slow line is not.
    pub body_least_rate: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Requests a second of one tenant, sustained and at once.
    pub tenant_per_second: u32,
    pub tenant_burst: u32,
    /// Bytes of answers to one tenant, over all its connections; a quarter of a second's worth at once. At 64 KiB a piece
    /// and 64 exchanges, the least that can be set has none of them wait for longer than 4 s.
    pub tenant_bytes_per_second: u64,
    /// Failed authentications of one address. A valid credential passes even when these are used up.
    pub failures_per_minute: u32,
    pub failures_burst: u32,
    /// Refusals for want of a valid credential that are told at once, over all addresses. Those beyond them are held back
    /// for a moment, so many at a time; also those of a tenant beyond its rate.
    pub refusals_per_second: u32,
    pub refusals_burst: u32,
    pub most_held_back: usize,
    /// Questions for `/healthz` of one address, which may be that of a proxy before many: a few balancers with their
    /// checkers ask some times a second.
    pub probes_per_second: u32,
    pub probes_burst: u32,
    /// What one address asks of the paths that log clients in: one login takes some ten requests. Exempt are the same
    /// addresses as from the limit of connections.
    pub logins_per_second: u32,
    pub logins_burst: u32,
    /// Keys a table remembers; beyond them strangers share one bucket.
    pub most_tenants: usize,
    pub most_addresses: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Exchanges {
    pub most: usize,
    /// Never more than a quarter of all, whatever stands here, so that no tenant alone keeps the others out.
    pub most_per_tenant: usize,
    /// Streams without an end of their own (GET, `subscriptions/listen`) of one tenant: below the slots it has, so that
    /// it can still call while it listens.
    pub most_streams_per_tenant: usize,
    /// Request bodies held at once, and answers of bridged workers, which do not pass as they come; over all tenants. A declared length counts from the head on, and costs its sender
    /// nothing; so one tenant gets a part of this, and another part is kept for those that hold none.
    pub most_body_bytes: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// Entries of the live table. For the sandbox it is a cache: an entry that is pushed out costs no session. A native
    /// worker's session keeps its entry, and what does not fit is refused.
    pub most: usize,
    pub most_per_tenant: usize,
    pub idle: Duration,
    /// After its issue a session ends whatever it does.
    pub lifetime: Duration,
    /// Ended sessions remembered one by one for each tenant; past these the tenant's minimum issue time rises.
    pub most_tombstones_per_tenant: usize,
    /// Of each of the two files with ended sessions. One that grows is made small while the service runs: this much
    /// takes ends that have not expired, and what does not fit is refused.
    pub most_tombstone_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// Between two keep-alive comments on a silent event stream: below the 20 to 60 s after which paths cut it.
    pub comment: Duration,
    /// How long an answer is read to its end for a legacy client that has gone: at least the longest command.
    pub drain: Duration,
    /// Answers that are read whole, such as the one to `initialize`.
    pub most_buffered_bytes: usize,
    /// For how long browsers are told to come by HTTPS alone. None: they are told nothing. To be said over TLS alone.
    pub https_alone: Option<Duration>,
    /// Kept connections to one worker, and how long: below the 5 s after which common servers close them.
    pub most_pooled: usize,
    pub pool_idle: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bridges {
    /// Sessions that the edge keeps with workers on behalf of clients that have none: one for a tenant and its worker.
    pub most: usize,
    /// Without a request, after which the worker is told that the session is over.
    pub idle: Duration,
    /// Before a worker's stream that has ended is asked for again; doubled each time that nothing comes of it.
    pub again: Duration,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// What a call in flight gets to finish after the stop signal.
    pub drain: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            most: 4096,
            most_per_address: 256,
            proxies: Vec::new(),
            proxy_protocol: false,
            head: Duration::from_secs(10),
            most_head_bytes: 16 * 1024,
            most_headers: 64,
            idle: Duration::from_secs(75),
            write_stall: Duration::from_secs(30),
            piece: Duration::from_secs(120),
            most_streams: 64,
            handshake: Duration::from_secs(10),
            most_handshakes: 2048,
            most_handshakes_per_address: 32,
            newcomers: Duration::from_secs(2),
        }
    }
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            bearer_hosts: Vec::new(),
            origins: Vec::new(),
            most_body_bytes: 8 * 1024 * 1024,
            body_idle: Duration::from_secs(15),
            body_total: Duration::from_secs(120),
            body_least_rate: 256,
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            tenant_per_second: 100,
            tenant_burst: 400,
            // More than half a gigabit a second: no client's line is slower for it, and it costs the edge some percent of
            // a core.
            tenant_bytes_per_second: 64 * 1024 * 1024,
            failures_per_minute: 30,
            failures_burst: 20,
            refusals_per_second: 250,
            refusals_burst: 250,
            most_held_back: 512,
            probes_per_second: 10,
            probes_burst: 50,
            logins_per_second: 2,
            logins_burst: 60,
            most_tenants: 16 * 1024,
            most_addresses: 16 * 1024,
        }
    }
}

impl Default for Exchanges {
    fn default() -> Self {
        Self { most: 1024, most_per_tenant: 64, most_streams_per_tenant: 32, most_body_bytes: 256 * 1024 * 1024 }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self {
            most: 16 * 1024,
            most_per_tenant: 1024,
            idle: Duration::from_secs(24 * 3600),
            lifetime: Duration::from_secs(7 * 24 * 3600),
            most_tombstones_per_tenant: 1024,
            // Half a million ends. A client that does nothing but open and end sessions must not fill the disk.
            most_tombstone_bytes: 64 * 1024 * 1024,
        }
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self {
            comment: Duration::from_secs(15),
            drain: Duration::from_secs(31 * 60),
            most_buffered_bytes: 1024 * 1024,
            https_alone: None,
            most_pooled: 32,
            pool_idle: Duration::from_secs(4),
        }
    }
}

impl Default for Bridges {
    fn default() -> Self {
        Self { most: 1024, idle: Duration::from_secs(30 * 60), again: Duration::from_millis(250) }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self { drain: Duration::from_secs(30) }
    }
}

#[cfg(test)]
mod tests;
