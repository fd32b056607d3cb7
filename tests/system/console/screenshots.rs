//! The pictures in `docs/screenshots/`, taken of a workspace with sample data. `UPDATE_DOCS=1` writes them.

use crate::prelude::*;

/// The most that all pictures together may take, in bytes.
const MAX_BYTES: usize = 2_000_000;

/// Fills a workspace with what a small company has.
async fn fill(site: &Site) {
    let owner = &site.workspace.owner;
    let made = &site.workspace.made;
    let organization = format!("/api/organizations/{}/", made.organization_id);
    owner.patch(&organization, json!({ "name": "Corp" })).await.ok();
    let project = format!("/api/projects/{}/", made.project_id);
    owner.patch(&project, json!({ "name": "Shop", "timezone": "Europe/Berlin" })).await.ok();
    owner.patch("/api/users/@me/", json!({ "first_name": "Jo", "last_name": "Doe" })).await.ok();
    for (name, first, last, level) in [
        ("ann", "Ann", "Lee", Level::Admin),
        ("bob", "Bob", "Ray", Level::Member),
        ("cat", "Cat", "Moss", Level::Member),
    ] {
        let member = site.workspace.member(name, level).await;
        let names = json!({ "first_name": first, "last_name": last });
        member.patch("/api/users/@me/", names).await.ok();
    }
    for (name, description, tags, pinned) in [
        ("Growth", "Signups, activation and churn", json!(["weekly", "board"]), true),
        ("Sales, weekly", "Revenue by channel against plan", json!(["weekly"]), true),
        ("Checkout", "Where people leave the checkout", json!(["product"]), false),
        ("Mobile app", "Crashes, sessions and updates", json!(["product", "mobile"]), false),
        ("Marketing", "Campaigns and what they cost", json!([]), false),
    ] {
        let body =
            json!({ "name": name, "description": description, "tags": tags, "pinned": pinned });
        owner.post(&site.workspace.dashboards(""), body).await.ok();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pictures_of_the_documentation_are_taken() {
    let site = Site::new().await;
    fill(&site).await;
    let board = site.board("Read me first").await;
    let browser = site.browser().await;
    let project = format!("projects/{}", site.workspace.made.project_id);
    let dashboards = format!("{project}/dashboards/");
    let dashboard = format!("{dashboards}{}/", board["id"]);
    let mut pictures = Vec::new();
    for (name, page) in [("dashboards", &dashboards), ("dashboard", &dashboard)] {
        for (look, width, scheme) in
            [("light", 1280, "light"), ("dark", 1280, "dark"), ("phone", 390, "light")]
        {
            browser.look(width, scheme).await;
            site.visit(&browser, page).await;
            browser.text("h1").await;
            assert_sound(&browser, name).await;
            pictures.push((format!("{name}-{look}.png"), browser.screenshot().await));
        }
    }
    let size: usize = pictures.iter().map(|(_, picture)| picture.len()).sum();
    assert!(size < MAX_BYTES, "the pictures take {size} bytes");
    for (name, picture) in &pictures {
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 5_000, "{name}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/screenshots");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let _absent = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        for (name, picture) in &pictures {
            fs::write(folder.join(name), picture).expect("a picture");
        }
    }
    let kept = fs::read_dir(&folder).expect("docs/screenshots");
    let kept: BTreeSet<_> =
        kept.map(|file| file.expect("a file").file_name().into_string().expect("UTF-8")).collect();
    let taken: BTreeSet<_> = pictures.into_iter().map(|(name, _)| name).collect();
    assert_eq!(kept, taken, "run with UPDATE_DOCS=1 to write the pictures again");
}
