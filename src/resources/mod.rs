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

use crate::idempotency::{Kept, Part};
use crate::mail::outbox::Letter;
use crate::mail::sent::Sent;
use crate::store::{Checks, Kind, kind};

/// What a data file is checked by.
pub fn checks() -> Checks {
    Checks { kinds: kinds(), excused: sweeps::excuses }
}

/// Every type of record.
fn kinds() -> Vec<Box<dyn Kind>> {
    vec![
        kind::<users::User>(),
        kind::<users::Profile>(),
        kind::<organizations::Organization>(),
        kind::<members::Membership>(),
        kind::<projects::Project>(),
        kind::<projects::Settings>(),
        kind::<projects::grants::Grant>(),
        kind::<api_keys::ApiKey>(),
        kind::<api_keys::ApiKeyUse>(),
        kind::<api_keys::Roll>(),
        kind::<api_keys::Makers>(),
        kind::<access_controls::rules::Rule>(),
        kind::<collaborators::Collaborator>(),
        kind::<sharing::Sharing>(),
        kind::<dashboards::Dashboard>(),
        kind::<dashboards::Details>(),
        kind::<dashboards::removals::Removal>(),
        kind::<dashboards::tiles::Tile>(),
        kind::<dashboards::insights::Insight>(),
        kind::<dashboards::texts::Text>(),
        kind::<domains::Domain>(),
        kind::<batch_exports::BatchExport>(),
        kind::<batch_exports::Secrets>(),
        kind::<invites::Invite>(),
        kind::<Letter>(),
        kind::<Sent>(),
        kind::<activity::Entry>(),
        kind::<Kept>(),
        kind::<Part>(),
        kind::<sweeps::Sweep>(),
    ]
}
