//! Batch exports: an export to S3 is created, paused and changed.

use serde_json::json;

use super::{Site, assert_sound, go_to};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_to_s3_is_created_paused_and_changed() {
    let (site, browser) = Site::signed_in().await;
    go_to(&browser, "nav.side a[href$='/batch_exports/']", "Batch exports").await;
    assert_sound(&browser, "an empty list").await;
    go_to(&browser, "main a.go", "New batch export").await;
    assert_sound(&browser, "the destinations").await;
    browser.click("main a[href$='destination=S3']").await;
    browser.wait_until("the form is shown", "!!document.getElementById('form-name')").await;
    for (field, text) in [
        ("name", "Nightly"),
        ("hogql_query", "SELECT * FROM persons"),
        ("destination-config-bucket_name", "lake"),
        ("destination-config-region", "eu-central-1"),
        ("destination-config-prefix", "events/"),
        ("destination-config-aws_secret_access_key", "s3cret"),
    ] {
        browser.fill(&format!("#form-{field}"), text).await;
    }
    browser.click("#form button.go").await;
    let error = browser.text("#form-hogql_query-error").await;
    assert_eq!(error, "Query must only SELECT FROM events: line 1, column 15.");
    assert_sound(&browser, "an error in the query").await;
    browser.fill("#form-hogql_query", "SELECT * FROM events").await;
    go_to(&browser, "#form button.go", "Nightly").await;
    assert_eq!(browser.text("[data-notice]").await, "Batch export created.");
    assert_sound(&browser, "the new export").await;

    browser.click("#state button").await;
    browser.wait_until("the export is paused", "!!document.querySelector('.head .tag.warn')").await;
    browser.fill("#form-destination-config-prefix", "other/").await;
    browser.click("#form button.go").await;
    let saved = "document.querySelector('[data-notice]')?.textContent.includes('saved')";
    browser.wait_until("the change is saved", saved).await;
    assert_sound(&browser, "the changed export").await;
    let path = format!("/api/projects/{}/batch_exports/", site.workspace.made.project_id);
    let stored = &site.workspace.owner.get(&path).await.ok()["results"][0];
    assert_eq!(stored["paused"], true);
    let config = json!({ "bucket_name": "lake", "region": "eu-central-1", "prefix": "other/" });
    assert_eq!(stored["destination"], json!({ "type": "S3", "config": config }));

    go_to(&browser, "nav.side a[href$='/batch_exports/']", "Batch exports").await;
    browser.click("tbody .check").await;
    browser.click("button[value=unpause]").await;
    browser.wait_until("the export is active", "!!document.querySelector('td .tag.good')").await;
    assert_sound(&browser, "the list").await;
    browser.close().await;
}
