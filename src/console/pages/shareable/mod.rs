//! What dashboards and insights have in common: rights, deletion and the trash, access rules, and their public pages: the link,
//! and buttons to enable, rotate and disable it.

mod access;
mod trash;

use crate::console::model::name_or;
use crate::console::origin::local_base;
use crate::console::words::is_editor;

use super::object::Collection;
use super::prelude::*;

/// A kind of objects that can be shared.
pub(super) struct ShareableKind {
    pub(super) objects: &'static Collection,
    /// The word for one object at the beginning of a text.
    title: &'static str,
    /// The name of an object that has none.
    untitled: &'static str,
    /// The operations that create and change an object.
    pub(super) create: &'static str,
    pub(super) update: &'static str,
    /// The operation that sets an access rule on an object.
    set_rule: &'static str,
    /// The operations that enable, disable and rotate the public link.
    pub(super) share: &'static str,
    rotate_link: &'static str,
    /// The notices after a deletion and a restoration.
    deleted: &'static str,
    restored: &'static str,
    /// The consequences of a deletion.
    consequences: &'static str,
    /// Why users may not edit an object, although access rules let them.
    restriction: &'static str,
    /// Whether the objects are insights. Otherwise they are dashboards.
    is_insight: bool,
}

pub(super) const DASHBOARD: &ShareableKind = &ShareableKind {
    objects: DASHBOARDS,
    title: "Dashboard",
    untitled: "Untitled dashboard",
    create: "dashboards_create",
    update: "dashboards_partial_update",
    set_rule: "dashboards_access_controls_update",
    share: "dashboards_sharing_partial_update",
    rotate_link: "dashboards_sharing_refresh_create",
    deleted: "dashboard-deleted",
    restored: "dashboard-restored",
    consequences: "The dashboard moves to the trash with its tiles. It can be restored there.",
    restriction: "Only its collaborators edit it.",
    is_insight: false,
};

pub(super) const INSIGHT: &ShareableKind = &ShareableKind {
    objects: INSIGHTS,
    title: "Insight",
    untitled: "Untitled insight",
    create: "insights_create",
    update: "insights_partial_update",
    set_rule: "insights_access_controls_update",
    share: "insights_sharing_partial_update",
    rotate_link: "insights_sharing_refresh_create",
    deleted: "insight-deleted",
    restored: "insight-restored",
    consequences: "The insight moves to the trash and leaves its dashboards. It can be restored there. Its public page is \
                   closed, if it has one.",
    restriction: "A restricted dashboard shows it, and you may not edit that.",
    is_insight: true,
};

pub(super) fn routes(pages: &mut Pages<'_>) {
    for [delete, trash, access, sharing] in [
        [
            "/console/projects/{project_id}/dashboards/{id}/delete/",
            "/console/projects/{project_id}/dashboards/trash/",
            "/console/projects/{project_id}/dashboards/{id}/access/",
            "/console/projects/{project_id}/dashboards/{id}/sharing/",
        ],
        [
            "/console/projects/{project_id}/insights/{id}/delete/",
            "/console/projects/{project_id}/insights/trash/",
            "/console/projects/{project_id}/insights/{id}/access/",
            "/console/projects/{project_id}/insights/{id}/sharing/",
        ],
    ] {
        pages.form(delete, &trash::delete);
        pages.page(trash, &trash::show, &trash::restore);
        pages.page(access, &access::show, &access::apply);
        pages.page(sharing, &show_sharing, &apply_sharing);
    }
}

/// A dashboard or an insight, as the API describes it.
#[derive(Deserialize)]
struct Shareable {
    id: u64,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    /// Only insights have it.
    saved: Option<bool>,
    /// Only dashboards have this, a restriction and tiles.
    #[serde(default)]
    is_shared: bool,
    restriction_level: Option<u8>,
    #[serde(default)]
    tiles: Vec<Tile>,
    deleted_at: Option<String>,
    deleted_by: Option<Person>,
    #[serde(flatten)]
    rights: Rights,
}

impl Shareable {
    fn is_unsaved(&self) -> bool {
        self.saved == Some(false)
    }

    /// Returns why the session cannot share the dashboard.
    fn reason_not_to_share(&self, is_enabled: bool) -> Option<&'static str> {
        let mut insights = self.tiles.iter().filter_map(|tile| tile.insight.as_ref());
        if !self.rights.may_edit() {
            Some("Only users who may edit the dashboard can share it.")
        } else if !is_enabled && insights.any(TileInsight::is_hidden) {
            Some(
                "The dashboard shows an insight that you may not view. Only users who may view all its insights can share it.",
            )
        } else {
            None
        }
    }
}

