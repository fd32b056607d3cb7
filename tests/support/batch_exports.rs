//! Batch exports.

use serde_json::{Value, json};

/// Returns a minimal export.
pub fn nowhere(name: &str) -> Value {
    json!({ "name": name, "destination": { "type": "NoOp", "config": {} }, "interval": "hour" })
}

/// Returns an export with the fields of `change` replaced.
pub fn with(mut export: Value, change: Value) -> Value {
    for (name, value) in change.as_object().expect("members") {
        export[name] = value.clone();
    }
    export
}

/// Returns an export to this service.
pub fn to(service: &str, config: &Value) -> Value {
    with(nowhere("e"), json!({ "destination": { "type": service, "config": config } }))
}
