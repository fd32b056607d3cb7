//! Who the caller is, and what the caller may do.

mod authorization;
mod keys;
mod revocation;
