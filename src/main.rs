//! The `steward` command.

#[cfg(feature = "jemalloc")]
mod jemalloc;

fn main() -> std::process::ExitCode {
    #[cfg(feature = "jemalloc")]
    jemalloc::return_freed_memory();
    steward::run_cli()
}
