//! The console's pages, without a browser.

mod access;
mod activity;
mod changes;
mod dashboards;
mod escaping;
mod forms;
mod frame;
mod headers;
mod mail_sign_in;
mod new_dashboard;
mod service;
mod sign_in;
mod tiles;
