//! The storage layer. No other folder uses redb.
//!
//! Each type of record has one table. The store keeps its secondary indexes, counts and sums up to date
//! ([`record`]). Each request reads from one [`Snapshot`], so its response is consistent. Changes go through
//! [`Store::write`]: the writer thread runs the rule inside the current transaction, undoes all of it if it
//! fails, and returns once it is on disk.
//!
//! This file only declares and re-exports. A room is a folder or a file. It uses only rooms before it in this order: `values`,
//! `disk`, `packed`, `reads`, `record`, `changes`, `write`, `kinds`, `format`, `origin`, `writer`, `opening`, `whole`, `export`,
//! `node`. In a room, `pub` marks what other rooms may use. What others than the store may use is re-exported here; members of
//! such types that are not for them are `pub(in crate::store)`.
//!
//! What reads or writes the file, here and in the rooms, fails with 503 if the disk fails or the file is closed, and
//! with 500 if the file is damaged. The documentation of functions mentions only other errors.

mod export;
mod opening;
mod origin;
mod packed;
pub mod record;
#[cfg(test)]
mod tests;
mod write;
mod writer;

/// What keys and values mean. Nothing here names redb.
mod values {
    pub mod key;
    pub(super) mod payload;
    pub(super) mod position;
    pub(super) mod raw;
    pub mod schema;
}

/// The data file on its disk, redb over it, and the names by which it is found.
mod disk {
    pub(super) mod database_address;
    pub(super) mod engine;
    pub(super) mod file;
    pub(super) mod file_names;
    pub mod file_system;
    pub(super) mod open_error;
    pub(super) mod overlay;
    pub(super) mod place;
}

/// Reading one committed state.
mod reads {
    pub(super) mod bounded_read;
    pub(super) mod report;
    pub(super) mod snapshot;
}

/// What a batch changes: in memory until it is applied, and for the copies that follow it.
mod changes {
    pub(super) mod batch_diff;
    pub(super) mod file_copy;
    pub(super) mod pending_values;
    pub(super) mod value_log;
}

/// What `check`, exports and imports do with a record of any type.
mod kinds {
    pub(super) mod canonical;
    pub(super) mod json_lines;
    pub(super) mod json_parts;
    pub(super) mod record_registry;
}

/// Whether this release can read a file, as what, and of which workspace it is.
mod format {
    pub(super) mod migrate;
    pub(super) mod secrets;
    pub(super) mod stored_position;
}

/// The file as a whole: copying, backing up, restoring, checking and compacting it.
mod whole {
    pub(super) mod backup;
    pub(super) mod check;
    pub(super) mod compact;
    pub(super) mod restore;
    pub(super) mod sliced_walk;
    pub(super) mod space;
}

/// This process as a node of a shared database.
mod node {
    pub(super) mod compare;
    pub(super) mod nodes;
    pub(super) mod shared_database;
}

pub(crate) use changes::batch_diff::CommitsOf;
pub use changes::pending_values::Change;
pub use disk::database_address::{looks_like_database_address, mask_database_addresses};
pub use disk::file::{beside, folder_of, follow_link, has_redb_magic};
pub use disk::file_names::give_to_owner;
pub use disk::file_system;
pub use disk::open_error::OpenError;
pub use disk::overlay::Overlay;
pub use disk::place::{DatabaseUrl, Destination, Place};
pub use export::import::{Imported, import, import_on};
pub use export::organization::{SelectOrganization, Selected, StagedExport};
pub use export::{ExportOptions, require_absent};
pub use format::secrets::{WorkspaceId, signing_secret_of};
pub use kinds::canonical::canonical_line;
pub use kinds::json_lines::Redaction;
pub use kinds::record_registry::{RecordRegistry, RecordType, RecordTypeOf};
pub use node::shared_database::{found_workspace_from, require_no_workspace};
pub(crate) use origin::state::{OriginCall, OriginMetrics};
pub use origin::trouble::{RepeatedWarning, Trouble};
pub use reads::bounded_read::{BoundedRead, CancelToken};
pub use reads::report::{CheckReport, Progress, Stage};
pub use reads::snapshot::Snapshot;
pub use record::byte_usage::Owner;
pub(crate) use record::impl_record;
pub use record::{
    Count, Index, Indexed, Record, RecordOf, Reference, Row, Sum, Summed, Tx, payload_of,
};
pub use values::key::Key;
pub use values::raw::{KeySpan, Order, Raw, Window, continue_if};
pub use values::schema::Table;
pub use values::{key, schema};
pub use whole::backup::{Backup, SentCopy, receive, remove_incomplete_backup};
pub use whole::compact::Compacted;
pub use whole::restore::PreparedRestore;
pub use whole::space::{FreeSpace, SpaceUsage};
pub use write::access::{AccessTables, AccessVersion};
pub use write::cell::{Cell, stored_cell};
pub use write::{WriteTx, find_used_key};
pub use writer::Store;
pub use writer::metrics::{PageCache, RecordCounts, StoreMetrics};
pub(crate) use writer::watchers::{WakeOnCommit, Watch};
