//! The `steward` command.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    // Without this thread, memory that a burst took goes back to the system only when more is asked for. A
    // system that cannot start it loses nothing else.
    let _unsupported = tikv_jemalloc_ctl::background_thread::write(true);
    steward::cli::main()
}
