//! The error body, and the errors that each operation may return. See `docs/spec/errors.md`.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::route_spec::{Cardinality, RouteSpec};

use super::parameters::{RATE_LIMIT_HEADERS, header_references};
use super::schemas::reference;

/// The errors of one status.
struct ErrorResponse {
    status: u16,
    name: &'static str,
    kinds: &'static [&'static str],
    description: &'static str,
    /// The codes, if there are several.
    codes: &'static [&'static str],
    /// A header of these errors, besides the shared ones.
    header: Option<&'static str>,
    /// The code and the detail of an example.
    example: (&'static str, &'static str),
    /// The field of the example.
    attr: Option<&'static str>,
}

/// Returns the errors of a status, as yet without a description and an example.
const fn error(status: u16, name: &'static str, kinds: &'static [&'static str]) -> ErrorResponse {
    let (description, codes, header, example, attr) = ("", &[], None, ("", ""), None);
    ErrorResponse { status, name, kinds, description, codes, header, example, attr }
}

const INVALID: &[&str] = &["invalid_request"];
const AUTHENTICATION: &[&str] = &["authentication_error"];
const SERVER: &[&str] = &["server_error"];

const ALL: &[ErrorResponse] = &[
    error(400, "BadRequest", &["validation_error", "invalid_request"])
        .about(
            "A field or the body breaks a rule, or the body is not JSON. The error names the first \
             such field in schema order.",
        )
        .codes(&[
            "account_exists",
            "already_verified",
            "blank",
            "does_not_exist",
            "empty",
            "expired",
            "incorrect_type",
            "invalid_choice",
            "invalid_input",
            "invalid_recipient",
            "limit_reached",
            "mail_required",
            "max_decimal_places",
            "max_digits",
            "max_length",
            "max_string_length",
            "max_value",
            "max_whole_digits",
            "min_value",
            "not_a_dict",
            "not_a_list",
            "null",
            "null_characters_not_allowed",
            "parse_error",
            "required",
            "unique",
            "user_already_member",
            "verification_required",
        ])
        .example("required", "This field is required.")
        .attr("name"),
    error(401, "Unauthorized", AUTHENTICATION)
        .about("The API key is missing or invalid.")
        .codes(&["not_authenticated", "authentication_failed"])
        .example("not_authenticated", "Authentication credentials were not provided."),
    error(403, "Forbidden", AUTHENTICATION)
        .about(
            "The key lacks the scope or is restricted to other objects, or the user lacks the \
             permission.",
        )
        .example("permission_denied", "API key missing required scope 'dashboard:write'"),
    error(404, "NotFound", INVALID)
        .about("The object does not exist or is not visible to you.")
        .example("not_found", "Not found."),
    error(405, "MethodNotAllowed", INVALID)
        .about("The path does not support this method.")
        .header("Allow")
        .example("method_not_allowed", "Method \"PUT\" not allowed."),
    error(408, "RequestTimeout", INVALID)
        .about("The body did not arrive within the time limit.")
        .example("request_timeout", "The request body did not arrive in time."),
    error(412, "PreconditionFailed", INVALID)
        .about("The object has changed since the version that `If-Match` names.")
        .example(
            "precondition_failed",
            "The object has changed: its version is not one that If-Match names.",
        ),
    error(413, "ContentTooLarge", INVALID)
        .about(
            "The body exceeds 1 MiB (`--max-body`), or 16 KiB without a key or on an operation that \
             ignores its body. Or its parsed form would take more than a quarter of \
             `--transfer-memory`.",
        )
        .example("payload_too_large", "The request body is larger than 1048576 bytes."),
    error(415, "UnsupportedMediaType", INVALID)
        .about("The content type of the body is not JSON.")
        .example("unsupported_media_type", "Unsupported media type \"text/plain\" in request."),
    error(422, "IdempotencyKeyReused", INVALID)
        .about("The `Idempotency-Key` was already used for a request with another body.")
        .example(
            "idempotency_key_reused",
            "This Idempotency-Key was used for a request with another body.",
        ),
    error(429, "TooManyRequests", &["throttled_error"])
        .about("The caller exceeded a rate limit (`--rate-limit`).")
        .header("RetryAfter")
        .example("throttled", "Request was throttled. Expected available in 38 seconds."),
    error(500, "InternalServerError", SERVER)
        .about("An unexpected error, for example a damaged data file.")
        .example("error", "A server error occurred."),
    error(503, "ServiceUnavailable", SERVER)
        .about(
            "The service, its data file or another service that it depends on is temporarily \
             unavailable, or too many requests are in progress.",
        )
        .header("RetryAfter")
        .example("unavailable", "The service is temporarily unavailable. Try again shortly."),
];

/// Returns the statuses and error responses of an operation.
pub(super) fn error_responses(spec: &RouteSpec) -> impl Iterator<Item = (u16, Value)> {
    let statuses = statuses(spec);
    let refusals = ALL.iter().filter(move |refusal| statuses.contains(&refusal.status));
    refusals.map(|ErrorResponse { status, name, .. }| {
        (*status, json!({ "$ref": format!("#/components/responses/{name}") }))
    })
}

fn statuses(spec: &RouteSpec) -> Vec<u16> {
    let mut statuses = spec.extra_statuses.clone();
    statuses.extend([500, 503]);
    if spec.reads_key() {
        statuses.extend([401, 403]);
    }
    if !spec.path.starts_with("/_") {
        statuses.push(429);
    }
    if spec.path.contains('{') && !spec.is_public() {
        statuses.push(404);
    }
    if [Method::POST, Method::PUT, Method::PATCH].contains(&spec.method) {
        statuses.extend([400, 408, 413, 415]);
    }
    let is_page = spec.response.is_some_and(|gives| gives.cardinality == Cardinality::Page);
    if is_page || !spec.query.is_empty() || spec.accepts_dry_run() {
        statuses.push(400);
    }
    if spec.accepts_idempotency_key() {
        statuses.push(422);
    }
    if spec.accepts_if_match() {
        statuses.push(412);
    }
    statuses
}

/// The shared error responses.
pub(super) fn responses() -> Map<String, Value> {
    ALL.iter().map(|refusal| (refusal.name.to_owned(), refusal.response())).collect()
}

/// The schemas of errors: the error body, and one schema per status. They are named so that generators create
/// one type for each and not one per operation.
pub(super) fn schemas() -> impl Iterator<Item = (String, Value)> {
    let of_status = ALL.iter().map(|refusal| (refusal.schema_name(), refusal.schema()));
    std::iter::once(("Error".to_owned(), envelope())).chain(of_status)
}

/// The schema of the error body.
fn envelope() -> Value {
    let listed = |list: fn(&ErrorResponse) -> &[&'static str]| {
        let mut all: Vec<&str> = ALL.iter().flat_map(list).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    json!({
        "type": "object",
        "description": "An error. It reports one problem at a time.",
        "required": ["type", "code", "detail", "attr"],
        "properties": {
            "type": {
                "type": "string",
                "enum": listed(|refusal| refusal.kinds),
                "description": "The category of the error.",
            },
            "code": {
                "type": "string",
                "enum": listed(ErrorResponse::all_codes),
                "description": "The machine-readable error code.",
            },
            "detail": { "type": "string", "description": "A message for people." },
            "attr": {
                "type": ["string", "null"],
                "description": "The field that caused the error. Nested names are joined with `__`.",
            },
        },
        "additionalProperties": false,
    })
}

impl ErrorResponse {
    const fn about(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    const fn codes(self, codes: &'static [&'static str]) -> Self {
        Self { codes, ..self }
    }

    const fn header(self, header: &'static str) -> Self {
        Self { header: Some(header), ..self }
    }

    const fn example(self, code: &'static str, detail: &'static str) -> Self {
        Self { example: (code, detail), ..self }
    }

    const fn attr(self, attr: &'static str) -> Self {
        Self { attr: Some(attr), ..self }
    }

    fn all_codes(&self) -> &[&'static str] {
        let (code, _) = &self.example;
        if self.codes.is_empty() { std::slice::from_ref(code) } else { self.codes }
    }

    fn schema_name(&self) -> String {
        format!("{}Error", self.name.trim_end_matches("Error"))
    }

    /// The error body, restricted to the types and codes of this status.
    fn schema(&self) -> Value {
        let narrowed = json!({
            "properties": { "type": { "enum": self.kinds }, "code": { "enum": self.all_codes() } },
        });
        json!({ "description": self.description, "allOf": [reference("Error"), narrowed] })
    }

    fn response(&self) -> Value {
        let ((code, detail), attr, kind) = (self.example, self.attr, self.kinds.first());
        // A 401 reveals nothing about the key, so it must not show the key's rate limit.
        let status = RATE_LIMIT_HEADERS.iter().filter(|_| self.status != 401);
        let headers = header_references(self.header.iter().chain(status).chain(&["DryRun"]));
        json!({
            "description": self.description,
            "headers": headers,
            "content": {
                "application/json": {
                    "schema": reference(&self.schema_name()),
                    "examples": {
                        code: { "value": { "type": kind, "code": code, "detail": detail, "attr": attr } },
                    },
                },
            },
        })
    }
}
