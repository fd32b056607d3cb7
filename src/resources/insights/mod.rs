//! Insights of a project: stored queries, which dashboards can show. See `docs/spec/insights.md`.
//!
//! The record is [`Insight`](crate::resources::dashboards::insights::Insight), which belongs to dashboards because their
//! tiles show it.

mod body;
mod create;
mod dashboards;
mod filter;
pub mod http;
mod input;
mod list;
mod order;
mod rights;
mod update;

use crate::resources::registration::RegisteredRecord;

pub use body::{ResponseOptions, body};
pub use create::create;
pub use input::{InsightFields, ParsedBody};
pub use list::list;
pub use update::update;

/// Insights have no records besides those that dashboards register.
pub const RECORDS: &[&dyn RegisteredRecord] = &[];
