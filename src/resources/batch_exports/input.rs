//! What is sent to add, change, pause or unpause a batch export (API document, Batch export;
//! facts-crosscutting §e).

use crate::error::Result;
use crate::ids::{BatchExportId, ProjectId};
use crate::input;
use crate::input::{
    Choice, Choices, DateTime, Field, Flag, FreeForm, Identifier, Input, JsonObject, Kind, Name,
    Nested, Nullable, Parsed, Required, Schema, Text, Untyped, choices_schema,
};
use crate::patch::{Patch, set};
use crate::time::Timestamp;

use super::Shown;
use super::destination::{Destination, DestinationPatch, Target, WholeDestination};
use super::hogql::HogQlQuery;

/// What may be exported.
pub struct Models;

impl Choices for Models {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["events", "persons"];
}

/// How often.
pub struct Intervals;

impl Choices for Intervals {
    type Value = &'static str;
    const ALL: &'static [&'static str] =
        &["hour", "day", "week", "every 5 minutes", "every 15 minutes"];
}

choices_schema!(Models, Intervals);

/// What people call an export.
type ExportName = Name<400>;
/// What it exports.
type Model = Nullable<Choice<Models>>;

input! {
    /// A batch export to add to a project.
    pub struct BatchExportFields {
        /// Its name.
        name: Required<ExportName>,
        /// What it exports; events where nothing is said.
        model: Model,
        /// Where it goes.
        destination: Required<WholeDestination>,
        /// How often it runs.
        interval: Required<Choice<Intervals>>,
        /// Whether it is paused.
        paused: Flag,
        /// When it was last paused.
        last_paused_at: Nullable<DateTime>,
        /// Before which it does not run.
        start_at: Nullable<DateTime>,
        /// After which it does not run. It may be before the start: then it never runs.
        end_at: Nullable<DateTime>,
        /// What it exports of the model, in `HogQL`: one SELECT FROM events, of at most 2,000 words and signs, which
        /// nest at most 48 levels deep.
        hogql_query: Nullable<HogQlQuery>,
        /// Which rows it exports.
        filters: Nullable<FreeForm>,
    }
}

input! {
    /// What may be changed of a batch export.
    pub struct BatchExportPatch {
        /// Its name.
        name: ExportName,
        /// What it exports.
        model: Model,
        /// Where it goes. What is left out of its configuration stays as it is.
        destination: Nested<DestinationPatch>,
        /// How often it runs.
        interval: Choice<Intervals>,
        /// Whether it is paused.
        paused: Flag,
        /// When it was last paused.
        last_paused_at: Nullable<DateTime>,
        /// Before which it does not run.
        start_at: Nullable<DateTime>,
        /// After which it does not run. It may be before the start: then it never runs.
        end_at: Nullable<DateTime>,
        /// What it exports of the model, in `HogQL`: one SELECT FROM events, of at most 2,000 words and signs, which
        /// nest at most 48 levels deep.
        hogql_query: Nullable<HogQlQuery>,
        /// Which rows it exports.
        filters: Nullable<FreeForm>,
    }
}

input! {
    /// What pausing and unpausing take, and then leave alone (decisions §4, Batch export).
    pub struct BatchExportState {
        /// Without effect.
        name: Text<400>,
        /// Without effect.
        model: Model,
        /// Without effect.
        destination: Untyped,
        /// Without effect.
        interval: Untyped,
        /// Without effect: the path says it.
        paused: Flag,
        /// Without effect.
        last_paused_at: Nullable<DateTime>,
        /// Without effect.
        start_at: Nullable<DateTime>,
        /// Without effect.
        end_at: Nullable<DateTime>,
        /// Without effect.
        hogql_query: Nullable<Text<16_384>>,
        /// Without effect.
        filters: Untyped,
    }
}

/// A batch export to add, and the project to add it to: at an organization's path that is a field, the first.
#[derive(Debug, Clone)]
pub struct OrganizationBatchExportFields {
    /// The project.
    pub project: u64,
    /// The export's fields; what is wrong with them is asked for after the project.
    pub fields: Parsed<BatchExportFields>,
}

