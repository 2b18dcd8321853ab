//! A tenant's first process, for tests that drive the Linux backend without the product's own binary.

fn main() -> std::process::ExitCode {
    sandbox::init_main()
}
