//! A dashboard from the first text to the public page.

use fantoccini::key::Key;
use serde_json::{Value, json};

use super::{Site, assert_sound, browser, recording, shown};
use crate::support::browser::Browser;

/// Returns the numbers of a tile in the form: column, row, width, height.
async fn numbers(browser: &Browser, tile: u64) -> Value {
    let script = format!(
        "return ['x', 'y', 'w', 'h'].map(key => Number(document.getElementById(`${{key}}-{tile}`).value))"
    );
    browser.run(&script).await
}

/// Returns how far the given number of columns and rows is, in pixels.
async fn distance(browser: &Browser, columns: i32, rows: i32) -> (f64, f64) {
    let script = "const grid = document.querySelector('[data-arrange]'); return (grid.clientWidth + 14) / 12";
    let column = browser.run(script).await.as_f64().expect("a width");
    (column * f64::from(columns), 66.0 * f64::from(rows))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dashboard_is_created_filled_arranged_and_shared() {
    let site = Site::new().await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click("nav.side a[href$='/dashboards/']").await;
    shown(&browser, "Dashboards").await;
    browser.click("main .actions a.go").await;
    shown(&browser, "New dashboard").await;
    assert_sound(&browser, "a new dashboard").await;
    browser.fill("#form-name", "Growth").await;
    browser.click("form.card button.go").await;
    shown(&browser, "Growth").await;
    assert_eq!(browser.text("[data-notice] p").await, "Created.");

    for (text, heading) in
        [("# Read this first\n\n**Numbers** are rounded.", "Read this first"), ("Second", "")]
    {
        browser.click("main .actions a.go").await;
        shown(&browser, "Add a text").await;
        browser.fill("#form textarea", text).await;
        browser.click("details[data-shown=preview] summary").await;
        browser.text("details[data-shown=preview] [data-result]").await;
        if !heading.is_empty() {
            assert_eq!(browser.text("[data-result] h2").await, heading);
        }
        assert_sound(&browser, "a preview").await;
        browser.click("form.card .bar button.go").await;
        shown(&browser, "Growth").await;
    }
    browser.click(".tile .tools button").await;
    assert_sound(&browser, "the menu of a tile").await;
    browser.press(Key::Escape).await;

    browser.click("main .actions a[href$='/arrange/']").await;
    shown(&browser, "Arrange the tiles").await;
    assert_eq!(numbers(&browser, 1).await, json!([1, 1, 6, 5]));
    assert_eq!(numbers(&browser, 2).await, json!([7, 1, 6, 5]));
    let (dx, dy) = distance(&browser, -6, 0).await;
    browser.drag("#tile-2 .grip", dx, dy).await;
    assert_eq!(numbers(&browser, 2).await, json!([1, 1, 6, 5]));
    assert_eq!(numbers(&browser, 1).await, json!([1, 6, 6, 5]), "the other tile makes room");
    let (dx, dy) = distance(&browser, 6, 0).await;
    browser.drag("#tile-1 .grip", dx, dy).await;
    assert_eq!(numbers(&browser, 1).await, json!([7, 1, 6, 5]), "the tile moves up");
    let (dx, dy) = distance(&browser, -2, 1).await;
    browser.drag("#tile-1 .corner", dx, dy).await;
    assert_eq!(numbers(&browser, 1).await, json!([7, 1, 4, 6]));
    assert_sound(&browser, "arranged by mouse").await;

    browser.run("document.querySelector('#tile-2 .grip').focus()").await;
    browser.press(Key::Enter).await;
    browser.press_with_shift(Key::Right).await;
    browser.press_with_shift(Key::Up).await;
    assert_eq!(numbers(&browser, 2).await, json!([1, 1, 7, 4]));
    assert_eq!(numbers(&browser, 1).await, json!([7, 5, 4, 6]), "the other tile makes room");
    browser.press(Key::Enter).await;
    browser.press(Key::Enter).await;
    browser.press(Key::Right).await;
    assert_eq!(numbers(&browser, 2).await, json!([2, 1, 7, 4]));
    browser.press(Key::Escape).await;
    assert_eq!(numbers(&browser, 2).await, json!([1, 1, 7, 4]), "Escape puts the tile back");
    assert_eq!(browser.text("#say").await, "Put back");
    browser.click("main .actions button.go").await;
    shown(&browser, "Growth").await;
    let stored = site.workspace.owner.get(&site.workspace.dashboards("1/")).await.ok();
    let places: Vec<_> = [0, 1].map(|at| stored["tiles"][at]["layouts"]["sm"].clone()).to_vec();
    let expected = json!([{ "x": 0, "y": 0, "w": 7, "h": 4 }, { "x": 6, "y": 4, "w": 4, "h": 6 }]);
    assert_eq!(json!(places), expected);

    browser.click("main .actions a[href$='/sharing/']").await;
    shown(&browser, "Sharing of Growth").await;
    browser.click("button[value=enable]").await;
    let link = browser.text("#link").await;
    assert_sound(&browser, "a public link").await;
    let other = recording(Browser::open().await).await;
    other.visit(&link).await;
    assert_eq!(other.text("h1").await, "Growth");
    assert!(other.text("body").await.contains("Numbers are rounded."));
    other.close().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_dashboards_are_deleted_and_restored() {
    let site = Site::new().await;
    for name in ["A", "B", "C"] {
        site.board(name).await;
    }
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.click("nav.side a[href$='/dashboards/']").await;
    shown(&browser, "Dashboards").await;
    browser.click("[data-select-all] input").await;
    browser.click("tbody tr:last-child input.pick").await;
    browser.run("document.querySelector('#change select').value = 'delete'").await;
    browser.click("#change button").await;
    assert_eq!(browser.text("[data-notice] p").await, "Deleted.");
    let rows = "document.querySelectorAll('main tbody tr').length";
    browser.wait_until("one is left", &format!("{rows} === 1")).await;
    browser.click("tbody .end button").await;
    assert_sound(&browser, "the menu of a row").await;
    browser.press(Key::Escape).await;
    browser.click("main .actions a[href$='/trash/']").await;
    shown(&browser, "Trash").await;
    assert_sound(&browser, "the trash").await;
    browser.click("tbody .end button").await;
    assert_eq!(browser.text("[data-notice] p").await, "Restored.");
    browser.close().await;
}
