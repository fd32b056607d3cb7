//! Fields of a project with their own validation.

use crate::projects::fields::Project;
use crate::support::prelude::*;

#[tokio::test]
async fn errors_to_ignore_must_be_a_short_list_of_strings() {
    let project = Project::new().await;
    let field = "autocapture_exceptions_errors_to_ignore";
    project.keeps(field, json!([[], null, ["a", ""], ["a".repeat(296)]])).await;
    let long = format!(
        "Field {field} must be less than 300 characters. Complex config should be provided in posthog-js initialization."
    );
    for (sent, detail) in [
        (json!(["a", { "a": 1 }]), format!("Must provide a list for field: {field}.")),
        (json!([[1], ["a", null]]), format!("Must provide a list of strings to field: {field}.")),
        (json!([["a".repeat(297)]]), long),
    ] {
        project.refuses_each(field, sent, &Refusal::of_body("invalid_input", detail)).await;
    }
}

#[tokio::test]
async fn configuration_fields_accept_only_their_own_keys() {
    let project = Project::new().await;
    let flag = "session_recording_linked_flag";
    let network = "session_recording_network_payload_capture_config";
    let replay = "session_replay_config";
    for (field, kept) in [
        (flag, json!([{ "id": 1, "key": "a" }, { "key": ["any"], "id": null, "variant": {} }])),
        (network, json!([{}, {"recordHeaders": true}, {"recordHeaders": true, "recordBody": "x"}])),
        (replay, json!([{}, {"record_canvas": true}, {"record_canvas": true, "ai_config": null}])),
    ] {
        project.keeps(field, kept).await;
    }
    let dictionary = "Must provide a dictionary or None.";
    for field in [flag, network, replay] {
        let sent = json!(["Welwyn Garden City", [], 1, true]);
        project.refuses_each(field, sent, &Refusal::invalid(field, dictionary)).await;
    }
    let flags = json!([
        {}, { "id": 1 }, { "id": 1, "key": "a", "other": 1 }, { "id": 1, "variant": "a" },
        { "id": 1, "key": "a", "variant": "a", "other": 1 },
    ]);
    let of_flags = "Must provide a dictionary with only 'id' and 'key' keys. _or_ only 'id', 'key', and 'variant' keys.";
    let of_network =
        "Must provide a dictionary with only 'recordHeaders' and/or 'recordBody' keys.";
    let known =
        "Must provide a dictionary with only known keys. One or more of record_canvas, ai_config.";
    let allowed = "Must provide a dictionary with only allowed keys: included_event_properties, opt_in, preferred_events, excluded_events, important_user_properties.";
    for (field, sent, detail) in [
        (flag, flags, of_flags),
        (network, json!([{ "recordHeaders": true, "other": 1 }]), of_network),
        (replay, json!([{ "record_canvas": true, "other": 1 }]), known),
        (replay, json!([{ "ai_config": [] }, { "ai_config": "x" }]), dictionary),
        (replay, json!([{ "ai_config": { "opt_in": true, "other": 1 } }]), allowed),
    ] {
        project.refuses_each(field, sent, &Refusal::invalid(field, detail)).await;
    }
    for field in [flag, network, replay] {
        project.keeps(field, json!([null])).await;
    }
}

#[tokio::test]
async fn replay_config_is_merged_two_levels_deep_and_survey_config_one() {
    let project = Project::new().await;
    let ai = |members: Value| json!({ "record_canvas": true, "ai_config": members });
    let merged = |event: &str| ai(json!({ "opt_in": true, "preferred_events": [event] }));
    for (sent, shown) in [
        (json!({ "record_canvas": true }), json!({ "record_canvas": true })),
        (json!({ "ai_config": { "opt_in": true } }), ai(json!({ "opt_in": true }))),
        (json!({ "ai_config": { "preferred_events": ["a"] } }), merged("a")),
        (json!({ "ai_config": { "preferred_events": ["b"] } }), merged("b")),
        (json!({}), merged("b")),
        (json!({ "ai_config": null }), ai(json!(null))),
        (json!({ "ai_config": { "opt_in": false } }), ai(json!({ "opt_in": false }))),
        (json!(null), Value::Null),
        (json!({ "ai_config": { "opt_in": true } }), json!({ "ai_config": { "opt_in": true } })),
    ] {
        project.takes("session_replay_config", sent, shown).await;
    }
    for (sent, shown) in [
        (json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } })),
        (json!({ "b": 2 }), json!({ "a": { "x": 1 }, "b": 2 })),
        (json!({ "a": { "y": 1 } }), json!({ "a": { "y": 1 }, "b": 2 })),
        (json!(null), Value::Null),
        (json!([1]), json!([1])),
        (json!({ "c": 3 }), json!({ "c": 3 })),
        (json!(null), Value::Null),
    ] {
        project.takes("survey_config", sent, shown).await;
    }
    // The result of a merge must stay within the limit of one value.
    let half = |name: &str| json!({ name: "a".repeat(20 * 1024) });
    project.keeps("survey_config", json!([half("a")])).await;
    let large = "Ensure this field has no more than 32768 bytes of JSON.";
    let sent = json!({ "survey_config": half("b") });
    let refused = project.workspace.owner.patch(&project.path, sent).await;
    refused.assert_invalid("survey_config", "max_length", large);
    assert_eq!(project.now().await["survey_config"], half("a"));
}
