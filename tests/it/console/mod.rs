//! The console's pages, without a browser.

mod access;
mod activity;
mod batch_exports;
mod changes;
mod dashboards;
mod domains;
mod escaping;
mod forms;
mod frame;
mod headers;
mod home;
mod insights;
mod invites;
mod keys;
mod mail_sign_in;
mod members;
mod new_dashboard;
mod offered;
mod operations;
mod organization;
mod project_settings;
mod reverts;
mod roles;
mod service;
mod sign_in;
mod tiles;
