//! The activity log in a browser: new entries appear by themselves, and times are short or exact.

use crate::prelude::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_entries_are_announced() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    let browser = site.browser().await;
    go_to(&browser, "nav.side a[href='/console/projects/1/activity/']", "Activity").await;
    browser.run("window.same = true").await;
    let count = "document.querySelectorAll('.feed > li').length";
    let before = browser.run(&format!("return {count}")).await.as_u64().expect("a number");
    let is_hidden = "document.querySelector('form[data-news]').hidden";
    assert_eq!(browser.run(&format!("return {is_hidden}")).await, true);

    site.workspace.owner.patch(&path, json!({ "name": "Sales" })).await.ok();
    // A page asks at once when its tab is shown again.
    browser.run("document.dispatchEvent(new Event('visibilitychange'))").await;
    browser.wait_until("the news", &format!("!{is_hidden}")).await;
    assert_eq!(browser.text("form[data-news] button").await, "1 new entry");
    let said = browser.run("return document.getElementById('say').textContent").await;
    assert_eq!(said, "1 new entry");
    assert_sound(&browser, "the news").await;
    browser.click("form[data-news] button").await;
    browser.wait_until("the new entry", &format!("{count} === {}", before + 1)).await;
    assert_eq!(browser.run("return window.same").await, true, "the page was replaced");
    assert_eq!(browser.run(&format!("return {is_hidden}")).await, true);
    assert_sound(&browser, "the log").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn times_are_exact_after_a_tap_and_entries_stay_short() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    let long = "A long line of a description.\n".repeat(200);
    site.workspace.owner.patch(&path, json!({ "description": long })).await.ok();
    let tiles = |x: usize| {
        let tile = |y: usize| json!({ "text": { "body": format!("{x} {y}") }, "layouts": { "sm": { "x": x, "y": y, "w": 2, "h": 2 } } });
        json!({ "tiles": (0..20).map(tile).collect::<Vec<_>>() })
    };
    site.workspace.owner.patch(&path, tiles(0)).await.ok();
    let browser = site.browser().await;
    for (width, highest) in [(390, 700), (1280, 500)] {
        browser.look(width, "light").await;
        site.visit(&browser, "projects/1/activity/").await;
        shown(&browser, "Activity").await;
        let tall = format!(
            "return [...document.querySelectorAll('.feed > li')].map(one => one.offsetHeight).filter(height => height > {highest})"
        );
        assert_eq!(browser.run(&tall).await, json!([]), "{width}");
    }
    let text = "return document.querySelector('.feed time').textContent";
    let year = "/\\d{4}/.test(document.querySelector('.feed time').textContent)";
    assert_eq!(browser.run(&format!("return {year}")).await, false, "an age at first");
    let age = browser.run(text).await;
    browser.click(".feed time").await;
    browser.wait_until("the exact time", year).await;
    assert_sound(&browser, "exact times").await;
    // The next page of the tab shows exact times too, and the switch at its end changes them back.
    site.visit(&browser, "sessions/").await;
    shown(&browser, "Sessions").await;
    let all_exact =
        "[...document.querySelectorAll('time')].every(one => /\\d{4}/.test(one.textContent))";
    browser.wait_until("all times are exact", all_exact).await;
    assert_eq!(browser.run("return document.getElementById('exact').checked").await, true);
    browser.click("#exact").await;
    browser.wait_until("ages again", &format!("!({all_exact})")).await;
    assert!(age.as_str().is_some_and(|age| !age.is_empty()), "{age}");
}
