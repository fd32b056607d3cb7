//! The look of pages on every screen, in light and in dark.

use serde_json::json;

use super::{Site, assert_sound, browser, keep_picture, shown};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "a list of pages")]
async fn pages_are_accessible_and_fit_every_screen_in_light_and_dark() {
    let site = Site::new().await;
    let long = "Averyveryveryveryveryveryveryverylongwordwithoutanyspace ".repeat(4);
    let board = site.board(&long).await;
    let path = site.workspace.dashboards(&format!("{}/", board["id"]));
    let tags = json!({ "tags": ["عربى", "a tag that is quite long", "third"], "pinned": true });
    site.workspace.owner.patch(&path, tags).await.ok();
    let text =
        json!({ "description": "Who stays, and for how long", "filters": { "date_from": "-7d" } });
    site.workspace.owner.patch(&path, text).await.ok();
    let key = json!({ "label": "Nightly report", "scopes": ["dashboard:write", "project:read"] });
    let key = site.workspace.owner.post("/api/personal_api_keys/", key).await.ok();
    let organization = site.workspace.made.organization_id;
    let user = site.workspace.made.user_id;
    let browser = browser().await;
    browser.look(390, "light").await;
    site.visit(&browser, "sign_in/").await;
    browser.text("#key").await;
    assert_sound(&browser, "sign in").await;
    keep_picture(&browser, "console-sign-in-390.png").await;
    let link = site.workspace.app.create_sign_in_link(user, true).await.expect("a link");
    site.visit(&browser, &format!("enter#{}", link.code)).await;
    browser.text("form[action='/console/enter/confirm/']").await;
    browser.click("button.go").await;
    shown(&browser, "Home").await;
    let project = site.workspace.made.project_id;
    let newest = format!("/api/projects/{project}/activity_log/?scope=Dashboard&limit=1");
    let newest = site.workspace.owner.get(&newest).await.ok()["results"][0].clone();
    let text = |name: &str| newest[name].as_str().expect("a text");
    let (item, at, entry) = (text("item_id"), text("created_at"), text("id"));
    let revert = format!("scope=Dashboard&item_id={item}&at={at}&entry={entry}");
    let people = people(&site, &long).await;
    let insights = format!("projects/{project}/insights/");
    let insight = json!({ "name": long, "tags": ["third"], "query": { "kind": "TrendsQuery" } });
    let insight = site.workspace.owner.post(&format!("/api/{insights}"), insight).await.ok();
    let insight = format!("{insights}{}/", insight["id"]);
    let exports = format!("projects/{project}/batch_exports/");
    let export = json!({
        "name": long, "interval": "day", "hogql_query": "SELECT *\nFROM events",
        "destination": { "type": "S3", "config": {
            "bucket_name": "lake", "region": "eu-central-1", "prefix": long,
        } },
    });
    let export = site.workspace.owner.post(&format!("/api/{exports}"), export).await.ok();
    let export = format!("{exports}{}/", export["id"].as_str().expect("an id"));
    let me = site.workspace.uuid(crate::support::OWNER).await;
    let rule = json!({ "access_level": "editor" });
    let rules = site.workspace.dashboards(&format!("{}/access_controls/", board["id"]));
    site.workspace.owner.put(&rules, rule).await.ok();
    let kinds = format!("/api/projects/{project}/resource_access_controls/");
    let rule = json!({ "access_level": "viewer", "resource": "insight" });
    site.workspace.owner.put(&kinds, rule).await.ok();
    let mut grounds = Vec::new();
    for (width, scheme) in [
        (320, "light"),
        (390, "light"),
        (390, "dark"),
        (1280, "light"),
        (1280, "dark"),
        (2560, "light"),
    ] {
        browser.look(width, scheme).await;
        for (name, page) in [
            ("dashboards", format!("projects/{project}/dashboards/")),
            ("dashboard", format!("projects/{project}/dashboards/{}/", board["id"])),
            ("new-dashboard", format!("projects/{project}/dashboards/new/?from=template")),
            ("arrange", format!("projects/{project}/dashboards/{}/arrange/", board["id"])),
            ("sharing", format!("projects/{project}/dashboards/{}/sharing/", board["id"])),
            (
                "access",
                format!("projects/{project}/dashboards/{}/access/?member={me}", board["id"]),
            ),
            ("project-access", format!("projects/{project}/access/")),
            ("activity", format!("projects/{project}/activity/")),
            (
                "last-changes",
                format!(
                    "projects/{project}/activity/fields/?scope=Dashboard&item_id={}",
                    board["id"]
                ),
            ),
            ("revert", format!("projects/{project}/activity/revert/?{revert}")),
            ("members", format!("{}members/", people.organization)),
            ("member", format!("{}members/{}/", people.organization, people.member)),
            ("invites", format!("{}invites/", people.organization)),
            ("roles", format!("{}roles/", people.organization)),
            ("role", format!("{}roles/{}/", people.organization, people.role)),
            ("domains", format!("{}domains/", people.organization)),
            ("domain", format!("{}domains/{}/", people.organization, people.domain)),
            ("insights", insights.clone()),
            ("new-insight", format!("{insights}new/")),
            ("insight", insight.clone()),
            ("insight-sharing", format!("{insight}sharing/")),
            ("exports", exports.clone()),
            ("new-export", format!("{exports}new/")),
            ("export", export.clone()),
            ("delete-export", format!("{export}delete/")),
            ("home", String::new()),
            ("project-settings", format!("projects/{project}/settings/")),
            ("projects", format!("organizations/{organization}/projects/")),
            ("organization", format!("organizations/{organization}/settings/")),
            ("keys", "keys/".to_owned()),
            ("new-key", "keys/new/".to_owned()),
            ("key", format!("keys/{}/", key["id"].as_str().expect("an id"))),
            ("sessions", "sessions/".to_owned()),
            ("health", "health/".to_owned()),
            ("missing", "no/such/page".to_owned()),
        ] {
            let what = format!("console-{name}-{width}-{scheme}");
            site.visit(&browser, &page).await;
            browser.text("h1").await;
            keep_picture(&browser, &format!("{what}.png")).await;
            let wide = browser.run("return document.documentElement.scrollWidth").await;
            assert_eq!(wide, width, "{what}: the page scrolls sideways");
            assert_sound(&browser, &what).await;
        }
        grounds.push(browser.run("return getComputedStyle(document.body).backgroundColor").await);
    }
    assert_eq!((&grounds[1], &grounds[2]), (&grounds[3], &grounds[4]));
    assert_ne!(grounds[1], grounds[2]);
    browser.close().await;
}

