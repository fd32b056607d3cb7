//! One module per resource: `mod.rs` holds the record and its rules, `http.rs` the routes and handlers.
//!
//! No two modules use each other, directly or over others. `cascade_delete` knows which records each parent contains.

pub mod access_controls;
pub mod activity;
pub mod api_keys;
pub mod batch_exports;
pub mod cascade_delete;
pub mod collaborators;
pub mod dashboards;
pub mod domains;
pub mod invites;
pub mod members;
pub mod organizations;
pub mod projects;
pub mod sharing;
pub mod signup;
pub mod users;

use crate::idempotency::{StoredBodyPart, StoredObjectRef, StoredResponse};
use crate::mail::outbox::OutboxMessage;
use crate::mail::sent_log::SentMail;
use crate::store::{RecordRegistry, RecordType, Redaction, record_type, secret_record_type};

/// Returns the record types that a data file is checked, exported and imported with.
pub fn record_registry() -> RecordRegistry {
    RecordRegistry { record_types: record_types(), is_pending: cascade_delete::is_pending_deletion }
}

/// Lists every type of record. `secret_record_type` also names what an export without secrets leaves out: API keys,
/// responses stored for idempotency keys, and the fields that the activity log hides. Values that are derived from the
/// signing secret are not stored, so no export contains them.
fn record_types() -> Vec<Box<dyn RecordType>> {
    vec![
        record_type::<users::User>(),
        record_type::<users::Profile>(),
        record_type::<users::UnverifiedAccount>(),
        record_type::<organizations::Organization>(),
        record_type::<members::Membership>(),
        record_type::<members::MembershipOrigin>(),
        secret_record_type::<projects::Project>(projects::REDACTION),
        secret_record_type::<projects::Settings>(projects::SETTINGS_SECRECY),
        record_type::<projects::grants::Grant>(),
        secret_record_type::<api_keys::ApiKey>(Redaction::Whole),
        secret_record_type::<api_keys::ApiKeyUse>(Redaction::Whole),
        secret_record_type::<api_keys::Verifiers>(Redaction::Whole),
        secret_record_type::<api_keys::Grantors>(Redaction::Whole),
        record_type::<access_controls::rules::AccessRule>(),
        record_type::<collaborators::Collaborator>(),
        secret_record_type::<sharing::Sharing>(sharing::REDACTION),
        record_type::<dashboards::Dashboard>(),
        record_type::<dashboards::Details>(),
        record_type::<dashboards::deletions::Deletion>(),
        record_type::<dashboards::tiles::Tile>(),
        record_type::<dashboards::insights::Insight>(),
        record_type::<dashboards::texts::Text>(),
        record_type::<domains::Domain>(),
        record_type::<batch_exports::BatchExport>(),
        secret_record_type::<batch_exports::Secrets>(Redaction::Whole),
        record_type::<invites::Invite>(),
        record_type::<OutboxMessage>(),
        record_type::<SentMail>(),
        record_type::<activity::Entry>(),
        secret_record_type::<StoredResponse>(Redaction::Whole),
        secret_record_type::<StoredBodyPart>(Redaction::Whole),
        secret_record_type::<StoredObjectRef>(Redaction::Whole),
        record_type::<organizations::PendingDeletion>(),
    ]
}