impl Input for OrganizationBatchExportFields {
    const NAME: &'static str = "OrganizationBatchExportFields";

    fn parse(body: &JsonObject) -> Result<Self> {
        let project = <Required<Identifier> as Field>::take("project_id", body.get("project_id"))?;
        Ok(Self { project, fields: Parsed::of(body) })
    }

    fn schema() -> Schema {
        let mut schema = BatchExportFields::schema();
        if let Schema::Object(object) = &mut schema {
            object.properties.insert("project_id".to_owned(), Identifier::schema().into());
            object.required.push("project_id".to_owned());
        }
        schema
    }
}

/// A PATCH, parsed. Whether the destination is right is known only with the stored one at hand, and yet what
/// is wrong with it goes before what is wrong with the fields behind it.
#[derive(Debug, Clone)]
pub struct SentPatch {
    /// What goes before the destination.
    leading: Result<()>,
    destination: Result<Option<DestinationPatch>>,
    fields: Parsed<BatchExportPatch>,
}

impl SentPatch {
    /// Parses `body` and keeps the outcome.
    #[must_use]
    pub fn of(body: &JsonObject) -> Self {
        let name = <ExportName as Field>::take("name", body.get("name"));
        let model = <Model as Field>::take("model", body.get("model"));
        let destination = body.get("destination");
        Self {
            leading: name.and(model.map(drop)),
            destination: <Nested<DestinationPatch> as Field>::take("destination", destination),
            fields: Parsed::of(body),
        }
    }

    /// The fields, and the destination as it is to be, where one was sent.
    ///
    /// # Errors
    /// 400 for the first bad field.
    pub(super) fn get(
        &self,
        stored: &Target,
        secrets: &JsonObject,
    ) -> Result<(&BatchExportPatch, Option<Destination>)> {
        self.leading.clone()?;
        let sent = self.destination.as_ref().map_err(Clone::clone)?;
        let merged = sent.as_ref().map(|sent| sent.onto(stored, secrets)).transpose();
        let merged = merged.map_err(|error| error.within("destination"))?;
        Ok((self.fields.get()?, merged))
    }
}

/// The fields of a new export with this id, in this project.
pub(super) fn shown(
    new: BatchExportFields,
    (id, team_id): (BatchExportId, ProjectId),
    now: Timestamp,
) -> Shown {
    let BatchExportFields {
        name,
        model,
        destination,
        interval,
        paused,
        last_paused_at,
        start_at,
        end_at,
        hogql_query,
        filters,
    } = new;
    Shown {
        id,
        team_id,
        name,
        model: match model {
            Patch::Absent => Some("events".to_owned()),
            sent => sent.map(str::to_owned).value(),
        },
        destination: destination.target,
        interval: interval.to_owned(),
        paused: paused.unwrap_or(false),
        created_at: now,
        last_updated_at: now,
        last_paused_at: last_paused_at.value(),
        start_at: start_at.value(),
        end_at: end_at.value(),
        latest_runs: [],
        hogql_query: hogql_query.value(),
        schema: (),
        filters: filters.value(),
    }
}

/// Writes what was sent into an export; where it goes is for whoever merged it.
pub(super) fn apply(patch: BatchExportPatch, export: &mut Shown) {
    let BatchExportPatch {
        name,
        model,
        destination: _,
        interval,
        paused,
        last_paused_at,
        start_at,
        end_at,
        hogql_query,
        filters,
    } = patch;
    set(&mut export.name, name);
    model.map(str::to_owned).apply(&mut export.model);
    set(&mut export.interval, interval.map(str::to_owned));
    set(&mut export.paused, paused);
    last_paused_at.apply(&mut export.last_paused_at);
    start_at.apply(&mut export.start_at);
    end_at.apply(&mut export.end_at);
    hogql_query.apply(&mut export.hogql_query);
    filters.apply(&mut export.filters);
}
