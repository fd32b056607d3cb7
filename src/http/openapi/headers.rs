//! The headers of answers: how they are called, what they hold, and which answers carry them.

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::http::row::Row;

/// A header that answers share.
struct Header {
    /// Its name in the document.
    name: &'static str,
    /// Its name on the wire.
    wire: &'static str,
    about: &'static str,
    /// Whether answers that may carry it always do.
    always: bool,
    schema: fn() -> Value,
}

const ALL: &[Header] = &[
    Header {
        name: "RequestId",
        wire: "X-Request-Id",
        about: "The id of the request, as the log has it; your own where you sent one.",
        always: true,
        schema: || json!({ "type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$" }),
    },
    Header {
        name: "Allow",
        wire: "Allow",
        about: "The methods that the path takes.",
        always: true,
        schema: || json!({ "type": "string" }),
    },
    Header {
        name: "RetryAfter",
        wire: "Retry-After",
        about: "After how many seconds to try again.",
        always: true,
        schema: number,
    },
    Header {
        name: "ETag",
        wire: "ETag",
        about: "The version of what was answered, for `If-None-Match` and `If-Match`.",
        always: true,
        schema: || json!({ "type": "string", "pattern": "^\"[0-9]+-[0-9a-f]{16}(-gzip)?\"$" }),
    },
    Header {
        name: "IdempotentReplayed",
        wire: "Idempotent-Replayed",
        about: "There where nothing was done, because the same request was done before.",
        always: false,
        schema: || json!({ "type": "string", "enum": ["true"] }),
    },
    Header {
        name: "RateLimitLimit",
        wire: "RateLimit-Limit",
        about: "How many requests the narrowest `--rate-limit` takes at once, where there is one.",
        always: false,
        schema: number,
    },
    Header {
        name: "RateLimitRemaining",
        wire: "RateLimit-Remaining",
        about: "How many of them are left.",
        always: false,
        schema: number,
    },
    Header {
        name: "RateLimitReset",
        wire: "RateLimit-Reset",
        about: "After how many seconds all are there again; of a 429, the next.",
        always: false,
        schema: number,
    },
];

fn number() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// Where a key stands with its limits.
pub(super) const STANDING: [&str; 3] = ["RateLimitLimit", "RateLimitRemaining", "RateLimitReset"];

/// Those that a success of this operation carries, besides these.
pub(super) fn of_success(row: &Row, others: &[&str]) -> Value {
    let standing = STANDING.iter().filter(|_| row.keyed());
    let once = row.keyed() && row.method == Method::POST;
    references(others.iter().chain(standing).chain(once.then_some(&"IdempotentReplayed")))
}

/// References to the headers of these names, and to that which every answer carries.
pub(super) fn references<'n>(names: impl Iterator<Item = &'n &'n str>) -> Value {
    let wanted: Vec<&str> = names.copied().chain(["RequestId"]).collect();
    let found = ALL.iter().filter(|header| wanted.contains(&header.name));
    let entries = found.map(|Header { name, wire, .. }| {
        ((*wire).to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }))
    });
    Value::Object(entries.collect())
}

/// The headers that answers refer to.
pub(super) fn shared() -> Map<String, Value> {
    let shared = ALL.iter().map(|Header { name, about, always, schema, .. }| {
        let header = json!({ "description": about, "required": always, "schema": schema() });
        ((*name).to_owned(), header)
    });
    shared.collect()
}
