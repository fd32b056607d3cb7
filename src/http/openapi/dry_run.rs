//! The response to a dry run.

use serde_json::{Value, json};

use super::headers;
use super::schemas::reference;

/// The name of the schema of the body.
pub(super) const SCHEMA: &str = "DryRunResult";
/// The name of the shared response.
pub(super) const RESPONSE: &str = "DryRun";

/// The schema of the body.
pub(super) fn schema() -> Value {
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
pub(super) fn response() -> Value {
    let names = ["DryRun"].iter().chain(&headers::RATE_LIMIT_HEADERS);
    let example = json!({ "dry_run": true, "status": 204, "response": null, "activity": [] });
    json!({
        "description": "What the request would have done. Only with `Dry-Run: true`.",
        "headers": headers::references(names),
        "content": {
            "application/json": {
                "schema": reference(SCHEMA),
                "examples": { "deleted": { "value": example } },
            },
        },
    })
}
