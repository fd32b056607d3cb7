//! The scopes of a new key, and the search in the settings.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_key_can_do_follows_the_chosen_scopes() {
    let (_site, browser) = Site::signed_in().await;
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
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_are_searched_and_changed_ones_are_marked() {
    let (site, browser) = Site::signed_in().await;
    site.visit(&browser, "projects/1/settings/").await;
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
}
