//! The invites of an organization: the state of their mails, links to hand over, the form that invites up to 20 people at once,
//! and the actions on one invite: create it again, which sends a new mail or returns a new link, and delete it.

use std::collections::HashMap;

use futures_util::future::try_join_all;

use crate::console::form::SubmittedForm;
use crate::console::origin::local_base;
use crate::console::words::{LEVELS, level_name, level_value};

use super::prelude::*;

const LIST: &str = "/console/organizations/{organization_id}/invites/";

/// The number of invites on a page.
const PAGE_SIZE: u64 = 20;
/// The maximum number of projects that the page names.
const MAX_PROJECTS: usize = 100;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get(LIST, &list);
    pages.post(LIST, &create);
    pages.post("/console/organizations/{organization_id}/invites/again/", &again);
    pages.form("/console/organizations/{organization_id}/invites/{id}/delete/", &delete);
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
    let found: List<Invite> = request.api.get(&path).await.read()?;
    let base = INVITES.list(&organization);
    let url = |offset| format!("{base}?offset={offset}");
    let paging =
        Paging::new(&request.visit, OFFSET, found.results.len(), found.count, PAGE_SIZE, &url)?;
    let path_of_projects =
        format!("/api/organizations/{organization}/projects/?limit={MAX_PROJECTS}");
    let projects = request.api.get(&path_of_projects).await.read_if_allowed::<List<Project>>()?;
    let projects = projects.unwrap_or_default().results;
    let levels = levels(request, &organization).await?;
    let names: HashMap<_, _> =
        projects.iter().map(|project| (project.id, project.name.clone())).collect();
    let path_of_mails = format!(
        "/api/organizations/{organization}/invites/mail/?limit={PAGE_SIZE}&offset={offset}"
    );
    let mails: List<Mail> = request.api.get(&path_of_mails).await.read()?;
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
    let form = form(request, &organization, &mut feedback, levels, &projects)?;
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
        let body = json!({
            "target_email": self.target_email,
            "first_name": self.first_name,
            "level": self.level,
            "message": self.message,
            "private_project_access": self.private_project_access,
            "send_email": self.send_email,
        });
        body.to_string()
    }
}

/// The maximum number of invites that one request creates.
const MAX_INVITES: usize = 20;

const FORM: FormSpec = FormSpec::create(
    "Invite",
    &[
        Input::new("target_email")
            .label("Addresses")
            .hint("One on each line, at most 20. The given name of the person may follow the address.")
            .shape(Shape::Area),
        Input::new("level")
            .label("Level")
            .hint("Members work in projects. Admins also manage people and projects, and owners everything.")
            .choices(LEVELS),
        Input::new("message").label("Message").hint("Plain text in the mail."),
        Input::new("private_project_access")
            .label("Access to private projects")
            .hint("Everybody sees the other projects.")
            .shape(Shape::Several),
        Input::new("send_email")
            .label("Send a mail")
            .hint("Otherwise the next page shows admins and owners the links to hand over."),
        Input::new("combine_pending_invites")
            .label("Keep what a pending invite of the same address gives"),
    ],
);

/// The text below the addresses if the service has no mail server.
const WITHOUT_MAIL: &str = "One on each line, at most 20. The given name of the person may follow the address. The service has no mail server: the next page shows the links to hand over.";

/// One address of the form: what errors name, and the members of its object.
type Addressee = (String, Map<String, Value>);

/// Reads the lines of the field with the addresses.
fn addressees(text: &str) -> Vec<Addressee> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let addressees = lines.map(|line| {
        let (address, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let mut members = Map::new();
        members.insert("target_email".to_owned(), Value::from(address));
        if !name.trim().is_empty() {
            members.insert("first_name".to_owned(), Value::from(name.trim()));
        }
        (address.to_owned(), members)
    });
    addressees.collect()
}

/// Returns the levels that the session may give. The API checks the level before the address, and what the service can
/// store now after it.
async fn levels(request: &SignedIn, organization: &str) -> Result<Vec<Choice>> {
    if !request.api.may(&Operation::new("invites_create", [organization])).await? {
        return Ok(Vec::new());
    }
    let writes = LEVELS.iter().map(|(text, _)| {
        Write::new("invites_create", [organization]).body(json!({ "level": level_value(text) }))
    });
    let writes: Vec<_> = writes.collect();
    let answers = try_join_all(writes.iter().map(|write| request.api.dry_run(write))).await?;
    let is_given = |error: &Error| matches!(error.status(), 400 | 503);
    let given = LEVELS.iter().zip(answers);
    let given = given.filter(|(_, error)| error.as_ref().is_none_or(is_given));
    Ok(given.map(|((text, name), _)| Choice::new(level_value(text), *name)).collect())
}

/// Returns the form, if the session may invite: the one that was sent, or a new one.
fn form(
    request: &SignedIn,
    organization: &str,
    feedback: &mut Feedback,
    levels: Vec<Choice>,
    projects: &[Project],
) -> Result<Option<Form>> {
    let sent = feedback.take(FORM.id);
    if levels.is_empty() {
        return Ok(sent);
    }
    let operation = Operation::new("invites_create", [organization]);
    let form = match sent {
        Some(form) => form,
        None => FORM
            .empty(request, &operation, &INVITES.list(organization))?
            .with_value("level", &json!(1))
            .with_value("send_email", &json!(true)),
    };
    let private = projects.iter().filter(|project| project.access_control);
    let access: Vec<_> = private
        .flat_map(|project| {
            ["member", "admin"].map(|level| {
                let value = json!({ "id": project.id, "level": level });
                Choice::new(value, level).in_group(project.name.clone())
            })
        })
        .collect();
    let form = if request.visit.app.sends_mail() {
        form
    } else {
        form.without("send_email").without("message").with_hint("target_email", WITHOUT_MAIL)
    };
    let form = if access.is_empty() {
        form.without("private_project_access")
    } else {
        form.with_choices("private_project_access", access)
    };
    Ok(Some(form.with_choices("level", levels)))
}

