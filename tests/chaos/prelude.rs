//! What many tests of this binary name.

pub use std::collections::{BTreeMap, BTreeSet};
pub use std::fs;
pub use std::net::SocketAddr;
pub use std::path::{Path, PathBuf};
pub use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub use std::sync::{Arc, Mutex};
pub use std::thread;
pub use std::time::Duration;

pub use axum::http::Method;
pub use futures_util::future::join_all;
pub use proptest::test_runner::{Config as Cases, RngSeed, TestRunner};
pub use rustix::process::Signal;
pub use serde_json::{Value, json};
pub use steward::testing::fair_queue::Consumer;
pub use steward::testing::ids::UserId;
pub use steward::testing::metrics::Metrics;
pub use steward::testing::operator::{Operation, UserOptions, perform};
pub use steward::testing::resources::record_registry;
pub use steward::testing::store::{
    BoundedRead, Order, Progress, Store, Table, Tx, Window, WriteTx,
};
pub use steward::testing::time::Timestamp;
pub use steward::{App, Config, router};

pub use crate::sizes::{seed, size};
pub use crate::support::dashboards::{from_tiles, make};
pub use crate::support::day::SampleWorkload;
pub use crate::support::invites::invite;
pub use crate::support::metrics::Numbers;
pub use crate::support::postgres::{ROLE, Schema, Server as Postgres};
pub use crate::support::process::{
    CommandOutput, Connection, DataFolder, Served, Server, connect_from, id_and_name, request,
    until,
};
pub use crate::support::sharing::Board;
pub use crate::support::signup::Offer;
pub use crate::support::sim::{SimFileSystem, TestRng};
pub use crate::support::smtp::MailServer;
pub use crate::support::{
    Level, OWNER, TestClient, TestResponse, Workspace, column, eventually, eventually_async,
    in_organization, new_user, with_clock,
};
