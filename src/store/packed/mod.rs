//! Packed tables: tables that only grow at their ends, mostly, whose stored values are blocks of several entries.
//!
//! Everything above sees entries, as in other tables. A batch that adds many entries in one place stores a few blocks, and
//! neighbouring keys share their beginnings.

mod apply;
mod block;
mod read;

pub(super) use apply::apply;
pub(super) use block::{Entry, unpack};
pub(super) use read::{entries, get, walk};
