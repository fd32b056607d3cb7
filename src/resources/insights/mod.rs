//! Insights of a project: stored queries, which dashboards can show. See `docs/spec/insights.md`.
//!
//! The record is [`Insight`], which belongs to dashboards because their tiles show it.

mod body;
mod caller_access;
mod create;
mod dashboards;
mod filter;
pub mod http;
mod input;
mod list;
mod order;
mod rights;
mod update;

use std::convert::Infallible;
use std::str::FromStr;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::auth::InProject;
use crate::error::{Error, Result};
use crate::ids::{InsightId, ProjectId};
use crate::input::Schema;
use crate::resources::dashboards::insights::{BY_SHORT_ID, Insight, Meta};
use crate::resources::registration::RegisteredRecord;
use crate::store::Tx;

pub use body::{ResponseOptions, body};
pub use create::create;
pub use input::{InsightFields, ParsedBody};
pub use list::list;
pub use update::update;

/// Insights have no records besides those that dashboards register.
pub const RECORDS: &[&dyn RegisteredRecord] = &[];

/// The insight that a path names, by its number or by its short ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsightRef(String);

impl PartialSchema for InsightRef {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[0-9A-Za-z_-]+$"))
            .description(Some("The ID or the short ID."))
            .into()
    }
}

impl ToSchema for InsightRef {}

impl FromStr for InsightRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl InsightRef {
    /// Returns the insight of the project that has this number, or else this short ID. It may be deleted.
    ///
    /// # Errors
    /// 404 if there is none.
    pub fn resolve(&self, tx: &impl Tx, project: ProjectId) -> Result<Meta> {
        // `parse` alone would also accept a plus sign.
        if self.0.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(id) = self.0.parse()
            && let Some(meta) = tx.meta::<Insight>(&(project, InsightId(id)))?
        {
            return Ok(meta);
        }
        match tx.lookup(&BY_SHORT_ID, &(project, self.0.clone()))? {
            Some(key) => tx.meta::<Insight>(&key)?.ok_or_else(Error::not_found),
            None => Err(Error::not_found()),
        }
    }

    /// Returns the live insight of the project that has this number, or else this short ID.
    ///
    /// # Errors
    /// 404 if there is none, or it is deleted.
    pub fn resolve_live(&self, tx: &impl Tx, tenant: &InProject) -> Result<Meta> {
        let meta = self.resolve(tx, tenant.project.id)?;
        if meta.deleted { Err(Error::not_found()) } else { Ok(meta) }
    }
}
