//! The console's pages, without a browser.

mod access;
mod activity;
mod dashboards;
mod escaping;
mod forms;
mod frame;
mod headers;
mod service;
mod sign_in;
