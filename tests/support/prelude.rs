//! What many tests name.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::path::Path;
pub use std::time::Duration;

pub use axum::body::Body;
pub use axum::http::Method;
pub use futures_util::future::join_all;
pub use serde_json::{Value, json};
pub use steward::testing::http::routes::RouteSpec;
pub use steward::testing::ids::{DashboardId, OrganizationId, ProjectId, RoleId, UserId};
pub use steward::testing::metrics::Metrics;
pub use steward::testing::operator::{Operation, UserOptions, perform};
pub use steward::testing::resources::access_controls::levels::AccessLevel;
pub use steward::testing::resources::access_controls::rules::AccessRule;
pub use steward::testing::resources::{cascade_delete, record_registry};
pub use steward::testing::router::routes;
pub use steward::testing::store::{
    Key, Order, Progress, Record, Store, Table, Tx, Window, WriteTx,
};
pub use steward::testing::time::{ManualClock, Timestamp};
pub use steward::{App, Config};
pub use uuid::Uuid;

pub use super::batch_exports::nowhere;
pub use super::bodies::page;
pub use super::console::{FORM, Page, Visitor};
pub use super::contract::contract;
pub use super::dns::Dns;
pub use super::objects::Objects;
pub use super::refusals::{Refusal, each};
pub use super::roles::{add_role, add_to_role};
pub use super::workspace::{
    JSON, Level, OWNER, TestClient, TestResponse, Workspace, column, eventually, eventually_async,
    in_organization, new_user, redacted, with_clock, with_clock_at,
};

/// The address of a member of many tests, and of no other user.
pub const ANN: &str = "ann@corp.example";
/// The path of the caller's own user.
pub const ME: &str = "/api/users/@me/";
/// The id of nothing.
pub const UNKNOWN: &str = "01890000-0000-7000-8000-000000000000";

/// Refusals that several resources have in common.
pub const NO_ACCESS: &str = "You don't have access to the project.";
pub const VIEWER: &str = "You do not have viewer access to this resource.";
pub const EDITOR: &str = "You do not have editor access to this resource.";
pub const NO_EDIT: &str = "You don't have edit permissions for this dashboard.";
pub const TOO_LOW: &str = "Your organization access level is insufficient.";
pub const NOT_ALLOWED: &str = "You do not have permission to perform this action.";
pub const BAD_UUID: &str = "Must be a valid UUID.";
