//! The storage layer. No other folder uses redb.
//!
//! Each type of record has one table. The store keeps its secondary indexes, counts and sums up to date
//! ([`record`]). Each request reads from one [`Snapshot`], so its response is consistent. Changes go through
//! [`Store::write`]: the writer thread runs the rule inside the current transaction, undoes all of it if it
//! fails, and returns once it is on disk.
//!
//! This file only declares and re-exports. A folder uses only folders before it in this order: `values`, `disk`, `packed`,
//! `reads`, `record`, `changes`, `write`, `kinds`, `format`, `origin`, `writer`, `opening`, `whole`, `export`, `node`.
//!
//! What reads or writes the file, here and in the folders above, fails with 503 if the disk fails or the file is closed, and
//! with 500 if the file is damaged. The documentation of functions mentions only other errors.

mod changes;
mod disk;
mod export;
mod format;
mod kinds;
mod node;
mod opening;
mod origin;
mod packed;
mod reads;
pub mod record;
#[cfg(test)]
mod tests;
mod values;
mod whole;
mod write;
mod writer;

pub(crate) use changes::batch_diff::CommitsOf;
pub use changes::write_changes::Change;
pub use disk::address::{looks_like_address, mask_addresses};
pub use disk::engine::DEFAULT_CACHE;
pub use disk::file::{beside, folder_of, follow_link};
pub use disk::file_system;
pub use disk::open_error::OpenError;
pub use disk::owner::give_to_owner;
pub use disk::place::{DatabaseUrl, Destination, Place};
pub use export::import::{Imported, import};
pub use export::organization_export::{SelectOrganization, Selected};
pub use export::organization_import::StagedExport;
pub use export::{ExportOptions, require_absent};
pub use format::secrets::{WorkspaceId, signing_secret_of};
pub use kinds::canonical::canonical_line;
pub use kinds::json_lines::Redaction;
pub use kinds::record_registry::{RecordRegistry, RecordType, RecordTypeOf};
pub use node::shared_restore::{found_from, require_no_workspace};
pub(crate) use origin::metrics::{OriginCall, OriginMetrics};
pub use origin::repeated_warning::RepeatedWarning;
pub use origin::trouble::Trouble;
pub use reads::bounded_read::{BoundedRead, CancelToken};
pub use reads::check_report::CheckReport;
pub use reads::progress::{Progress, Stage};
pub use reads::snapshot::Snapshot;
pub use record::byte_usage::Owner;
pub(crate) use record::impl_record;
pub use record::{Count, Index, Indexed, Record, Reference, Row, Sum, Tx};
pub use values::key::Key;
pub use values::raw::{AnyTx, Raw};
pub use values::schema::Table;
pub use values::window::{Order, Window};
pub use values::{key, schema};
pub use whole::backup::{Backup, receive, remove_incomplete_backup};
pub use whole::compact::Compacted;
pub use whole::restore::PreparedRestore;
pub use whole::sent_copy::SentCopy;
pub use whole::space::{FreeSpace, SpaceUsage};
pub use write::WriteTx;
pub use write::access::{AccessTables, AccessVersion};
pub use write::adopt::{find_taken, payload_of};
pub use write::cell::{Cell, stored_cell};
pub use writer::Store;
pub use writer::metrics::{PageCache, RecordCounts, StoreMetrics};
pub(crate) use writer::watchers::{WakeOnCommit, Watch};
