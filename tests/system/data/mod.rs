//! The data file, its backups and its exports, with the real binary.

mod backups;
mod durability;
mod export_files;
mod organization_moves;
mod places;
mod shared_database;
