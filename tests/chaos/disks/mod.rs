//! Disks that lose, refuse or change what was written.

mod bit_rot;
mod faults;
pub mod full_disk;
mod io_faults;
mod power_cuts;