/// The ids of people and what belongs to them.
struct People {
    /// The path of the organization's pages.
    organization: String,
    member: String,
    role: String,
    domain: String,
}

/// Creates members, invites, a role and a domain with long names.
async fn people(site: &Site, long: &str) -> People {
    let workspace = &site.workspace;
    let name: String = long.chars().take(150).collect();
    let ben = workspace.member("ben", steward::testing::resources::members::Level::Member).await;
    ben.patch("/api/users/@me/", json!({ "first_name": name, "last_name": "عربى" })).await.ok();
    let member = workspace.uuid("ben@corp.example").await;
    let id = |made: serde_json::Value| made["id"].as_str().expect("an id").to_owned();
    let create = async |path: &str, sent: serde_json::Value| {
        workspace.owner.post(&workspace.organization(path), sent).await.ok()
    };
    for sent in [
        json!({ "target_email": format!("{}@x.example", "a".repeat(60)), "level": 8 }),
        json!({ "target_email": "ann@x.example", "first_name": "Ann" }),
    ] {
        create("invites/", sent).await;
    }
    let role =
        id(create("roles/", json!({ "name": long.trim().chars().take(200).collect::<String>() }))
            .await);
    let add = format!("roles/{role}/role_memberships/");
    create(&add, json!({ "user_uuid": member })).await;
    let domain = format!("{0}.{0}.example", "a".repeat(50));
    let domain = id(create("domains/", json!({ "domain": domain })).await);
    let organization = format!("organizations/{}/", workspace.made.organization_id);
    People { organization, member, role, domain }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tiles_stand_on_the_grid_of_their_layouts() {
    let site = Site::new().await;
    let board = site.board("Growth").await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    let path = format!("projects/{}/dashboards/{}/", site.workspace.made.project_id, board["id"]);
    let places = "return [...document.querySelectorAll('.tile')].map(one => { const box = one.getBoundingClientRect(), \
        grid = one.parentElement.getBoundingClientRect(); return [Math.round((box.x - grid.x) / grid.width * 12), \
        Math.round(box.y - grid.y), Math.round(box.width / grid.width * 12), Math.round(box.height)] })";
    browser.look(1280, "light").await;
    site.visit(&browser, &path).await;
    browser.text(".tile h2").await;
    assert_eq!(browser.run(places).await, json!([[0, 0, 6, 250], [6, 0, 6, 250]]));
    browser.look(390, "light").await;
    site.visit(&browser, &path).await;
    browser.text(".tile h2").await;
    let narrow = browser.run(places).await;
    assert_eq!((&narrow[0][0], &narrow[0][2]), (&json!(0), &json!(12)), "{narrow}");
    assert!(narrow[1][1].as_i64() > narrow[0][1].as_i64(), "{narrow}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn navigation_slides_in_on_small_screens() {
    let site = Site::new().await;
    let browser = browser().await;
    site.sign_in(&browser).await;
    browser.look(390, "light").await;
    site.visit(&browser, "sessions/").await;
    browser.text("main h1").await;
    let visible =
        "document.querySelector('nav.side ul a').checkVisibility({ visibilityProperty: true })";
    browser.wait_until("the navigation is hidden", &format!("!{visible}")).await;
    browser.click("header .burger").await;
    browser.wait_until("the navigation is shown", visible).await;
    assert_sound(&browser, "the navigation").await;
    browser.click("nav.side .burger").await;
    browser.wait_until("the navigation is hidden again", &format!("!{visible}")).await;
    browser.close().await;
}
