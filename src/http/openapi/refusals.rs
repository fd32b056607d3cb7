//! The error envelope, and which refusals an operation may answer with (decisions §1; facts-crosscutting §b).

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::row::{Many, Row};

use super::headers;
use super::schemas::reference;

/// Every refusal of one status.
struct Refusal {
    status: u16,
    name: &'static str,
    about: &'static str,
    kinds: &'static [&'static str],
    codes: &'static [&'static str],
    /// A header that goes with it, besides the request's id.
    header: Option<&'static str>,
    /// One as an example: code, detail, attr.
    example: (&'static str, &'static str, Option<&'static str>),
}

const INVALID: &[&str] = &["invalid_request"];
const AUTHENTICATION: &[&str] = &["authentication_error"];
const SERVER: &[&str] = &["server_error"];

const ALL: &[Refusal] = &[
    Refusal {
        status: 400,
        name: "BadRequest",
        about: "A field, or the body as a whole, breaks a rule; or the body is no JSON. The first field is told, in \
                the order of the schema.",
        kinds: &["validation_error", "invalid_request"],
        codes: &[
            "account_exists",
            "already_verified",
            "blank",
            "does_not_exist",
            "empty",
            "expired",
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
    Refusal {
        status: 401,
        name: "Unauthorized",
        about: "There is no key, or it opens nothing.",
        kinds: AUTHENTICATION,
        codes: &["not_authenticated", "authentication_failed"],
        header: None,
        example: ("not_authenticated", "Authentication credentials were not provided.", None),
    },
    Refusal {
        status: 403,
        name: "Forbidden",
        about: "The key lacks the scope or is limited to something else, or its user may not.",
        kinds: AUTHENTICATION,
        codes: &["permission_denied"],
        header: None,
        example: ("permission_denied", "API key missing required scope 'dashboard:write'", None),
    },
    Refusal {
        status: 404,
        name: "NotFound",
        about: "It does not exist, or is not shown to the caller.",
        kinds: INVALID,
        codes: &["not_found"],
        header: None,
        example: ("not_found", "Not found.", None),
    },
    Refusal {
        status: 405,
        name: "MethodNotAllowed",
        about: "The path does not take this method.",
        kinds: INVALID,
        codes: &["method_not_allowed"],
        header: Some("Allow"),
        example: ("method_not_allowed", "Method \"PUT\" not allowed.", None),
    },
    Refusal {
        status: 408,
        name: "RequestTimeout",
        about: "The body did not arrive in time.",
        kinds: INVALID,
        codes: &["request_timeout"],
        header: None,
        example: ("request_timeout", "The request body did not arrive in time.", None),
    },
    Refusal {
        status: 412,
        name: "PreconditionFailed",
        about: "It was changed since the answer that `If-Match` names.",
        kinds: INVALID,
        codes: &["precondition_failed"],
        header: None,
        example: (
            "precondition_failed",
            "The object has changed: its version is not one that If-Match names.",
            None,
        ),
    },
    Refusal {
        status: 413,
        name: "ContentTooLarge",
        about: "The body is larger than the service takes: 1 MiB, unless it was started with another `--max-body`, and 16 KiB without a key or where the body says nothing to the operation. Or it has so many values that, parsed, it takes more than a quarter of `--transfer-memory`.",
        kinds: INVALID,
        codes: &["payload_too_large"],
        header: None,
        example: ("payload_too_large", "The request body is larger than 1048576 bytes.", None),
    },
    Refusal {
        status: 415,
        name: "UnsupportedMediaType",
        about: "The body is not JSON by its own word.",
        kinds: INVALID,
        codes: &["unsupported_media_type"],
        header: None,
        example: (
            "unsupported_media_type",
            "Unsupported media type \"text/plain\" in request.",
            None,
        ),
    },
    Refusal {
        status: 422,
        name: "IdempotencyKeyReused",
        about: "The `Idempotency-Key` was sent before, with another body.",
        kinds: INVALID,
        codes: &["idempotency_key_reused"],
        header: None,
        example: (
            "idempotency_key_reused",
            "This Idempotency-Key was used for a request with another body.",
            None,
        ),
    },
    Refusal {
        status: 429,
        name: "TooManyRequests",
        about: "More requests came than the service takes of one caller, where it was started with a `--rate-limit`.",
        kinds: &["throttled_error"],
        codes: &["throttled"],
        header: Some("RetryAfter"),
        example: ("throttled", "Request was throttled. Expected available in 38 seconds.", None),
    },
    Refusal {
        status: 500,
        name: "InternalServerError",
        about: "A defect, or a damaged data file.",
        kinds: SERVER,
        codes: &["error"],
        header: None,
        example: ("error", "A server error occurred.", None),
    },
    Refusal {
        status: 503,
        name: "ServiceUnavailable",
        about: "Not now: the data file, or what the service asks others, is not available, or too much is under way.",
        kinds: SERVER,
        codes: &["unavailable"],
        header: Some("RetryAfter"),
        example: (
            "unavailable",
            "The service is not available for the moment. Try again shortly.",
            None,
        ),
    },
];

/// What an operation may refuse with: its statuses, and references to them.
pub(super) fn of(row: &Row) -> impl Iterator<Item = (u16, Value)> {
    let statuses = statuses(row);
    let refusals = ALL.iter().filter(move |refusal| statuses.contains(&refusal.status));
    refusals.map(|Refusal { status, name, .. }| {
        (*status, json!({ "$ref": format!("#/components/responses/{name}") }))
    })
}

fn statuses(row: &Row) -> Vec<u16> {
    let mut statuses = row.may.clone();
    statuses.extend([500, 503]);
    if row.keyed() {
        statuses.extend([401, 403]);
    }
    if !row.path.starts_with("/_") {
        statuses.push(429);
    }
    if row.path.contains('{') && !row.is_public() {
        statuses.push(404);
    }
    if [Method::POST, Method::PUT, Method::PATCH].contains(&row.method) {
        statuses.extend([400, 408, 413, 415]);
    }
    let is_page = row.gives.is_some_and(|gives| gives.many == Many::Page);
    if is_page || !row.query.is_empty() {
        statuses.push(400);
    }
    if row.method == Method::POST && row.keyed() {
        statuses.push(422);
    }
    if row.is_conditional() {
        statuses.push(412);
    }
    statuses
}

/// The responses that operations refer to.
pub(super) fn responses() -> Map<String, Value> {
    ALL.iter().map(|refusal| (refusal.name.to_owned(), refusal.response())).collect()
}

/// The schemas of what is refused: the error envelope, and what there is of it with each status. They have names
/// so that generators make one type of each, and not one for each operation.
pub(super) fn schemas() -> impl Iterator<Item = (String, Value)> {
    let of_status = ALL.iter().map(|refusal| (refusal.schema_name(), refusal.schema()));
    std::iter::once(("Error".to_owned(), envelope())).chain(of_status)
}

/// The error envelope.
fn envelope() -> Value {
    let listed = |list: fn(&Refusal) -> &'static [&'static str]| {
        let mut all: Vec<&str> = ALL.iter().flat_map(list).copied().collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    json!({
        "type": "object",
        "description": "What is wrong. One thing is told at a time.",
        "required": ["type", "code", "detail", "attr"],
        "properties": {
            "type": {
                "type": "string",
                "enum": listed(|refusal| refusal.kinds),
                "description": "What kind of thing is wrong.",
            },
            "code": {
                "type": "string",
                "enum": listed(|refusal| refusal.codes),
                "description": "What is wrong, for programs.",
            },
            "detail": { "type": "string", "description": "What is wrong, for people." },
            "attr": {
                "type": ["string", "null"],
                "description": "The field at fault; what is nested is joined with `__`.",
            },
        },
        "additionalProperties": false,
    })
}

impl Refusal {
    fn schema_name(&self) -> String {
        format!("{}Error", self.name.trim_end_matches("Error"))
    }

    /// The error envelope, with the types and codes that go with the status.
    fn schema(&self) -> Value {
        let narrowed = json!({
            "properties": { "type": { "enum": self.kinds }, "code": { "enum": self.codes } },
        });
        json!({ "description": self.about, "allOf": [reference("Error"), narrowed] })
    }

    fn response(&self) -> Value {
        let (code, detail, attr) = self.example;
        let kind = self.kinds.first();
        // What tells nothing of why a key opens nothing does not tell where it stands with its limits either.
        let standing = headers::STANDING.iter().filter(|_| self.status != 401);
        let headers = headers::references(self.header.iter().chain(standing));
        json!({
            "description": self.about,
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
