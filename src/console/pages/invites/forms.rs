//! The form that invites up to 20 people at once, and the actions on one invite: create it again, which sends a new mail or
//! returns a new link, and delete it.

use futures_util::future::try_join_all;

use crate::console::form::SubmittedForm;
use crate::console::pages::prelude::*;
use crate::console::words::{LEVELS, level_value};

use super::{Link, show};

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
pub(super) async fn levels(request: &SignedIn, organization: &str) -> Result<Vec<Choice>> {
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
pub(super) fn form(
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
pub(super) async fn create(request: SignedIn) -> PageResult {
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
        Outcome::Done(invite) => created(&request, &organization, &[invite], count).await,
        Outcome::Again(form) => show(&request, Vec::new(), form.into()).await,
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
pub(super) async fn created(
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
pub(super) async fn again(request: SignedIn) -> PageResult {
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
pub(super) async fn delete(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INVITES)?;
    let done = with_notice(&object.list(), "invite-deleted");
    let Some(invite) = find(&request, &object.tenant, &object.id).await? else {
        return Err(answered_before(&request, Error::not_found(), &done));
    };
    let question = format!("Delete the invite of {}?", invite.target_email);
    let text = "Its link stops working at once. To let the address join, invite it again.";
    let confirm =
        Confirm::new(question, text, "Delete the invite", object.write("invites_destroy"));
    confirm.respond(&request, &object.list(), &done).await
}

/// Finds an invite in the list, because the API returns no single one.
async fn find(request: &SignedIn, organization: &str, id: &str) -> Result<Option<Invite>> {
    let path = format!("/api/organizations/{organization}/invites/?limit={SEARCHED_AT_ONCE}");
    let mut offset = 0;
    loop {
        let page: List<Invite> = request.api.get(&format!("{path}&offset={offset}")).await?;
        let is_last = page.results.len() < SEARCHED_AT_ONCE;
        let found = page.results.into_iter().find(|invite| invite.id == id);
        if found.is_some() || is_last {
            return Ok(found);
        }
        offset += SEARCHED_AT_ONCE;
    }
}
