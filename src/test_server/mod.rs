//! `steward test`: a workspace in memory for one test run, with ids and keys that are known beforehand.
//!
//! It is the service of `steward serve` on another disk, with another clock and another source of seeds. Only `cli/test.rs` uses
//! this module.

mod captured;
mod clock;
mod disk;
mod dns;
mod faults;
mod fixture;
mod http;
mod journal;
mod loading;
mod mails;
mod notes;
mod pattern;
mod people;
mod process;
mod ready;
mod snapshots;
mod stage;

use serde::Serialize;
use utoipa::ToSchema;

use crate::ids::{OrganizationId, ProjectId, UserUuid};

pub use http::TestServer;
pub(crate) use http::router;
pub(crate) use process::{Signals, TestCommand, become_command, parent_gone, stdin_closed};
pub(crate) use ready::Ready;
pub(crate) use stage::{Stage, Start};

/// The organization, the project and the people that a test can use at once.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct Workspace {
    pub(crate) organization_id: OrganizationId,
    pub(crate) project_id: ProjectId,
    /// The owner.
    pub(crate) user: Person,
    /// A member of the lowest level; null if the workspace that the server started from has none.
    pub(crate) member: Option<Person>,
}

/// A user with a key.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) uuid: UserUuid,
    pub(crate) api_key: String,
}
