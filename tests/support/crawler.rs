//! Reads the pages of the console as a crawler does, from the start page on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::json;

use super::Workspace;
use super::console::{FilledForm, Visitor};
use super::objects::Objects;

/// The pages of one shape that are read: the same page with other ids or filters shows nothing new.
const PAGES_OF_A_SHAPE: usize = 2;

/// The pages and forms that a browser finds.
#[derive(Default)]
pub struct Found {
    /// The pages by their shape, those that were found first before others.
    pub pages: BTreeMap<String, Vec<String>>,
    /// The forms by the shape of their action, with the page that has them.
    pub forms: BTreeMap<String, (String, FilledForm)>,
    /// The forms that change something, once for each of their buttons and actions, with the page that has them.
    pub buttons: BTreeMap<String, (String, FilledForm)>,
}

/// Returns a path with its ids and values replaced.
pub fn shape(path: &str) -> String {
    static IDS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"/(?:[0-9]+|[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_]{22,})/").expect("a pattern")
    });
    static VALUES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"=[^&]*").expect("a pattern"));
    VALUES.replace_all(&IDS.replace_all(&IDS.replace_all(path, "/:id/"), "/:id/"), "=").into_owned()
}

/// Creates one object of each type, and more that pages show: tiles, a deleted dashboard and
/// insight, a paused export and one that runs.
pub async fn make_objects(workspace: &Workspace) -> Objects {
    let objects = Objects::make(workspace, "corp").await;
    let owner = &workspace.owner;
    let dashboards = objects.fill("/api/projects/{project_id}/dashboards/");
    let tiles = json!([
        { "type": "TEXT", "body": "Read this", "layouts": {} },
        { "type": "INSIGHT", "name": "Visitors", "layouts": {}, "query": { "kind": "DataTableNode" } },
    ]);
    let template = json!({ "template": {
        "template_name": "Tiles", "dashboard_description": "", "dashboard_filters": {}, "tags": [], "tiles": tiles,
    }});
    let made = owner.post(&format!("{dashboards}create_from_template_json/"), template).await.ok();
    owner.patch(&format!("{dashboards}{}/", made["id"]), json!({ "pinned": true })).await.ok();
    let made = owner.post(&dashboards, json!({ "name": "Deleted" })).await.ok();
    owner.patch(&format!("{dashboards}{}/", made["id"]), json!({ "deleted": true })).await.ok();
    let insights = objects.fill("/api/projects/{project_id}/insights/");
    let made = owner.post(&insights, json!({ "name": "Deleted" })).await.ok();
    owner.patch(&format!("{insights}{}/", made["id"]), json!({ "deleted": true })).await.ok();
    let export = objects.fill("/api/projects/{project_id}/batch_exports/{id}/pause/");
    owner.post(&export, json!({})).await.ok();
    let running = json!({ "name": "Running", "destination": { "type": "NoOp", "config": {} }, "interval": "hour" });
    owner.post(&objects.fill("/api/projects/{project_id}/batch_exports/"), running).await.ok();
    objects
}

/// Names a form by the shape of its action and by what is pressed.
fn name(form: &FilledForm) -> String {
    let pressed = form.fields.iter().filter_map(|(name, value)| match name.as_str() {
        "only" | "action" | "everyone" => Some(format!(" {name}={}", value.split(' ').next()?)),
        "rule" | "kind_rule" | "collaborator" => Some(format!(" {name}")),
        _ => None,
    });
    shape(&form.action) + &pressed.collect::<String>()
}

/// Reads pages from the start page on.
pub async fn crawl(visitor: &Visitor) -> Found {
    crawl_from(visitor, &["/console/"]).await
}

/// Reads the pages that these paths lead to.
pub async fn crawl_from(visitor: &Visitor, start: &[&str]) -> Found {
    let (mut found, mut seen) = (Found::default(), BTreeMap::<String, BTreeSet<String>>::new());
    // Each path with the page that leads to it.
    let mut waiting: VecDeque<(String, String)> =
        start.iter().map(|&path| (path.to_owned(), String::new())).collect();
    while let Some((path, from)) = waiting.pop_front() {
        let read = seen.entry(shape(&path)).or_default();
        if read.len() >= PAGES_OF_A_SHAPE || !read.insert(path.clone()) {
            continue;
        }
        let page = visitor.get(&path).await;
        found.pages.entry(shape(&path)).or_default().push(path.clone());
        if page.status == 303 {
            waiting.push_back((page.location().to_owned(), from));
            continue;
        }
        // The log names objects that were deleted since.
        if page.status == 404 && (from == "/console/" || from.contains("/activity/")) {
            continue;
        }
        assert_eq!(page.status, 200, "{from} leads to {path}: {}", page.html);
        let links = page.links().into_iter().filter(|link| link.starts_with("/console/"));
        let links = links.filter(|link| !link.starts_with("/console/assets/"));
        waiting.extend(links.map(|link| (link, path.clone())));
        for form in page.buttons() {
            found.buttons.entry(name(&form)).or_insert_with(|| (path.clone(), form));
        }
        for form in page.forms() {
            found.forms.entry(shape(&form.action)).or_insert_with(|| (path.clone(), form));
        }
    }
    found
}
