//! The tests of the service, through its API, on a real data file each.

#![allow(
    clippy::needless_pass_by_value,
    clippy::unused_async,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    unreachable_pub,
    reason = "a test that cannot go on says so by panicking"
)]

mod abuse;
mod access_controls;
mod activity;
mod activity_log;
mod activity_retention;
mod activity_secrets;
mod activity_sight;
mod api_keys_http;
mod api_keys_issuing;
mod api_keys_limits;
mod api_keys_makers;
mod api_keys_once;
mod api_keys_races;
mod api_keys_rolling;
mod api_keys_sequences;
mod api_keys_upkeep;
mod authz;
mod backups;
mod bars;
mod batch_export_destinations;
mod batch_export_limits;
mod batch_export_rights;
mod batch_export_secrets;
mod batch_export_states;
mod batch_exports;
mod bit_rot;
mod browsers;
mod cli;
mod collaborators;
mod compacting;
mod config_file;
mod conformance;
mod dashboard_access;
mod dashboard_copies;
mod dashboard_fields;
mod dashboard_lists;
mod dashboard_removal;
mod dashboards;
mod docs_page;
mod domain_saml;
mod domain_verification;
mod domains;
mod drill;
mod durability;
mod encoded;
mod errors;
mod etags;
mod export_damage;
mod export_files;
mod export_many;
mod exports;
mod faults;
mod first_run;
mod full_disk;
mod fuzzed;
mod golden;
mod histories;
mod idempotency;
mod idempotency_rights;
mod idempotency_upkeep;
mod invite_access;
mod invite_bulk;
mod invite_mail;
mod invites;
mod io_faults;
mod keys;
mod levels;
mod limits;
mod logs;
mod mail;
mod manager;
mod manual;
mod members;
mod metrics;
mod model;
mod move_tile;
mod openapi;
mod openapi_forms;
mod order;
mod organizations;
mod outbox;
mod packaging;
mod paging;
mod power_cuts;
mod private_projects;
mod project_access;
mod project_configs;
mod project_fields;
mod projects;
mod readiness;
mod removal;
mod resource_access;
mod secrets;
mod secrets_rotate;
mod shared;
mod shared_page;
mod sharing;
mod signup;
mod signup_page;
mod story;
mod support;
mod template_json;
mod templates;
mod tidy;
mod tile_sequences;
mod tile_texts;
mod tiles;
mod tls;
mod transport;
mod users;
