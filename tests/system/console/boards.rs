//! The tiles of a dashboard, and the list of dashboards.

use crate::prelude::*;

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
async fn dashboard_is_filled_and_arranged() {
    let (site, browser) = Site::signed_in().await;
    let board = json!({ "name": "Growth" });
    site.workspace.owner.post(&site.workspace.dashboards(""), board).await.ok();
    site.visit(&browser, "projects/1/dashboards/1/").await;
    for (text, heading) in
        [("# Read this first\n\n**Numbers** are rounded.", "Read this first"), ("Second", "")]
    {
        go_to(&browser, "main .actions a.go", "Add a text").await;
        browser.fill("#form textarea", text).await;
        browser.click("details[data-shown=preview] summary").await;
        browser.text("details[data-shown=preview] [data-result]").await;
        if !heading.is_empty() {
            assert_eq!(browser.text("[data-result] h2").await, heading);
        }
        assert_sound(&browser, "a preview").await;
        go_to(&browser, "form.card .bar button.go", "Growth").await;
    }
    browser.click(".tile .tools button").await;
    assert_sound(&browser, "the menu of a tile").await;
    browser.press(Key::Escape).await;

    go_to(&browser, "main .actions a[href$='/arrange/']", "Arrange the tiles").await;
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
    go_to(&browser, "main .actions button.go", "Growth").await;
    let stored = site.workspace.owner.get(&site.workspace.dashboards("1/")).await.ok();
    let places: Vec<_> = [0, 1].map(|at| stored["tiles"][at]["layouts"]["sm"].clone()).to_vec();
    let expected = json!([{ "x": 0, "y": 0, "w": 7, "h": 4 }, { "x": 6, "y": 4, "w": 4, "h": 6 }]);
    assert_eq!(json!(places), expected);
}

