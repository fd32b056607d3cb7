//! The expected bodies of responses. A test names only what differs from a new object.

use serde_json::{Value, json};

/// The time at which the objects in expected bodies were created.
pub const MOMENT: &str = "2023-11-14T22:13:20.250000Z";

/// Returns the body with these changes, each of a field that it has.
pub fn changed(mut body: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("{changes} is no object") };
    for (name, value) in changes {
        assert!(body.get(&name).is_some(), "the body has no {name}");
        body[name] = value;
    }
    body
}

/// Returns the only page of a list.
pub fn page(results: Value) -> Value {
    let count = results.as_array().map(Vec::len);
    json!({ "count": count, "next": null, "previous": null, "results": results })
}

/// Returns an insight that this user created at [`MOMENT`], with these changes.
pub fn insight(user: &Value, changes: Value) -> Value {
    let new = json!({
        "id": null, "short_id": null, "name": null, "derived_name": null, "description": null,
        "filters": {}, "query": null, "order": null, "tags": [], "deleted": false,
        "favorited": false, "saved": true, "is_sample": false, "is_cached": false,
        "dashboards": [], "dashboard_tiles": [], "alerts": [],
        "created_at": MOMENT, "updated_at": MOMENT, "last_modified_at": MOMENT,
        "created_by": user, "last_modified_by": user,
        "effective_restriction_level": 21, "effective_privilege_level": 37,
        "user_access_level": "manager",
        "result": null, "columns": null, "hasMore": null, "types": null, "hogql": null,
        "timezone": null, "resolved_date_range": null, "last_refresh": null,
        "next_allowed_client_refresh": null, "cache_target_age": null, "query_status": null,
        "filters_hash": null, "last_viewed_at": null,
    });
    changed(new, changes)
}

/// Returns a text that this user wrote in the first project at [`MOMENT`], with these changes.
pub fn text(user: &Value, changes: Value) -> Value {
    let new = json!({
        "id": null, "body": null, "created_by": user, "last_modified_at": MOMENT,
        "last_modified_by": null, "team": 1,
    });
    changed(new, changes)
}

/// Returns the first tile of a dashboard, with these changes.
pub fn tile(changes: Value) -> Value {
    let new = json!({
        "id": null, "layouts": {}, "color": null, "order": 0, "insight": null, "text": null,
        "show_description": null, "transparent_background": null, "filters_overrides": {},
        "last_refresh": null, "is_cached": false,
    });
    changed(new, changes)
}
