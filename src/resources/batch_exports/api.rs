//! What the API reads of batch exports, and what batch exports declare about their records. The activity log records a
//! change of secrets without their values.

use crate::ids::BatchExportId;
use crate::input::{
    Choice, DateTime, Flag, FreeForm, Identifier, Input, Name, Nested, Nullable, Required, Text,
    Untyped, choices,
};
use crate::resources::projects;
use crate::resources::shared::loggable::FieldAction;
use crate::resources::shared::prelude::*;

use super::destination::{Destination, DestinationPatch, Target, WholeDestination};
use super::hogql::{self, HogQlQuery};
use super::{BatchExport, Fields, Secrets};

choices! {
    /// The values of `model`.
    pub struct Models: &'static str = ["events", "persons"];
    /// The values of `interval`.
    pub struct Intervals: &'static str =
        ["hour", "day", "week", "every 5 minutes", "every 15 minutes"];
}

/// The name of a batch export.
type ExportName = Name<400>;
/// The model that a batch export reads.
type Model = Nullable<Choice<Models>>;

input! {
    /// The batch export to create.
    pub struct BatchExportFields {
        /// The name of the export.
        name: Required<ExportName>,
        /// The model that it exports; default `events`.
        model: Model,
        /// The destination of the export.
        destination: Required<WholeDestination>,
        /// How often it runs.
        interval: Required<Choice<Intervals>>,
        /// Whether it is paused.
        paused: Flag,
        /// When the export was last paused.
        last_paused_at: Nullable<DateTime>,
        /// The export does not run before this time.
        start_at: Nullable<DateTime>,
        /// The export does not run after this time. If it is before `start_at`, the export never runs.
        end_at: Nullable<DateTime>,
        /// The rows and columns to export, in `HogQL`: one SELECT FROM events.
        hogql_query: Nullable<HogQlQuery>,
        /// The filter for the rows to export.
        filters: Nullable<FreeForm>,
    }
}

input! {
    /// The fields of a batch export to update.
    pub struct BatchExportPatch {
        /// The name of the export.
        name: ExportName => export,
        /// The model that it exports.
        model: Model => export,
        /// The destination of the export. Keys that are left out of `config` keep their values.
        destination: Nested<DestinationPatch> => _,
        /// How often it runs.
        interval: Choice<Intervals> => export,
        /// Whether it is paused.
        paused: Flag => export,
        /// When the export was last paused.
        last_paused_at: Nullable<DateTime> => export,
        /// The export does not run before this time.
        start_at: Nullable<DateTime> => export,
        /// The export does not run after this time. If it is before `start_at`, the export never runs.
        end_at: Nullable<DateTime> => export,
        /// The rows and columns to export, in `HogQL`: one SELECT FROM events.
        hogql_query: Nullable<HogQlQuery> => export,
        /// The filter for the rows to export.
        filters: Nullable<FreeForm> => export,
    }
    fn apply_to(export: &mut Fields);
}

input! {
    /// The body of pause and unpause. PostHog validates these fields but does not apply them.
    pub struct BatchExportState {
        /// Ignored.
        name: Text<400>,
        /// Ignored.
        model: Model,
        /// Ignored.
        destination: Untyped,
        /// Ignored.
        interval: Untyped,
        /// Ignored: the path decides.
        paused: Flag,
        /// Ignored.
        last_paused_at: Nullable<DateTime>,
        /// Ignored.
        start_at: Nullable<DateTime>,
        /// Ignored.
        end_at: Nullable<DateTime>,
        /// Ignored.
        hogql_query: Nullable<Text<{ hogql::MAX_LENGTH }>>,
        /// Ignored.
        filters: Untyped,
    }
}

/// The batch export to create, with its project. At an organization's path, the project is the first field of the body.
#[derive(Debug, Clone)]
pub struct OrganizationBatchExportFields {
    /// The id of the project.
    pub project: u64,
    /// The fields of the export. Their errors are reported after those of the project.
    pub fields: Parsed<BatchExportFields>,
}

impl Input for OrganizationBatchExportFields {
    const NAME: &'static str = "OrganizationBatchExportFields";

