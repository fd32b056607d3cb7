//! The invites of an organization: the state of their mails, new ones, and links to hand over.

mod forms;

use std::collections::HashMap;

use crate::console::origin::local_base;
use crate::console::words::level_name;

use super::prelude::*;

const LIST: &str = "/console/organizations/{organization_id}/invites/";

/// The number of invites on a page.
const PAGE_SIZE: u64 = 20;
/// The maximum number of projects that the page names.
const MAX_PROJECTS: usize = 100;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(LIST, list);
    pages.post(LIST, forms::create);
    pages.post("/console/organizations/{organization_id}/invites/again/", forms::again);
    pages.form("/console/organizations/{organization_id}/invites/{id}/delete/", forms::delete);
}

/// The link of a new invite.
#[derive(Deserialize)]
struct Link {
    target_email: String,
    accept_url: String,
}

#[derive(Template)]
#[template(path = "console/pages/invites/page.html")]
struct InvitesPage {
    base: String,
    links: Vec<Link>,
    /// The base of the links, if they work on this machine only.
    local_base: Option<String>,
    list: ListPage<Row>,
    /// The form of a new invite, if the session may invite.
    form: Option<Form>,
}

async fn list(request: SignedIn) -> PageResult {
    show(&request, Vec::new(), Feedback::default()).await
}

/// Shows the page. `links` are those of the invites that were created.
async fn show(request: &SignedIn, links: Vec<Link>, mut feedback: Feedback) -> PageResult {
    let organization = request.visit.organization_id()?;
    let offset = Paging::offset(&request.visit);
    let path =
        format!("/api/organizations/{organization}/invites/?limit={PAGE_SIZE}&offset={offset}");
    let found: List<Invite> = request.api.get(&path).await?;
    let base = INVITES.list(&organization);
    let url = |offset| format!("{base}?offset={offset}");
    let paging =
        Paging::new(&request.visit, OFFSET, found.results.len(), found.count, PAGE_SIZE, url)?;
    let path_of_projects =
        format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let projects = request.api.get_if_allowed::<List<Project>>(&path_of_projects).await?;
    let projects = projects.unwrap_or_default().results;
    let levels = forms::levels(request, &organization).await?;
    let names: HashMap<_, _> =
        projects.iter().map(|project| (project.id, project.name.clone())).collect();
    let path_of_mails = format!(
        "/api/organizations/{organization}/invites/mail/?limit={PAGE_SIZE}&offset={offset}"
    );
    let mails: List<Mail> = request.api.get(&path_of_mails).await?;
    let mails = mails.results.into_iter().filter(|mail| mail.state != "none");
    let mut mails: HashMap<_, _> = mails.map(|mail| (mail.invite.clone(), mail)).collect();
    let delete = |first: &Invite| Operation::new("invites_destroy", [&organization, &first.id]);
    let may_delete = match found.results.first() {
        Some(first) => request.api.may(&delete(first)).await?,
        None => false,
    };
    let row = |invite: Invite| Row {
        mail: mails.remove(&invite.id),
        projects: invite.projects(&names),
        may_repeat: levels.iter().any(|level| level.value == invite.level),
        may_delete,
        once: once_key(),
        invite,
    };
    let rows = found.results.into_iter().map(row).collect();
    let form = forms::form(request, &organization, &mut feedback, levels, &projects)?;
    let list = ListPage { rows, paging, command: Command::get(&request.visit, &path) };
    let local_base = local_base(request.visit.app.config().link_base());
    let page = InvitesPage { base, links, local_base, list, form };
    feedback.show(request, "Invites", &page).await
}

/// The state of the mail of an invite.
#[derive(Deserialize)]
struct Mail {
    invite: String,
    state: String,
    sent_at: Option<String>,
    attempts: u64,
    next_attempt_at: Option<String>,
    last_error: Option<String>,
}

/// An invite on the page.
struct Row {
    invite: Invite,
    /// The state of the mail; `None` if there is no mail.
    mail: Option<Mail>,
    /// The projects that the invite gives access to.
    projects: Vec<String>,
    /// Whether the session may create the same invite again.
    may_repeat: bool,
    may_delete: bool,
    /// The `Idempotency-Key` of the same invite again.
    once: String,
}

impl Invite {
    fn level_name(&self) -> &'static str {
        level_name(self.level)
    }

    /// Returns the projects in words, with their levels.
    fn projects(&self, names: &HashMap<u64, String>) -> Vec<String> {
        let named = self.private_project_access.iter().map(|access| {
            let name = names.get(&access.id).cloned();
            let name = name.unwrap_or_else(|| format!("Project {}", access.id));
            let level = match &access.level {
                Value::String(word) => word.clone(),
                number => number.as_u64().map_or_else(String::new, |number| {
                    level_name(u8::try_from(number).unwrap_or_default()).to_lowercase()
                }),
            };
            format!("{name}: {level}")
        });
        named.collect()
    }

    /// Returns the request body that creates the same invite again, as JSON.
    fn again(&self) -> String {
        let access = self.private_project_access.iter();
        let access: Vec<_> =
            access.map(|access| json!({ "id": access.id, "level": access.level })).collect();
        let body = json!({
            "target_email": self.target_email,
            "first_name": self.first_name,
            "level": self.level,
            "message": self.message,
            "private_project_access": access,
            "send_email": self.send_email,
        });
        body.to_string()
    }
}
