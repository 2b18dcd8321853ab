//! The command line's front door, and the hidden doors through which this program starts itself again.

use std::ffi::OsStr;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Told apart before anything else runs: a tenant's first process must be single-threaded, and the children of a
    // service take their standard descriptors apart before a runtime starts.
    let verb = std::env::args_os().nth(1);
    match verb.as_deref().and_then(OsStr::to_str) {
        Some("__sandbox-init") => sandbox::init_main(),
        Some("__reap") => sandbox::reap::reap_main(),
        #[cfg(all(feature = "mcp-http", target_os = "linux"))]
        Some(playground::app::STDIO_KEEPER) => stdio::keeper_main(),
        #[cfg(feature = "mcp-http")]
        Some(playground::app::EDGE) => playground::app::edge_main(),
        #[cfg(feature = "mcp-http")]
        Some(playground::app::WORKER) => playground::app::worker_main(),
        _ => {
            // What a shell or a service manager left open here is no child's business; only a kernel that is too old
            // for the isolation as well refuses to say so.
            let _ = sandbox::keep_descriptors();
            playground::cli::main()
        }
    }
}