/// Creates a dashboard with this many texts below each other, each half as wide as the grid and taller than half a screen.
async fn tall_board(site: &Site, tiles: usize) -> String {
    let tile = |y: usize| json!({ "text": { "body": format!("Tile {y}") }, "layouts": { "sm": { "x": 0, "y": y * 8, "w": 6, "h": 8 } } });
    let owner = &site.workspace.owner;
    let board = owner.post(&site.workspace.dashboards(""), json!({ "name": "Tall" })).await.ok();
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    let sent: Vec<Value> = (0..tiles).map(tile).collect();
    owner.patch(&path, json!({ "tiles": sent })).await.ok();
    format!("projects/1/dashboards/{}/arrange/", board["id"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arranging_keeps_its_place_on_the_screen() {
    let (site, browser) = Site::signed_in().await;
    site.visit(&browser, &tall_board(&site, 10).await).await;
    shown(&browser, "Arrange the tiles").await;

    // A drag in the middle of a long page does not scroll it.
    let scroll = "document.querySelector('#tile-5 .grip').scrollIntoView({ block: 'center' })";
    browser.run(scroll).await;
    let before = browser.run("return scrollY").await;
    assert!(before.as_f64() > Some(500.0), "{before}");
    let (dx, dy) = distance(&browser, 6, 1).await;
    browser.drag("#tile-5 .grip", dx, dy).await;
    assert_eq!(browser.run("return scrollY").await, before, "the page jumps");
    assert_eq!(numbers(&browser, 5).await[0], 7, "the tile has moved");

    // A tile that is moved by keys stays in sight.
    browser.run("document.querySelector('#tile-1 .grip').focus()").await;
    browser.press(Key::Enter).await;
    let in_sight = "const box = document.querySelector('#tile-1 .grip').getBoundingClientRect(), \
                    top = document.querySelector('header.top').getBoundingClientRect().bottom; \
                    return box.top >= top && box.bottom <= innerHeight";
    for key in [Key::Down, Key::Up] {
        for step in 0..40 {
            browser.press(key).await;
            assert_eq!(browser.run(in_sight).await, true, "{step} steps");
        }
    }
    browser.press(Key::Escape).await;

    // A drag puts down the tile that keys have lifted.
    browser.press(Key::Enter).await;
    browser.drag("#tile-3 .grip", dx, dy).await;
    assert_eq!(numbers(&browser, 3).await[0], 7, "the other tile has moved");
    assert_eq!(browser.run("return document.querySelectorAll('.held').length").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_are_dragged_by_a_finger_on_a_phone() {
    let (site, browser) = Site::signed_in().await;
    let path = tall_board(&site, 3).await;
    for width in [320, 390] {
        browser.look(width, "light").await;
        site.visit(&browser, &path).await;
        shown(&browser, "Arrange the tiles").await;
        let left = "return document.querySelector('#tile-2').getBoundingClientRect().left";
        let before = browser.run(left).await.as_f64().expect("a place");
        let half = "return document.querySelector('[data-arrange]').clientWidth / 2";
        let half = browser.run(half).await.as_f64().expect("a width");
        browser.drag_by_touch("#tile-2 .grip", half, 0.0).await;
        let has_moved = "Number(document.getElementById('x-2').value) === 7";
        browser.wait_until("it has moved", has_moved).await;
        let after = browser.run(left).await.as_f64().expect("a place");
        assert!(after > before + half / 2.0, "{width}: the tile is at {after}, was at {before}");
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert_eq!(wide, width, "the page scrolls sideways");
    }
}

/// Returns the entries of the menu of rows that are shown: the text, and the value or the target.
async fn entries(browser: &Browser) -> Value {
    let script = "return [...document.querySelectorAll('#row-menu [data-for]')].filter(one => one.checkVisibility()) \
                  .map(one => [one.textContent, one.value || one.getAttribute('href')])";
    browser.run(script).await
}

/// Asserts that the menu of a row acts on that row: by mouse and by keyboard, and after the list was replaced.
async fn one_menu_serves_every_row(site: &Site, browser: &Browser) {
    let list = format!("projects/{}/dashboards/", site.workspace.made.project_id);
    site.board("D").await;
    let pinned = site.workspace.dashboards("4/");
    site.workspace.owner.patch(&pinned, json!({ "pinned": true })).await.ok();
    site.visit(browser, &list).await;
    shown(browser, "Dashboards").await;
    let of = |id: u64, pin: &str| {
        let path = format!("/console/{list}");
        let label = if pin == "pin" { "Pin" } else { "Unpin" };
        json!([
            [label, format!("{pin} {id}")],
            ["Edit", format!("{path}{id}/edit/")],
            ["Duplicate", format!("{path}new/?from=dashboard&dashboard={id}")],
            ["Access and restriction", format!("{path}{id}/access/")],
            ["Delete", format!("{path}{id}/delete/")],
        ])
    };
    browser.click("tbody tr:last-child .end button").await;
    assert_eq!(entries(browser).await, of(3, "pin"));
    browser.click("tbody tr:first-child .end button").await;
    browser
        .wait_until("the menu is open", "document.querySelector('#row-menu:popover-open') !== null")
        .await;
    assert_eq!(entries(browser).await, of(4, "unpin"));
    browser.press(Key::Escape).await;
    let focused = "document.activeElement.matches('tbody tr:first-child .end button')";
    browser.wait_until("the button of the row has the focus", focused).await;
    browser.fill("[name=search]", "D").await;
    browser.press(Key::Enter).await;
    let one = "document.querySelectorAll('main tbody tr').length === 1";
    browser.wait_until("the list is replaced", one).await;
    browser.click("tbody .end button").await;
    assert_eq!(entries(browser).await, of(4, "unpin"));
    go_to(browser, "#row-menu a[href$='/delete/']", "Delete the dashboard D?").await;
    assert_sound(browser, "the question").await;
    browser.click("#form button.bad").await;
    assert_eq!(browser.text("[data-notice] p").await, "Dashboard deleted.");
    assert_eq!(site.workspace.owner.get(&pinned).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_dashboards_are_deleted_and_restored() {
    let site = Site::new().await;
    for name in ["A", "B", "C"] {
        site.board(name).await;
    }
    let browser = site.browser().await;
    go_to(&browser, "nav.side a[href$='/dashboards/']", "Dashboards").await;
    browser.click("[data-select-all] input").await;
    browser.click("tbody tr:last-child input.pick").await;
    browser.run("document.querySelector('#change select').value = 'delete'").await;
    go_to(&browser, "#change button", "Delete 2 dashboards?").await;
    assert_sound(&browser, "the question about two").await;
    browser.click("#form button.bad").await;
    assert_eq!(browser.text("[data-notice] p").await, "2 dashboards deleted.");
    let rows = "document.querySelectorAll('main tbody tr').length";
    browser.wait_until("one is left", &format!("{rows} === 1")).await;
    browser.click("tbody .end button").await;
    assert_sound(&browser, "the menu of a row").await;
    browser.press(Key::Escape).await;
    one_menu_serves_every_row(&site, &browser).await;
    go_to(&browser, "main .actions a[href$='/trash/']", "Trash").await;
    assert_sound(&browser, "the trash").await;
    browser.click("tbody .end button").await;
    assert_eq!(browser.text("[data-notice] p").await, "Dashboard restored.");
}
