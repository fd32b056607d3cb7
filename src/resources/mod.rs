//! One folder a noun: its record and rules in `mod.rs`, its wire in `http.rs`.
//!
//! Rules look only leftwards in one order: users, organizations < members < projects < `api_keys` <
//! collaborators, sharing, `access_controls` < dashboards < domains, `batch_exports`, invites < signup < activity; sweeps knows what each parent
//! holds.

pub mod access_controls;
pub mod activity;
pub mod api_keys;
pub mod batch_exports;
pub mod collaborators;
pub mod dashboards;
pub mod domains;
pub mod invites;
pub mod members;
pub mod organizations;
pub mod projects;
pub mod sharing;
pub mod signup;
pub mod sweeps;
pub mod users;

use crate::idempotency::{Kept, KeptObject, Part};
use crate::mail::outbox::Letter;
use crate::mail::sent::Sent;
use crate::store::{Checks, Kind, Secrecy, kind, secret_kind};

/// What a data file is checked by, exported by and imported by.
pub fn checks() -> Checks {
    Checks { kinds: kinds(), excused: sweeps::excuses }
}

/// Every type of record, and what of it an export without secrets leaves out: besides API keys and answers that were
/// kept, what the activity log hides. What is derived of the signing secret when it is asked for lies in none.
fn kinds() -> Vec<Box<dyn Kind>> {
    vec![
        kind::<users::User>(),
        kind::<users::Profile>(),
        kind::<users::LinkAccount>(),
        kind::<organizations::Organization>(),
        kind::<members::Membership>(),
        kind::<members::MembershipOrigin>(),
        secret_kind::<projects::Project>(projects::SECRECY),
        secret_kind::<projects::Settings>(projects::SETTINGS_SECRECY),
        kind::<projects::grants::Grant>(),
        secret_kind::<api_keys::ApiKey>(Secrecy::Whole),
        secret_kind::<api_keys::ApiKeyUse>(Secrecy::Whole),
        secret_kind::<api_keys::Verifiers>(Secrecy::Whole),
        secret_kind::<api_keys::Makers>(Secrecy::Whole),
        kind::<access_controls::rules::Rule>(),
        kind::<collaborators::Collaborator>(),
        secret_kind::<sharing::Sharing>(sharing::SECRECY),
        kind::<dashboards::Dashboard>(),
        kind::<dashboards::Details>(),
        kind::<dashboards::removals::Removal>(),
        kind::<dashboards::tiles::Tile>(),
        kind::<dashboards::insights::Insight>(),
        kind::<dashboards::texts::Text>(),
        kind::<domains::Domain>(),
        kind::<batch_exports::BatchExport>(),
        secret_kind::<batch_exports::Secrets>(Secrecy::Whole),
        kind::<invites::Invite>(),
        kind::<Letter>(),
        kind::<Sent>(),
        kind::<activity::Entry>(),
        secret_kind::<Kept>(Secrecy::Whole),
        secret_kind::<Part>(Secrecy::Whole),
        secret_kind::<KeptObject>(Secrecy::Whole),
        kind::<organizations::Sweep>(),
    ]
}
