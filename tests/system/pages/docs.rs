//! The API documentation page in a real browser: it shows the operations, calls them with a key, and loads nothing from
//! other hosts.

use crate::prelude::*;
use crate::support::contract::contract;

const OPERATION: &str = "#operations-users-users_retrieve";

#[tokio::test]
async fn api_docs_page_shows_every_operation_and_sends_requests_with_a_key() {
    let site = Site::at("127.0.0.1").await;
    let browser = Browser::open().await;
    browser.note_refusals().await;
    browser.visit(&format!("{}/api/docs/", site.base)).await;
    assert_eq!(browser.text(".info .title").await.lines().next(), Some("Steward"));
    assert_eq!(browser.title().await, "Steward: the API");

    let tags = browser
        .run("return [...document.querySelectorAll('.opblock-tag')].map(it => it.dataset.tag)");
    let expected = contract().document["tags"].as_array().expect("tags").iter();
    let expected: Vec<&Value> = expected.map(|tag| &tag["name"]).collect();
    assert_eq!(tags.await, json!(expected));
    browser
        .run("document.querySelectorAll('.opblock-tag').forEach(it => it.dataset.isOpen === 'true' || it.click())")
        .await;
    browser.text(&format!("{OPERATION} .opblock-summary-description")).await;
    let count = contract().operations().len();
    let shown = format!("document.querySelectorAll('.opblock').length === {count}");
    browser.wait_until("all operations are shown", &shown).await;

    browser.click(".auth-wrapper .authorize").await;
    browser.text(".modal-ux input").await;
    let key = site.workspace.owner.key.clone().expect("a key");
    browser.fill(".modal-ux input", &key).await;
    browser.click(".modal-ux .authorize").await;
    browser.click(".modal-ux .btn-done").await;
    browser.click(&format!("{OPERATION} .opblock-summary-control")).await;
    browser.text(&format!("{OPERATION} .execute")).await;
    browser.click(&format!("{OPERATION} .execute")).await;
    let live = format!("{OPERATION} .live-responses-table");
    let status = browser.text(&format!("{live} .response .response-col_status")).await;
    assert_eq!(status.lines().next(), Some("200"));
    let body = browser.text(&format!("{live} .response .highlight-code")).await;
    assert!(body.contains(OWNER), "{body}");

    assert_eq!(browser.run("return refused").await, json!([]));
    let fetched =
        browser.run("return performance.getEntriesByType('resource').map(it => it.name)").await;
    let fetched: Vec<&str> =
        fetched.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert!(fetched.len() >= 4, "{fetched:?}");
    let inside = |url: &&&str| url.starts_with(&site.base) || url.starts_with("data:");
    assert_eq!(fetched.iter().filter(inside).count(), fetched.len(), "{fetched:?}");
    // The page does not store the key.
    assert_eq!(browser.run("return [localStorage.length, document.cookie]").await, json!([0, ""]));
}
