//! The headers of responses, and the response to a dry run.

use serde_json::{Map, Value, json};

use crate::http::route_spec::RouteSpec;

use super::schemas::reference;

/// A response header.
struct Header {
    /// The name in the document.
    name: &'static str,
    /// The name on the wire.
    wire: &'static str,
    description: &'static str,
    /// Whether a response that may carry the header always does.
    always: bool,
    schema: fn() -> Value,
}

const fn header(name: &'static str, wire: &'static str, schema: fn() -> Value) -> Header {
    Header { name, wire, description: "", always: false, schema }
}

impl Header {
    const fn always(self) -> Self {
        Self { always: true, ..self }
    }

    const fn about(self, description: &'static str) -> Self {
        Self { description, ..self }
    }
}

const ALL: &[Header] = &[
    header("RequestId", "X-Request-Id", request_id).always().about(
        "The id of the request, which also appears in the log. It is your own if you sent a valid \
         one.",
    ),
    header("Allow", "Allow", text).always().about("The methods that the path accepts."),
    header("RetryAfter", "Retry-After", number).always().about("Seconds until you may try again."),
    header("ETag", "ETag", tag)
        .always()
        .about("The version of the returned object, for `If-None-Match` and `If-Match`."),
    header("ETagUnlessDryRun", "ETag", tag).about(
        "The version of the returned object, for `If-None-Match` and `If-Match`. A dry run returns \
         none.",
    ),
    header("IdempotentReplayed", "Idempotent-Replayed", mark).about(
        "Present if the response is replayed from an earlier request with the same idempotency \
         key.",
    ),
    header("DryRun", "Dry-Run", mark)
        .about("Present if the request was a dry run, which changed nothing."),
    header("RateLimitLimit", "RateLimit-Limit", number)
        .about("The number of requests that the strictest `--rate-limit` allows at once."),
    header("RateLimitRemaining", "RateLimit-Remaining", number)
        .about("The number of requests left."),
    header("RateLimitReset", "RateLimit-Reset", number).about(
        "Seconds until the full limit is available again. In a 429, seconds until the next request \
         is allowed.",
    ),
];

fn request_id() -> Value {
    json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn mark() -> Value {
    json!({ "type": "string", "enum": ["true"] })
}

fn tag() -> Value {
    json!({ "type": "string", "pattern": "^\"[0-9]+-[0-9a-f]{16}(-gzip)?\"$" })
}

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) const RATE_LIMIT_HEADERS: [&str; 3] =
    ["RateLimitLimit", "RateLimitRemaining", "RateLimitReset"];

/// The headers of a successful response to this operation: `others` and those of every such
/// response.
pub(super) fn success_headers(spec: &RouteSpec, others: &[&str]) -> Value {
    let status = RATE_LIMIT_HEADERS.iter().filter(|_| spec.reads_key());
    let once = spec.accepts_idempotency_key();
    let dry_run = spec.has_dry_run_in_success();
    let marks =
        once.then_some(&"IdempotentReplayed").into_iter().chain(dry_run.then_some(&"DryRun"));
    references(others.iter().chain(status).chain(marks))
}

/// References to these headers, and to the request id that every response carries.
pub(super) fn references<'n>(names: impl Iterator<Item = &'n &'n str>) -> Value {
    let wanted: Vec<&str> = names.copied().chain(["RequestId"]).collect();
    let found = ALL.iter().filter(|header| wanted.contains(&header.name));
    let entries = found.map(|Header { name, wire, .. }| {
        ((*wire).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
    });
    Value::Object(entries.collect())
}

/// The shared header definitions.
pub(super) fn shared_headers() -> Map<String, Value> {
    let shared = ALL.iter().map(|Header { name, description, always, schema, .. }| {
        let header = json!({ "description": description, "required": always, "schema": schema() });
        ((*name).to_owned(), header)
    });
    shared.collect()
}

/// The name of the schema of the body.
pub(super) const DRY_RUN_SCHEMA: &str = "DryRunResult";
/// The name of the shared response.
pub(super) const DRY_RUN_RESPONSE: &str = "DryRun";

/// The schema of the body.
pub(super) fn dry_run_schema() -> Value {
    let entries = json!({
        "type": ["array", "null"],
        "items": reference("ActivityLog"),
        "description": "The activity entries that the request would record, as far as the caller may read them. Null \
            without a key, and for a key without the scope `activity_log:read`.",
    });
    json!({
        "type": "object",
        "description": "What a request with `Dry-Run: true` would have done.",
        "required": ["dry_run", "status", "response", "activity"],
        "properties": {
            "dry_run": { "type": "boolean", "enum": [true], "description": "Always true." },
            "status": {
                "type": "integer", "minimum": 200, "maximum": 299,
                "description": "The status of the response to the real request.",
            },
            "response": {
                "description": "The body of the response to the real request, with null in place of secrets. Null if \
                    it has no body.",
            },
            "activity": entries,
        },
        "additionalProperties": false,
    })
}

/// The shared response of operations whose own success has another status than 200.
pub(super) fn dry_run_response() -> Value {
    let names = ["DryRun"].iter().chain(&RATE_LIMIT_HEADERS);
    let example = json!({ "dry_run": true, "status": 204, "response": null, "activity": [] });
    json!({
        "description": "What the request would have done. Only with `Dry-Run: true`.",
        "headers": references(names),
        "content": {
            "application/json": {
                "schema": reference(DRY_RUN_SCHEMA),
                "examples": { "deleted": { "value": example } },
            },
        },
    })
}
