//! Every setting of a project: filled in, saved, and shown again.

use serde_json::json;

use super::{Site, assert_sound, go_to};

/// What is entered where a text of its kind would not do.
const ENTERED: [(&str, &str); 12] = [
    ("name", "Shop"),
    ("app_urls", "https://a.example\nhttps://b.example"),
    ("recording_domains", "https://c.example"),
    ("timezone", "Europe/Berlin"),
    ("slack_incoming_webhook", "https://hooks.example/x"),
    ("session_recording_sample_rate", "0.25"),
    ("session_recording_minimum_duration_milliseconds", "500"),
    ("session_recording_linked_flag", r#"{"id": 1, "key": "beta"}"#),
    ("session_recording_network_payload_capture_config", r#"{"recordHeaders": true}"#),
    ("session_replay_config", r#"{"record_canvas": true}"#),
    ("survey_config", r#"{"appearance": {"color": "red"}}"#),
    ("data_attributes", r#"["data-test"]"#),
];

/// The values of the form by name. JSON is compared as JSON.
const VALUES: &str = "Object.fromEntries([...document.querySelectorAll('#form :is(input, select, textarea)[name]')]\
    .filter(one => one.type !== 'hidden')\
    .map(one => [one.name, one.type === 'checkbox' ? one.checked : one.matches('.code') ? JSON.parse(one.value) : one.value]))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_setting_is_saved_and_shown_again() {
    let site = Site::new().await;
    site.board("Growth").await;
    let browser = site.browser().await;
    go_to(&browser, "nav.side a[href$='/settings/'][href*='/projects/']", "Project settings").await;
    let before = browser
        .run("return [...document.querySelectorAll('#form h2')].map(one => one.textContent)")
        .await;
    assert_eq!(before.as_array().map(Vec::len), Some(7), "{before}");
    // The last option of a list, the other state of a box, and a text.
    let fields = "return [...document.querySelectorAll('#form :is(input, select, textarea)[name]')].filter(one => one.type !== 'hidden')\
        .map(one => [one.name, one.matches('select') ? one.options[one.options.length - 1].value \
            : one.type === 'checkbox' ? String(!one.checked) : one.matches('.code') ? '{\"a\": [1]}' : 'One'])";
    let fields = browser.run(fields).await;
    let fields = fields.as_array().expect("fields");
    assert!(fields.len() >= 39, "{fields:?}");
    for field in fields {
        let name = field[0].as_str().expect("a name");
        let chosen = ENTERED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let text = chosen.unwrap_or_else(|| field[1].as_str().expect("a text"));
        browser.enter(&format!("form-{name}"), text).await;
    }
    let entered = browser.run(&format!("return {VALUES}")).await;
    assert_sound(&browser, "changed settings").await;
    browser.click("#form .bar button.go").await;
    assert_eq!(browser.text("[data-notice] p").await, "Settings saved.");
    let shown_again = browser.run(&format!("return {VALUES}")).await;
    for (name, value) in entered.as_object().expect("values") {
        assert_eq!(&shown_again[name], value, "{name}");
    }
    assert_eq!(
        browser.run("return document.querySelectorAll('#form [data-changed]').length").await,
        0
    );
    assert_sound(&browser, "saved settings").await;

    browser.enter("access-access_control", "true").await;
    browser.click("#access .bar button.go").await;
    assert_eq!(browser.text("[data-notice] p").await, "Settings saved.");
    let private = "return document.getElementById('access-access_control').checked";
    assert_eq!(browser.run(private).await, json!(true));
    browser.close().await;
}
