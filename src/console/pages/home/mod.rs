//! The start page with the first steps of a new workspace, the start page of an organization, and the page for unknown paths.

use super::activity::Latest;
use super::prelude::*;

const HOME: &str = "/console/";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(HOME, &home);
    pages.get("/console/organizations/{organization_id}/", &organization);
    pages.get("/console/{*rest}", &unknown);
    pages.post("/console/steps/dismiss/", &dismiss);
}

/// The start page of a session that sees no project.
#[derive(Template)]
#[template(path = "console/pages/home/no_project.html")]
struct NoProjectPage<'f> {
    /// The frame, with the pages that the session may still read.
    frame: &'f Frame,
}

/// Shows what matters in the current project and organization.
async fn home(request: SignedIn) -> PageResult {
    // The form of a session that may not list projects.
    if let Ok(id) = request.visit.query("project").trim().parse::<u64>() {
        return Ok(see_other(&format!("/console/projects/{id}/dashboards/"))?);
    }
    let frame = Frame::load(&request).await?;
    let Some(project) = frame.project() else {
        let frame = frame.titled("Projects");
        return Ok(layout::page(&frame, &NoProjectPage { frame: &frame })?);
    };
    let page = StartPage::load(&request, project, frame.organization()).await?;
    Ok(layout::page(&frame.titled("Home"), &page)?)
}

/// Opens the dashboards of the first project of an organization, or the list of projects if it has none.
async fn organization(request: SignedIn) -> PageResult {
    let id = request.visit.organization_id()?;
    let path = format!("/api/organizations/{id}/projects/?limit=1");
    let found: List<Project> = request.api.get(&path).await.read()?;
    let path = match found.results.first() {
        Some(project) => format!("/console/projects/{}/dashboards/", project.id),
        None => format!("/console/organizations/{id}/projects/"),
    };
    Ok(see_other(&path)?)
}

async fn unknown(_: SignedIn) -> PageResult {
    Err(Error::not_found_as("The console has no such page.").into())
}

/// The number of pinned dashboards.
const MAX_PINNED: usize = 12;
/// The number of invites.
const MAX_INVITES: usize = 5;
/// The seconds before its expiry in which a key is shown.
const SOON: i64 = 14 * 24 * 60 * 60;

impl Key {
    fn expires_soon(&self, now: Timestamp) -> bool {
        let end = self.expires_at.as_deref().and_then(Timestamp::parse);
        end.is_some_and(|end| now < end && end <= now.plus_seconds(SOON))
    }
}

/// The start page: pinned dashboards, the latest changes, open invites, and keys that expire soon.
#[derive(Template)]
#[template(path = "console/pages/home/page.html")]
struct StartPage {
    steps: Option<Steps>,
    /// The path of the dashboards.
    base: String,
    /// Absent if the session may not read dashboards.
    pinned: Option<Vec<Dashboard>>,
    latest: Option<Latest>,
    /// The keys that expire soon.
    keys: Vec<Key>,
    invites: Vec<Invite>,
    /// The path of all invites.
    all_invites: String,
}

impl StartPage {
    /// Loads what the session may see.
    async fn load(request: &SignedIn, project: &str, organization: Option<&str>) -> Result<Self> {
        let api = &request.api;
        let path = format!("/api/projects/{project}/dashboards/?pinned=true&limit={MAX_PINNED}");
        let pinned = api.get(&path).await.read_if_allowed::<List<Dashboard>>()?;
        let keys = api.get("/api/personal_api_keys/").await.read_if_allowed::<Vec<Key>>()?;
        let mut keys = keys.unwrap_or_default();
        let invites = match organization {
            Some(id) => {
                let path = format!("/api/organizations/{id}/invites/?limit={MAX_INVITES}");
                api.get(&path).await.read_if_allowed::<List<Invite>>()?
            }
            None => None,
        };
        let invited = invites.as_ref().map_or(0, |found| found.count);
        let steps = match organization {
            Some(id) => Steps::load(request, id, invited, keys.len()).await?,
            None => None,
        };
        let now = request.visit.app.now();
        keys.retain(|key| key.expires_soon(now));
        Ok(Self {
            steps,
            base: format!("/console/projects/{project}/dashboards/"),
            pinned: pinned.map(|found| found.results),
            latest: Latest::load(request, project, organization).await?,
            keys,
            invites: invites.map_or(Vec::new(), |found| found.results),
            all_invites: organization
                .map_or(String::new(), |id| format!("/console/organizations/{id}/invites/")),
        })
    }
}

const USER: &str = "/api/users/@me/";
const UPDATE_USER: &str = "users_partial_update";

/// The name of the first organization until somebody changes it.
const FIRST_NAME: &str = "My organization";
/// The member of `has_seen_product_intro_for` of a user who dismissed the steps.
const DISMISSED: &str = "console_first_steps";

/// The first steps of a new workspace. They are shown until all are done, or until the user dismisses them.
struct Steps {
    /// What to do, where, and whether it is done.
    steps: [(&'static str, String, bool); 3],
    may_dismiss: bool,
}

impl Steps {
    /// Loads the steps. Returns `None` if all are done, if the user dismissed them, or if the session may not do one of
    /// them. `invites` and `keys` are the numbers of open invites and of the user's keys.
    async fn load(
        request: &SignedIn,
        organization: &str,
        invites: u64,
        keys: usize,
    ) -> Result<Option<Self>> {
        for operation in [
            Operation::new("organizations_partial_update", [organization]),
            Operation::new("invites_create", [organization]),
            Operation::new("personal_api_keys_create", []),
        ] {
            if !request.api.may(&operation).await? {
                return Ok(None);
            }
        }
        let path = format!("/api/organizations/{organization}/");
        let (Some(user), Some(found)) = (
            request.api.get(USER).await.read_if_allowed::<Value>()?,
            request.api.get(&path).await.read_if_allowed::<Organization>()?,
        ) else {
            return Ok(None);
        };
        let seen = user.get("has_seen_product_intro_for");
        let is_dismissed = seen.and_then(|seen| seen.get(DISMISSED)).is_some();
        let base = format!("/console/organizations/{organization}/");
        let has_invited = found.member_count > 1 || invites > 0;
        let steps = [
            ("Name the organization", format!("{base}settings/"), found.name != FIRST_NAME),
            ("Invite a colleague", format!("{base}invites/"), has_invited),
            ("Create a key for a program", "/console/keys/new/".to_owned(), keys > 1),
        ];
        if is_dismissed || steps.iter().all(|(_, _, is_done)| *is_done) {
            return Ok(None);
        }
        let may_dismiss = request.api.may(&Operation::new(UPDATE_USER, [])).await?;
        Ok(Some(Self { steps, may_dismiss }))
    }
}

/// Keeps with the user that the steps are dismissed.
async fn dismiss(request: SignedIn) -> PageResult {
    let user = request.api.get_versioned(USER).await?;
    let seen = user.body.get("has_seen_product_intro_for").and_then(Value::as_object);
    let mut seen = seen.cloned().unwrap_or_default();
    seen.insert(DISMISSED.to_owned(), Value::Bool(true));
    let write = Write::new(UPDATE_USER, []).body(json!({ "has_seen_product_intro_for": seen }));
    request.api.write(&Write { version: user.version, ..write }).await?;
    Ok(see_other(HOME)?)
}
