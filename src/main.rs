//! The `steward` command.

use tikv_jemalloc_ctl::{Access, AsName, background_thread};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// After how many milliseconds freed memory is given back to the system.
const DECAY: isize = 2_000;

fn main() -> std::process::ExitCode {
    // An allocator that refuses goes on with its defaults: it gives memory back later.
    let _refused = return_memory();
    steward::cli::main()
}

/// Has a thread give freed memory back. Without it that happens only when more is asked for.
fn return_memory() -> tikv_jemalloc_ctl::Result<()> {
    // The first arena is there already; the others are yet to come.
    for name in [b"arena.0.dirty_decay_ms\0".as_slice(), b"arenas.dirty_decay_ms\0"] {
        name.name().write(DECAY)?;
    }
    background_thread::write(true)
}
