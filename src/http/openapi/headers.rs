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

const ALL: &[Header] = &[
    Header {
        name: "RequestId",
        wire: "X-Request-Id",
        description: "The id of the request, which also appears in the log. It is your own if you sent a valid one.",
        always: true,
        schema: || json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
    },
    Header {
        name: "Allow",
        wire: "Allow",
        description: "The methods that the path accepts.",
        always: true,
        schema: || json!({ "type": "string" }),
    },
    Header {
        name: "RetryAfter",
        wire: "Retry-After",
        description: "Seconds until you may try again.",
        always: true,
        schema: number,
    },
    Header {
        name: "ETag",
        wire: "ETag",
        description: "The version of the returned object, for `If-None-Match` and `If-Match`.",
        always: true,
        schema: tag,
    },
    Header {
        name: "ETagUnlessDryRun",
        wire: "ETag",
        description: "The version of the returned object, for `If-None-Match` and `If-Match`. A dry run returns none.",
        always: false,
        schema: tag,
    },
    Header {
        name: "IdempotentReplayed",
        wire: "Idempotent-Replayed",
        description: "Present if the response is replayed from an earlier request with the same idempotency key.",
        always: false,
        schema: || json!({ "type": "string", "enum": ["true"] }),
    },
    Header {
        name: "DryRun",
        wire: "Dry-Run",
        description: "Present if the request was a dry run, which changed nothing.",
        always: false,
        schema: || json!({ "type": "string", "enum": ["true"] }),
    },
    Header {
        name: "RateLimitLimit",
        wire: "RateLimit-Limit",
        description: "The number of requests that the strictest `--rate-limit` allows at once.",
        always: false,
        schema: number,
    },
    Header {
        name: "RateLimitRemaining",
        wire: "RateLimit-Remaining",
        description: "The number of requests left.",
        always: false,
        schema: number,
    },
    Header {
        name: "RateLimitReset",
        wire: "RateLimit-Reset",
        description: "Seconds until the full limit is available again. In a 429, seconds until the next request \
            is allowed.",
        always: false,
        schema: number,
    },
];

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
