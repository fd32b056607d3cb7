//! What many tests of this binary name.

pub use std::collections::BTreeSet;
pub use std::fs::{self, File};
pub use std::io::BufReader;
pub use std::net::SocketAddr;
pub use std::path::{Path, PathBuf};
pub use std::process::{Child, Command, Stdio};
pub use std::sync::{Arc, Mutex};
pub use std::thread;
pub use std::time::Duration;

pub use fantoccini::key::Key;
pub use regex::Regex;
pub use rustix::process::{Pid, Signal, geteuid, kill_process};
pub use serde_json::{Value, json};
pub use steward::Config;
pub use steward::testing::time::Timestamp;
pub use tokio::net::TcpListener;

pub use crate::console::{Site, assert_sound, assert_sound_in_every_look, browser, go_to, shown};
pub use crate::support::browser::Browser;
pub use crate::support::console::Visitor;
pub use crate::support::dns::Dns;
pub use crate::support::objects::Objects;
pub use crate::support::process::{
    CommandOutput, Connection, DataFolder, NOBODY, STEWARD, Served, Server, TEST_TIMEOUT,
    as_nobody, cleared, own_address, set_mode, tool, until,
};
pub use crate::support::sharing::Board;
pub use crate::support::smtp::MailServer;
pub use crate::support::systemd::SystemdManager;
pub use crate::support::terminal::Terminal;
pub use crate::support::{Level, OWNER, Workspace};
