//! What many tests name.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::convert::Infallible;
pub use std::fs;
pub use std::path::{Path, PathBuf};
pub use std::sync::{Arc, Mutex};
pub use std::time::Duration;

pub use axum::body::Body;
pub use axum::http::{Method, Request};
pub use futures_util::future::join_all;
pub use futures_util::stream;
pub use proptest::test_runner::{Config as Cases, TestRunner};
pub use serde_json::{Map, Value, json};
pub use steward::testing::config::Switch;
pub use steward::testing::http::{PageAccess, RouteSpec};
pub use steward::testing::idempotency::StoredResponse;
pub use steward::testing::ids::{
    DashboardId, InsightId, OrganizationId, ProjectId, RoleId, UserId,
};
pub use steward::testing::metrics::Metrics;
pub use steward::testing::operator::{Operation, UserOptions, perform};
pub use steward::testing::resources::access_controls::{AccessLevel, AccessRule};
pub use steward::testing::resources::activity::{Entry, NO_ORGANIZATION};
pub use steward::testing::resources::dashboards::Dashboard;
pub use steward::testing::resources::members::Membership;
pub use steward::testing::resources::shared::{Kind, Subject};
pub use steward::testing::resources::users::User;
pub use steward::testing::resources::{cascade_delete, record_registry};
pub use steward::testing::router::{router, routes};
pub use steward::testing::store::{
    Key, Order, PreparedRestore, Progress, Record, Store, Table, Tx, Window, WriteTx,
};
pub use steward::testing::time::{Clock, ManualClock, Timestamp};
pub use steward::{App, Config};
pub use tempfile::TempDir;
pub use tokio::sync::oneshot;
pub use uuid::Uuid;

pub use crate::api_keys::{CURRENT, holder, roll};
pub use crate::dashboards::access::{Scene, allows, minute};
pub use crate::dashboards::lists::ids;
pub use crate::dashboards::{at_the_moment, detail, embedded, item};
pub use crate::domains::{entries_about, prove};
pub use crate::idempotency::is_replayed;
pub use crate::insights::{insights, make_insight};
pub use crate::invites::mail::with_server;
pub use crate::members::emails;
pub use crate::sessions::assert_ended;
pub use crate::signup::offer;
pub use crate::tiles::{put_insight, put_texts, shown, shown_of};

pub use super::activity::entries;
pub use super::api_keys::{KEYS, at, make_key};
pub use super::batch_exports::{nowhere, to, with};
pub use super::bodies::{changed, page};
pub use super::console::{FORM, FilledForm, Page, Visitor};
pub use super::contract::contract;
pub use super::dashboards::make;
pub use super::dns::{Dns, Reply};
pub use super::dry_run::dry_run;
pub use super::idempotency::{post_once, stored};
pub use super::invites::{invite, invites, listed, with_mail};
pub use super::metrics::{Numbers, is};
pub use super::objects::Objects;
pub use super::refusals::{Refusal, each, rows};
pub use super::roles::{add_role, add_to_role};
pub use super::sessions::{SignedIn, browser, sign_in, sign_in_by_link};
pub use super::setup::walked;
pub use super::sharing::Board;
pub use super::signup::Offer;
pub use super::smtp::{Mail, MailServer, ServerBehavior};
pub use super::workspace::{
    JSON, Level, OWNER, TestClient, TestResponse, Workspace, column, eventually, eventually_async,
    in_organization, new_key, new_user, redacted, with_clock, with_clock_at,
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
