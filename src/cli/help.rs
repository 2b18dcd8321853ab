//! What stands below the help of more than one verb, or of the whole program.

#[cfg(feature = "mcp-http")]
macro_rules! halves {
    () => {
        "\
Example:
  playground worker sandbox --listen 127.0.0.1:8378 --token-file worker.token --state worker
  playground user create alice --state worker --out alice.token
  playground serve --only edge --worker 127.0.0.1:8378 --worker-token-file worker.token \\
    --state edge --tokens worker/tokens.json

The token file is made with: (umask 077; head -c 32 /dev/urandom | base64 > worker.token)

The edge asks the worker every second whom `playground user disable` has disabled there, and tells them so itself when they
open a session or log in."
    };
}

/// Shown by both halves, and run as it stands by a test.
#[cfg(feature = "mcp-http")]
pub(super) const HALVES: &str = halves!();

#[cfg(feature = "mcp-http")]
pub(super) const SANDBOX_HALF: &str = concat!(
    halves!(),
    "

Exit codes: 0 stopped, 1 failed, 2 usage, 3 not allowed, 7 the state is served already,
10 configuration (do not restart), 11 control of a command tree lost (do not restart, look)."
);

#[cfg(feature = "mcp-http")]
pub(super) const FIRST: &str = "\
Example:
  playground quickstart        # a tenant, its token, and a service on 127.0.0.1:8377

Exit codes:
   0  done, or stopped in order by a signal
   1  failed
   2  usage: the command line cannot be read
   3  not allowed: a file's mode or owner forbids it
   4  the running service cannot be reached
   5  checked, and found problems
   6  no such tenant, token or session
   7  it exists already: the file, or the service of this state
   8  asked and declined, or cut off by a second signal
  10  configuration; another start would not change it
  11  control of a command tree was lost; look before the next start

What a verb changes is on record in operator.jsonl beside it: playground audit acts

With --json, why a verb failed is the last line on stderr, as {\"error\":{\"code\":WORD,\"message\":TEXT,\"hint\":TEXT}}";

#[cfg(not(feature = "mcp-http"))]
pub(super) const FIRST: &str = "\
Example:
  playground mcp               # what an MCP client starts; this build has no server";