/// Several addresses are invited together, or none. Only the request for one address returns a link.
async fn create(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let action = INVITES.list(&organization);
    let mut addressees = addressees(request.visit.form.value("target_email"));
    let is_too_many = addressees.len() > MAX_INVITES;
    addressees.truncate(MAX_INVITES);
    let count = addressees.len();
    let is_bulk = count > 1;
    let id = if is_bulk { "invites_bulk_create" } else { "invites_create" };
    let mut sent = FORM.sent(&request, Operation::new(id, [&organization]), &action)?;
    if is_too_many {
        sent.set_error("target_email", "Invite at most 20 people at once.");
    }
    let sends_mail = request.visit.app.sends_mail();
    if !sends_mail {
        // The form does not ask. A mail server that is set up later can then send the invite again.
        sent.body.remove("send_email");
    }
    let is_mailed = sends_mail && sent.text("send_email") == "true";
    if is_bulk {
        sent.repeat("target_email", addressees);
        if !is_mailed {
            return create_each(&request, &organization, sent).await;
        }
    } else if let Some((_, members)) = addressees.pop() {
        sent.body.extend(members);
    }
    let count = if is_bulk { count } else { 1 };
    match sent.send(&request).await? {
        Ok(invite) => created(&request, &organization, &[invite], count).await,
        Err(form) => show(&request, Vec::new(), form.into()).await,
    }
}

/// Creates an invite for each address by a request of its own. Creates none if one of them would be refused.
async fn create_each(request: &SignedIn, organization: &str, sent: SubmittedForm) -> PageResult {
    let sent = match sent.check(request).await? {
        Ok(sent) => sent,
        Err(form) => return show(request, Vec::new(), form.into()).await,
    };
    let mut invites = Vec::new();
    for write in sent.each("invites_create", [organization]) {
        match request.api.attempt(&write).await? {
            Ok(invite) => invites.push(invite),
            // Something has changed since the check, or the form was sent before with other addresses.
            Err(refusal) if invites.is_empty() => {
                return show(request, Vec::new(), sent.refused(&refusal).into()).await;
            }
            // The links that exist are still shown.
            Err(refusal) => return show(request, links(&invites), refusal.into()).await,
        }
    }
    created(request, organization, &invites, invites.len()).await
}

/// Returns the links of new invites. The answer to a request that was sent again has none.
fn links(invites: &[Value]) -> Vec<Link> {
    let mut links: Vec<Link> = Vec::new();
    for link in invites.iter().filter_map(|invite| Link::deserialize(invite).ok()) {
        // A later invite replaces that of the same address.
        let address = link.target_email.to_lowercase();
        links.retain(|earlier| earlier.target_email.to_lowercase() != address);
        links.push(link);
    }
    links
}

/// Shows the links of new invites, which the API returns only now, or leads to the list.
async fn created(
    request: &SignedIn,
    organization: &str,
    invites: &[Value],
    count: usize,
) -> PageResult {
    let links = links(invites);
    if !links.is_empty() {
        return show(request, links, Feedback::default()).await;
    }
    Ok(see_other(&with_notice_of(&INVITES.list(organization), "invite-created", count))?)
}

/// The number of invites that one request reads to find the one to delete.
const SEARCHED_AT_ONCE: usize = 1000;

/// The field with the request body.
const INVITE: &str = "invite";

/// Replaces an invite by an equal one.
async fn again(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let form = &request.visit.form;
    let body = serde_json::from_str(form.value(INVITE))
        .map_err(|_| Error::field(INVITE, "invalid_input", "This is not valid JSON."))?;
    let write = Write::new("invites_create", [&organization]).body(body).once(form.value(ONCE));
    match request.api.attempt(&write).await? {
        Ok(invite) => created(&request, &organization, &[invite], 1).await,
        Err(refusal) => show(&request, Vec::new(), refusal.into()).await,
    }
}

/// Asks before an invite is deleted.
async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INVITES)?;
    let done = with_notice(&object.list(), "invite-deleted");
    let Some(invite) = find(&request, &object.tenant, &object.id).await? else {
        return Err(answered_before(&request, Error::not_found(), &done));
    };
    let question = format!("Delete the invite of {}?", invite.target_email);
    let text = "Its link stops working at once. To let the address join, invite it again.";
    let confirm =
        Confirm::new(&question, text, "Delete the invite", object.write("invites_destroy"));
    confirm.respond(&request, &object.list(), &done).await
}

/// Finds an invite in the list, because the API returns no single one.
async fn find(request: &SignedIn, organization: &str, id: &str) -> Result<Option<Invite>> {
    let path = format!("/api/organizations/{organization}/invites/?limit={SEARCHED_AT_ONCE}");
    let mut offset = 0;
    loop {
        let page: List<Invite> =
            request.api.get(&format!("{path}&offset={offset}")).await.read()?;
        let is_last = page.results.len() < SEARCHED_AT_ONCE;
        let found = page.results.into_iter().find(|invite| invite.id == id);
        if found.is_some() || is_last {
            return Ok(found);
        }
        offset += SEARCHED_AT_ONCE;
    }
}