impl ShareableKind {
    /// Returns the kind of the objects that a page is about.
    fn of(visit: &Visit) -> &'static Self {
        if visit.route().contains("/insights/") { INSIGHT } else { DASHBOARD }
    }

    /// Returns the name of an object for people: its own, or the derived one.
    fn name<'o>(&self, object: &'o Shareable) -> &'o str {
        let derived = name_or(object.derived_name.as_deref(), self.untitled);
        name_or(object.name.as_deref(), derived)
    }

    /// Returns whether the session may create objects in a project. A session that may not read access rules asks by a dry
    /// run.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn may_create(&self, request: &SignedIn, project: &str) -> Result<bool> {
        if !request.api.may(&Operation::new(self.create, [project])).await? {
            return Ok(false);
        }
        let resource = self.objects.noun;
        let path = format!("/api/projects/{project}/resource_access_controls/?resource={resource}");
        if let Some(on_all) = request.api.get(&path).await.read_if_allowed::<Value>()? {
            let level = on_all.get("user_access_level").and_then(Value::as_str);
            return Ok(level.is_some_and(is_editor));
        }
        let create = Write::new(self.create, [project]).body(json!({}));
        let refusal = request.api.dry_run(&create).await?;
        Ok(refusal.is_none_or(|error| error.status() != 403))
    }

    /// Returns whether the API would admit the session to a change of objects in a project.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn may_write(&self, request: &SignedIn, project: &str) -> Result<bool> {
        request.api.may(&Operation::new(self.update, [project, "0"])).await
    }

    /// Returns why the session cannot change an object in a project, or `None` if it may.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn refusal(
        &self,
        request: &SignedIn,
        project: &str,
        rights: &Rights,
    ) -> Result<Option<String>> {
        if !self.may_write(request, project).await? {
            return Ok(Some(format!("This session may not change {}s.", self.objects.noun)));
        }
        Ok(self.reason(rights))
    }

    /// Returns why the session cannot change an object with this body, or `None` if it may.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn refusal_of(
        &self,
        request: &SignedIn,
        object: &ObjectPath,
        body: &Value,
    ) -> Result<Option<String>> {
        let rights = Rights::deserialize(body).map_err(Error::internal)?;
        self.refusal(request, &object.tenant, &rights).await
    }

    /// Returns why these rights do not let the session edit an object, or `None` if they do.
    pub(super) fn reason(&self, rights: &Rights) -> Option<String> {
        if rights.may_edit() {
            return None;
        }
        let reason = if rights.is_editor() {
            self.restriction
        } else {
            "Access rules do not let you edit it."
        };
        Some(format!("You may view this {}. {reason}", self.objects.noun))
    }

    /// Returns the request that enables or disables the public page.
    fn enable(&self, object: &ObjectPath, is_enabled: bool) -> Write {
        object.write(self.share).body(json!({ "enabled": is_enabled }))
    }
}

/// Returns the body that deletes or restores an object. The API sets `saved` of an insight to true if it is absent.
fn deletion_body(is_deleted: bool, saved: Option<bool>) -> Value {
    match saved {
        Some(saved) => json!({ "deleted": is_deleted, "saved": saved }),
        None => json!({ "deleted": is_deleted }),
    }
}

#[derive(Deserialize)]
struct Sharing {
    /// When the page was first enabled.
    created_at: Option<String>,
    enabled: bool,
    access_token: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/shareable/sharing.html")]
struct SharingPage {
    kind: &'static ShareableKind,
    object: ObjectPath,
    found: Shareable,
    sharing: Sharing,
    /// The public link, if the session may know it.
    link: Option<String>,
    /// The base of the link, if it works on this machine only.
    local_base: Option<String>,
    may_share: bool,
    /// Why the session may not share, although its key may.
    reason: Option<String>,
    /// The `Idempotency-Key` of the buttons.
    once: String,
    command: Command,
}

async fn apply_sharing(request: SignedIn) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let form = &request.visit.form;
    let (write, notice) = match form.value("action") {
        "enable" => (kind.enable(&object, true), "page-enabled"),
        "disable" => (kind.enable(&object, false), "page-disabled"),
        "rotate" => (object.write(kind.rotate_link), "link-replaced"),
        _ => return Err(Error::not_found().into()),
    };
    let write = write.once(form.value(ONCE));
    press(request, write, &object.page("sharing/"), notice, &show_sharing).await
}

async fn show_sharing(request: SignedIn, feedback: Feedback) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let path = object.api("sharing/");
    let found: Shareable = request.api.get(&object.api("")).await.read()?;
    let sharing: Sharing = request.api.get(&path).await.read()?;
    let is_enabled = sharing.enabled;
    let change = kind.enable(&object, !is_enabled);
    let reason = if kind.is_insight {
        request.api.refusal(&change).await?
    } else {
        found.reason_not_to_share(is_enabled).map(str::to_owned)
    };
    let may_share = reason.is_none() && request.api.may(&change.operation).await?;
    let name = kind.name(&found);
    let title = if kind.is_insight { "Sharing".to_owned() } else { format!("Sharing of {name}") };
    let token = sharing.access_token.as_ref().filter(|_| is_enabled);
    let page = SharingPage {
        kind,
        link: token.map(|token| format!("{}/shared/{token}/", request.visit.base_url())),
        local_base: local_base(&request.visit.base_url()),
        // The command of the button, or else of the page itself.
        command: if may_share && !kind.is_insight {
            Command::write(&request, &change)?
        } else {
            Command::get(&request.visit, &path)
        },
        may_share,
        reason,
        once: once_key(),
        object,
        found,
        sharing,
    };
    feedback.show(&request, &title, &page).await
}
