//! What most tests name.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::time::Duration;

pub use axum::http::Method;
pub use futures_util::future::join_all;
pub use serde_json::{Value, json};
pub use steward::Config;
pub use steward::testing::operator::Operation;
pub use steward::testing::router::routes;
pub use steward::testing::time::Timestamp;

pub use super::bodies::page;
pub use super::console::{Page, Visitor};
pub use super::refusals::{Refusal, each};
pub use super::workspace::{
    JSON, Level, OWNER, TestClient, TestResponse, Workspace, column, eventually, eventually_async,
    in_organization, new_user, redacted, with_clock, with_clock_at,
};
