//! API keys as people make and revoke them, and the search in the settings.

use serde_json::json;

use super::{Site, assert_sound, go_to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_is_created_from_a_preset_read_once_and_revoked() {
    let (site, browser) = Site::signed_in().await;
    go_to(&browser, "nav.side a[href='/console/keys/']", "API keys").await;
    go_to(&browser, "main .b.go", "New API key").await;
    browser.run("window.same = true").await;
    browser.fill("#form-label", "Nightly report").await;
    browser.click("button[value='dashboards']").await;
    let counted =
        "/^\\d+ of \\d+ operations$/.test(document.querySelector('#can .tag')?.textContent)";
    browser.wait_until("what the key can do", counted).await;
    assert_sound(&browser, "a preset").await;
    let before = browser.text("#can .tag").await;
    browser.click("input[value='activity_log:read']").await;
    let follows = format!("document.querySelector('#can .tag').textContent !== '{before}'");
    browser.wait_until("the operations follow the scopes", &follows).await;
    let kept = "return [window.same, document.getElementById('form-label').value]";
    assert_eq!(browser.run(kept).await, json!([true, "Nightly report"]));
    assert_sound(&browser, "another scope").await;

    go_to(&browser, "#form button.go", "API key created").await;
    let value = browser.text("#value").await;
    assert_sound(&browser, "the value").await;
    let key = site.workspace.with_key(&value);
    let made = key.get("/api/personal_api_keys/@current/").await.ok();
    let scopes = ["activity_log:read", "dashboard:write", "insight:write", "project:read"];
    assert_eq!((&made["label"], &made["scopes"]), (&json!("Nightly report"), &json!(scopes)));

    go_to(&browser, "main p .b", "Nightly report").await;
    assert!(!browser.run("return document.body.innerText").await.to_string().contains(&value));
    assert_sound(&browser, "one key").await;
    go_to(&browser, ".actions .b.bad", "Revoke the key Nightly report?").await;
    assert_sound(&browser, "the question").await;
    go_to(&browser, "#form .b.bad", "API keys").await;
    assert_eq!(browser.text("[data-notice] p").await, "API key revoked.");
    key.get("/api/personal_api_keys/@current/").await.is_bad_key();
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_searched_and_changed_ones_are_marked() {
    let (site, browser) = Site::signed_in().await;
    let path = format!("projects/{}/settings/", site.workspace.made.project_id);
    site.visit(&browser, &path).await;
    browser.fill("[data-filter] input", "heatmaps").await;
    let visible = "[...document.querySelectorAll('#form .field, #form h2')].filter(one => one.checkVisibility())";
    let two = format!("{visible}.length === 2");
    browser.wait_until("one field and its heading match", &two).await;
    assert_sound(&browser, "a search").await;
    browser.fill("[data-filter] input", "").await;
    browser.fill("[data-filter] input", "session_recording_sample").await;
    browser.wait_until("names of fields match", &two).await;
    browser.fill("#form-session_recording_sample_rate", "0.5").await;
    let marked = "document.querySelectorAll('#form [data-changed]').length === 1";
    browser.wait_until("the field is marked", marked).await;
    assert_sound(&browser, "a change").await;
    browser.click("#form button.go").await;
    assert_eq!(browser.text("[data-notice] p").await, "Settings saved.");
    let api = format!("/api/projects/{}/", site.workspace.made.project_id);
    let saved = site.workspace.owner.get(&api).await.ok();
    assert_eq!(saved["session_recording_sample_rate"], "0.50");
    browser.close().await;
}
