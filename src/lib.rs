//! Steward.
pub mod access;
pub mod bootstrap;
pub mod cli;
pub mod config;
pub mod error;
pub mod http;
pub mod ids;
pub mod input;
pub mod json;
pub mod operator;
pub mod patch;
pub mod resources;
pub mod router;
pub mod secret;
pub mod state;
pub mod store;
pub mod time;
