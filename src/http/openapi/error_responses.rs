//! The error body, and the errors that each operation may return. See `docs/spec/errors.md`.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::route_spec::{Cardinality, RouteSpec};

use super::headers;
use super::schemas::reference;

/// The errors of one status.
struct ErrorResponse {
    status: u16,
    name: &'static str,
    description: &'static str,
    kinds: &'static [&'static str],
    codes: &'static [&'static str],
    /// A header of these errors, besides the shared ones.
    header: Option<&'static str>,
    /// An example: code, detail, attr.
    example: (&'static str, &'static str, Option<&'static str>),
}

const INVALID: &[&str] = &["invalid_request"];
const AUTHENTICATION: &[&str] = &["authentication_error"];
const SERVER: &[&str] = &["server_error"];

const ALL: &[ErrorResponse] = &[
    ErrorResponse {
        status: 400,
        name: "BadRequest",
        description: "A field or the body breaks a rule, or the body is not JSON. The error names the first such \
            field in schema order.",
        kinds: &["validation_error", "invalid_request"],
        codes: &[
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
        ],
        header: None,
        example: ("required", "This field is required.", Some("name")),
    },
    ErrorResponse {
        status: 401,
        name: "Unauthorized",
        description: "The API key is missing or invalid.",
        kinds: AUTHENTICATION,
        codes: &["not_authenticated", "authentication_failed"],
        header: None,
        example: ("not_authenticated", "Authentication credentials were not provided.", None),
    },
    ErrorResponse {
        status: 403,
        name: "Forbidden",
        description: "The key lacks the scope or is restricted to other objects, or the user lacks the permission.",
        kinds: AUTHENTICATION,
        codes: &["permission_denied"],
        header: None,
        example: ("permission_denied", "API key missing required scope 'dashboard:write'", None),
    },
    ErrorResponse {
        status: 404,
        name: "NotFound",
        description: "The object does not exist or is not visible to you.",
        kinds: INVALID,
        codes: &["not_found"],
        header: None,
        example: ("not_found", "Not found.", None),
    },
    ErrorResponse {
        status: 405,
        name: "MethodNotAllowed",
        description: "The path does not support this method.",
        kinds: INVALID,
        codes: &["method_not_allowed"],
        header: Some("Allow"),
        example: ("method_not_allowed", "Method \"PUT\" not allowed.", None),
    },
    ErrorResponse {
        status: 408,
        name: "RequestTimeout",
        description: "The body did not arrive within the time limit.",
        kinds: INVALID,
        codes: &["request_timeout"],
        header: None,
        example: ("request_timeout", "The request body did not arrive in time.", None),
    },
    ErrorResponse {
        status: 412,
        name: "PreconditionFailed",
        description: "The object has changed since the version that `If-Match` names.",
        kinds: INVALID,
        codes: &["precondition_failed"],
        header: None,
        example: (
            "precondition_failed",
            "The object has changed: its version is not one that If-Match names.",
            None,
        ),
    },
    ErrorResponse {
        status: 413,
        name: "ContentTooLarge",
        description: "The body exceeds 1 MiB (`--max-body`), or 16 KiB without a key or on an operation that \
            ignores its body. Or its parsed form would take more than a quarter of `--transfer-memory`.",
        kinds: INVALID,
        codes: &["payload_too_large"],
        header: None,
        example: ("payload_too_large", "The request body is larger than 1048576 bytes.", None),
    },
    ErrorResponse {
        status: 415,
        name: "UnsupportedMediaType",
        description: "The content type of the body is not JSON.",
        kinds: INVALID,
        codes: &["unsupported_media_type"],
        header: None,
        example: (
            "unsupported_media_type",
            "Unsupported media type \"text/plain\" in request.",
            None,
        ),
    },
    ErrorResponse {
        status: 422,
        name: "IdempotencyKeyReused",
        description: "The `Idempotency-Key` was already used for a request with another body.",
        kinds: INVALID,
        codes: &["idempotency_key_reused"],
        header: None,
        example: (
            "idempotency_key_reused",
            "This Idempotency-Key was used for a request with another body.",
            None,
        ),
    },
    ErrorResponse {
        status: 429,
        name: "TooManyRequests",
        description: "The caller exceeded a rate limit (`--rate-limit`).",
        kinds: &["throttled_error"],
        codes: &["throttled"],
        header: Some("RetryAfter"),
        example: ("throttled", "Request was throttled. Expected available in 38 seconds.", None),
    },
    ErrorResponse {
        status: 500,
        name: "InternalServerError",
        description: "An unexpected error, for example a damaged data file.",
        kinds: SERVER,
        codes: &["error"],
        header: None,
        example: ("error", "A server error occurred.", None),
    },
    ErrorResponse {
        status: 503,
        name: "ServiceUnavailable",
        description: "The service, its data file or another service that it depends on is temporarily \
            unavailable, or too many requests are in progress.",
        kinds: SERVER,
        codes: &["unavailable"],
        header: Some("RetryAfter"),
        example: (
            "unavailable",
            "The service is temporarily unavailable. Try again shortly.",
            None,
        ),
    },
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
    if is_page || !spec.query.is_empty() {
        statuses.push(400);
    }
    if spec.accepts_dry_run() {
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
    let listed = |list: fn(&ErrorResponse) -> &'static [&'static str]| {
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
                "enum": listed(|refusal| refusal.codes),
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
    fn schema_name(&self) -> String {
        format!("{}Error", self.name.trim_end_matches("Error"))
    }

    /// The error body, restricted to the types and codes of this status.
    fn schema(&self) -> Value {
        let narrowed = json!({
            "properties": { "type": { "enum": self.kinds }, "code": { "enum": self.codes } },
        });
        json!({ "description": self.description, "allOf": [reference("Error"), narrowed] })
    }

    fn response(&self) -> Value {
        let (code, detail, attr) = self.example;
        let kind = self.kinds.first();
        // A 401 reveals nothing about the key, so it must not show the key's rate limit.
        let status = headers::RATE_LIMIT_HEADERS.iter().filter(|_| self.status != 401);
        let headers = headers::references(self.header.iter().chain(status).chain(&["DryRun"]));
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
