//! What one tenant, or a client without a key, can do to the others. Each test measures counts, bytes, or a ratio beside
//! an unloaded run of the same test; none measures absolute times.

mod addresses;
mod answers;
mod caps;
mod connections;
mod keys;
mod mail;
mod members;
mod neighbours;
mod pages;
mod quota;
mod tells;
mod turns;
mod walks;
mod writer;
