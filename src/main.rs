//! The `steward` command.

fn main() -> std::process::ExitCode {
    #[cfg(feature = "jemalloc")]
    jemalloc::return_freed_memory();
    steward::run_cli()
}

/// The allocator of packages.
#[cfg(feature = "jemalloc")]
mod jemalloc {
    use tikv_jemalloc_ctl::{Access, AsName, Result, background_thread};

    #[global_allocator]
    static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

    /// The milliseconds after which the allocator returns freed memory to the system.
    const DECAY_MILLISECONDS: isize = 2_000;

    /// Makes the allocator return freed memory to the system. If the allocator refuses the settings, its
    /// defaults apply and it returns memory later.
    pub(super) fn return_freed_memory() {
        let _refused = set_decay();
    }

    /// Starts a thread that returns freed memory. Without it, memory is only returned when the process allocates again.
    fn set_decay() -> Result<()> {
        // The first arena exists already; the second name sets the default of later arenas.
        for name in [b"arena.0.dirty_decay_ms\0".as_slice(), b"arenas.dirty_decay_ms\0"] {
            name.name().write(DECAY_MILLISECONDS)?;
        }
        background_thread::write(true)
    }
}
