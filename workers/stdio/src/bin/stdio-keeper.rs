//! The keeper of a stdio server, for tests that drive the bridge without the product's own binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    return stdio::keeper_main();
    #[cfg(not(target_os = "linux"))]
    ExitCode::FAILURE
}
