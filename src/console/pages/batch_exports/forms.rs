//! The forms of a batch export: the destinations with their names and fields, and a new export, whose destination people
//! choose first.

use crate::console::pages::prelude::*;

/// The operation whose body has a schema for each destination.
const CREATE: &str = "projects_batch_exports_create";

/// A service that exports are sent to.
pub(super) struct Destination {
    /// The name in the API.
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    /// The service in a sentence, with what it needs.
    pub(super) about: &'static str,
    pub(super) create: FormSpec,
    pub(super) change: FormSpec,
}

const fn destination(
    name: &'static str,
    label: &'static str,
    about: &'static str,
    config: &'static [Input],
) -> Destination {
    let mut create = FormSpec::create("Create batch export", EXPORT);
    (create.more, create.variant) = (config, Some(("type", name)));
    let mut change = FormSpec::change("Save", EXPORT);
    (change.more, change.variant) = (config, Some(("type", name)));
    change.described_by = Some(CREATE);
    Destination { name, label, about, create, change }
}

const INTERVALS: &[(&str, &str)] = &[
    ("every 5 minutes", "Every 5 minutes"),
    ("every 15 minutes", "Every 15 minutes"),
    ("hour", "Every hour"),
    ("day", "Every day"),
    ("week", "Every week"),
];

/// The fields that exports to all destinations have.
const EXPORT: &[Input] = &[
    Input::new("name").label("Name"),
    Input::new("interval").choices(INTERVALS).label("Interval"),
    Input::new("start_at").label("Start").hint("It does not run before this time."),
    Input::new("end_at").label("End").hint("It does not run after this time."),
    Input::new("model")
        .choices(&[("", "Not set"), ("events", "Events"), ("persons", "Persons")])
        .heading("Content")
        .label("Model"),
    Input::new("hogql_query")
        .label("Query")
        .hint("The rows and columns to export, in HogQL: one SELECT FROM events.")
        .shape(Shape::Code),
    Input::new("filters").label("Filters").hint("JSON."),
];

/// Begins the group of the destination.
const fn first(name: &'static str, label: &'static str) -> Input {
    Input::new(name).label(label).heading("Destination")
}

const fn field(name: &'static str, label: &'static str) -> Input {
    Input::new(name).label(label)
}

/// The fields of PostgreSQL, and of services with its interface.
const POSTGRES: [Input; 8] = [
    first("destination.config.host", "Host"),
    field("destination.config.port", "Port"),
    field("destination.config.user", "User"),
    field("destination.config.password", "Password"),
    field("destination.config.database", "Database"),
    field("destination.config.schema", "Schema"),
    field("destination.config.table_name", "Table"),
    field("destination.config.has_self_signed_cert", "The certificate is self-signed"),
];

const REDSHIFT: [Input; 9] = {
    let [host, port, user, password, database, schema, table, certificate] = POSTGRES;
    let properties = field("destination.config.properties_data_type", "Type of properties");
    [host, port, user, password, database, schema, table, certificate, properties]
};

