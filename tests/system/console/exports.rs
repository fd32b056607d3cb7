//! Batch exports: an export to S3 is created, paused and changed.

use serde_json::json;

use super::{Site, assert_sound, browser, shown};
use crate::support::batch_exports::DESTINATIONS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_to_s3_is_created_paused_and_changed() {
    let site = Site::new().await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click("nav.side a[href$='/batch_exports/']").await;
    shown(&browser, "Batch exports").await;
    assert_sound(&browser, "an empty list").await;
    browser.click("main a.go").await;
    shown(&browser, "New batch export").await;
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
    browser.click("#form button.go").await;
    shown(&browser, "Nightly").await;
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

    browser.click("nav.side a[href$='/batch_exports/']").await;
    shown(&browser, "Batch exports").await;
    browser.click("tbody .check").await;
    browser.click("button[value=unpause]").await;
    browser.wait_until("the export is active", "!!document.querySelector('td .tag.good')").await;
    assert_sound(&browser, "the list").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_destination_is_filled_in_saved_and_shown_again() {
    let site = Site::new().await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    let list = format!("projects/{}/batch_exports/", site.workspace.made.project_id);
    for (name, typed, _) in DESTINATIONS {
        site.visit(&browser, &format!("{list}new/?destination={name}")).await;
        browser.fill("#form-name", name).await;
        for (key, text) in typed {
            let text = text.replace("\r\n", "\n");
            browser.enter(&format!("form-destination-config-{key}"), &text).await;
        }
        let read = "return [...document.querySelectorAll('#form [name^=\"destination.config\"]')].map(one => [one.name, one.value])";
        let secrets = "return [...document.querySelectorAll('#form [name^=\"destination.config\"]')]\
            .filter(one => one.type === 'password' || document.getElementById(one.id + '-hint')?.textContent.includes('Leave it empty to keep'))\
            .map(one => one.name)";
        let sent = browser.run(read).await;
        assert!(sent.as_array().is_some_and(|sent| sent.len() >= typed.len()), "{name}: {sent}");
        browser.click("#form button.go").await;
        shown(&browser, name).await;
        assert_eq!(browser.text("[data-notice]").await, "Batch export created.");
        let secrets = browser.run(secrets).await;
        let secrets = secrets.as_array().expect("names");
        let expected = sent.as_array().into_iter().flatten();
        let expected = expected.map(|one| {
            let is_secret = secrets.contains(&one[0]);
            json!([one[0], if is_secret { json!("") } else { one[1].clone() }])
        });
        assert_eq!(browser.run(read).await, expected.collect::<serde_json::Value>(), "{name}");
        assert_sound(&browser, name).await;
    }
    browser.close().await;
}
