//! A running `steward serve`: its start, its log, its state, and its service manager.

mod cluster;
mod first_run;
mod logs;
mod packaging;
mod readiness;
mod secrets;
mod systemd;
mod test_command;
mod test_control;
mod test_docs;
mod test_inspector;
mod test_requests;