/// All destinations.
static DESTINATIONS: [Destination; 7] = [
    destination(
        "S3",
        "Amazon S3",
        "A bucket of Amazon S3, or of a service with the same interface.",
        &[
            first("destination.config.bucket_name", "Bucket"),
            field("destination.config.region", "Region"),
            field("destination.config.prefix", "Prefix")
                .hint("The start of the names of all objects."),
            field("destination.config.endpoint_url", "Endpoint")
                .hint("Only for services other than Amazon S3."),
            field("destination.config.aws_access_key_id", "Access key ID"),
            field("destination.config.aws_secret_access_key", "Secret access key"),
            field("destination.config.file_format", "File format"),
            field("destination.config.compression", "Compression")
                .hint("Parquet supports all, JSONLines only gzip and brotli."),
            field("destination.config.encryption", "Encryption"),
            field("destination.config.kms_key_id", "KMS key ID"),
            field("destination.config.include_events", "Include events"),
            field("destination.config.exclude_events", "Exclude events"),
        ],
    ),
    destination(
        "Snowflake",
        "Snowflake",
        "A table of a Snowflake warehouse, with a password or a key pair.",
        &[
            first("destination.config.account", "Account"),
            field("destination.config.user", "User"),
            field("destination.config.authentication_type", "Authentication").choices(&[
                ("", "Not set: by password"),
                ("password", "Password"),
                ("keypair", "Key pair"),
            ]),
            field("destination.config.password", "Password"),
            field("destination.config.private_key", "Private key"),
            field("destination.config.private_key_passphrase", "Passphrase of the private key"),
            field("destination.config.database", "Database"),
            field("destination.config.warehouse", "Warehouse"),
            field("destination.config.schema", "Schema"),
            field("destination.config.table_name", "Table"),
            field("destination.config.role", "Role"),
        ],
    ),
    destination("Postgres", "PostgreSQL", "A table of a PostgreSQL database.", &POSTGRES),
    destination(
        "Redshift",
        "Amazon Redshift",
        "A table of an Amazon Redshift database.",
        &REDSHIFT,
    ),
    destination(
        "BigQuery",
        "Google BigQuery",
        "A table of Google BigQuery, with the key of a service account.",
        &[
            first("destination.config.project_id", "Project ID"),
            field("destination.config.dataset_id", "Dataset ID"),
            field("destination.config.table_id", "Table ID"),
            field("destination.config.client_email", "Client email"),
            field("destination.config.private_key_id", "Private key ID"),
            field("destination.config.private_key", "Private key"),
            field("destination.config.token_uri", "Token URI"),
            field("destination.config.use_json_type", "Use the JSON type"),
        ],
    ),
    destination(
        "HTTP",
        "HTTP",
        "A URL that accepts events.",
        &[first("destination.config.url", "URL"), field("destination.config.token", "Token")],
    ),
    destination(
        "NoOp",
        "Nowhere",
        "Discards the data, for tests.",
        &[first("destination.config.arg", "Argument")],
    ),
];

/// Returns the destination with this name in the API.
pub(super) fn find_destination(name: &str) -> Option<&'static Destination> {
    DESTINATIONS.iter().find(|destination| destination.name == name)
}

/// Returns the name of a destination for people.
pub(super) fn destination_label(name: &str) -> &str {
    find_destination(name).map_or(name, |destination| destination.label)
}

/// Returns an interval in words.
pub(super) fn interval_label(value: &str) -> &str {
    INTERVALS.iter().find(|(known, _)| *known == value).map_or(value, |(_, label)| *label)
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/choose.html")]
struct ChoosePage {
    base: String,
    destinations: &'static [Destination],
}

#[derive(Template)]
#[template(path = "console/pages/batch_exports/new.html")]
struct NewPage {
    base: String,
    destination: &'static Destination,
    form: Form,
}

pub(super) async fn new(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let base = BATCH_EXPORTS.list(&project);
    let create = Operation::new(CREATE, [&project]);
    let sends_form = request.visit.sends_form();
    if !sends_form && !request.api.may(&create).await? {
        return Err(Error::denied("You may not create batch exports in this project.").into());
    }
    let destination = match request.visit.query("destination") {
        "" if sends_form => return Err(Error::not_found().into()),
        "" => {
            let page = ChoosePage { base, destinations: &DESTINATIONS };
            return Feedback::default().show(&request, "New batch export", &page).await;
        }
        name => find_destination(name).ok_or_else(Error::not_found)?,
    };
    let action = format!("{base}new/?destination={}", destination.name);
    let form = if sends_form {
        let mut sent = destination.create.sent(&request, create, &action)?;
        let target = sent.body.entry("destination").or_insert_with(|| json!({}));
        target["type"] = json!(destination.name);
        if target["config"].is_null() {
            target["config"] = json!({});
        }
        match sent.send(&request).await? {
            Ok(export) => return finish(&page_of(&base, &export), "export-created"),
            Err(form) => *form,
        }
    } else {
        let form = destination.create.empty(&request, &create, &action)?;
        form.with_value("interval", &json!("hour")).with_value("model", &json!("events"))
    };
    let page = NewPage { base, destination, form };
    Feedback::from(page.form.status).show(&request, "New batch export", &page).await
}