    fn parse(body: &JsonObject) -> Result<Self> {
        let project = <Required<Identifier> as Field>::parse("project_id", body.get("project_id"))?;
        Ok(Self { project, fields: Parsed::new(body) })
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

/// A PATCH, parsed. A new destination can be checked only together with the stored one, but its errors must precede
/// those of the fields after it.
#[derive(Debug, Clone)]
pub struct PatchBody {
    /// The first error in the fields before `destination`, if any.
    leading: Result<()>,
    destination: Result<Option<DestinationPatch>>,
    fields: Parsed<BatchExportPatch>,
}

impl PatchBody {
    /// Parses `body` and keeps the result.
    pub fn of(body: &JsonObject) -> Self {
        let name = <ExportName as Field>::parse("name", body.get("name"));
        let model = <Model as Field>::parse("model", body.get("model"));
        let destination = body.get("destination");
        Self {
            leading: name.and(model.map(drop)),
            destination: <Nested<DestinationPatch> as Field>::parse("destination", destination),
            fields: Parsed::new(body),
        }
    }

    /// Returns the fields, and the destination after the update if the body changes it. What stays as it is needs no check: an
    /// import without secrets leaves a destination that lacks some.
    ///
    /// # Errors
    /// 400 for the first invalid field.
    pub(super) fn get(
        &self,
        stored: &Target,
        secrets: &JsonObject,
    ) -> Result<(&BatchExportPatch, Option<Destination>)> {
        self.leading.clone()?;
        let sent = self.destination.as_ref().map_err(Clone::clone)?;
        let changed = sent.as_ref().filter(|sent| !sent.is_within(stored));
        let merged = changed.map(|sent| sent.merge(stored, secrets)).transpose();
        let merged = merged.map_err(|error| error.with_attr_prefix("destination"))?;
        Ok((self.fields.get()?, merged))
    }
}

/// Returns the stored fields of a new export with this id, in this project.
pub(super) fn shown(
    new: BatchExportFields,
    (id, team_id): (BatchExportId, ProjectId),
    now: Timestamp,
) -> Fields {
    Fields {
        id,
        team_id,
        name: new.name,
        model: match new.model {
            Patch::Absent => Some("events".to_owned()),
            sent => sent.map(str::to_owned).value(),
        },
        destination: new.destination.target,
        interval: new.interval.to_owned(),
        paused: new.paused.unwrap_or(false),
        created_at: now,
        last_updated_at: now,
        last_paused_at: new.last_paused_at.value(),
        start_at: new.start_at.value(),
        end_at: new.end_at.value(),
        latest_runs: [],
        hogql_query: new.hogql_query.value(),
        schema: (),
        filters: new.filters.value(),
    }
}

/// The records of batch exports.
pub const RECORDS: &[&dyn RegisteredRecord] = &[
    &record::<BatchExport>().logged().deleted_with_project().numbered(|export| export.meta.serial),
    &record::<Secrets>().redacted(Redaction::Whole).logged().deleted_with_project(),
];

impl Loggable for BatchExport {
    const SCOPE: &'static str = "BatchExport";
    const ACTIONS: &'static [FieldAction] =
        &[FieldAction::Switched { field: "paused", on: "paused", off: "unpaused" }];

    fn entity(meta: &Self::Meta, _: &impl Tx) -> Result<LogEntity> {
        Ok(LogEntity::new(meta.id, Some(meta.organization), Some(meta.project)))
    }
}

/// The only field is the version of the secrets record, and it is hidden: an entry never contains a secret.
impl Loggable for Secrets {
    const SCOPE: &'static str = BatchExport::SCOPE;
    const HIDDEN: &'static [&'static str] = &["destination__secrets"];
    const PARENT: Option<&'static str> = Some(BatchExport::SCOPE);

    fn entity(meta: &Self::Meta, tx: &impl Tx) -> Result<LogEntity> {
        let organization = projects::organization_of(tx, meta.0)?;
        Ok(LogEntity::new(meta.1, organization, Some(meta.0)))
    }

    fn fields(row: &Row<'_, Self>, _: &impl Tx) -> Result<Map<String, Value>> {
        Ok(Map::from_iter([("destination__secrets".to_owned(), row.version.into())]))
    }
}
