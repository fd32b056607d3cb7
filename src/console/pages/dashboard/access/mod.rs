//! Who may do what with a dashboard and because of which rule; its rules, its restriction and its collaborators.

mod forms;
mod members;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::console::api::Versioned;
use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Command, Frame, In, Paging, Section, with_notice};
use crate::console::pages::name_or;
use crate::console::pages::rules::{Rules, Subjects};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::address::Address;
use super::rights::{Rights, may_write};
use forms::Purpose;
use members::{Filters, MemberAccess, Members};

const ACCESS: &str = "/console/projects/{project_id}/dashboards/{id}/access/";

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

#[derive(Deserialize)]
struct Dashboard {
    name: Option<String>,
    restriction_level: u8,
    #[serde(flatten)]
    rights: Rights,
}

/// A collaborator, as the API describes one.
#[derive(Deserialize)]
struct Collaborator {
    user: Person,
    user_uuid: String,
}

/// A rule on the page.
struct RuleRow {
    name: String,
    level: String,
    subject: String,
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/access/page.html")]
struct AccessPage {
    address: Address,
    name: String,
    filters: Filters,
    members: Members,
    paging: Paging,
    chosen: Option<MemberAccess>,
    rules: Vec<RuleRow>,
    /// The form that sets a rule, if the session may.
    rule: Option<Form>,
    is_restricted: bool,
    /// The form that changes the restriction, if the session may.
    restriction: Option<Form>,
    collaborators: Vec<Collaborator>,
    may_collaborate: bool,
    /// The form that adds a collaborator, if the session may and there is somebody to add.
    collaborator: Option<Form>,
    command: Command,
}

/// What a refused form leaves for the page that shows it again.
#[derive(Default)]
struct Refused {
    /// The form that was sent.
    form: Option<(Purpose, Form)>,
    /// The error of a button.
    refusal: Option<Error>,
}

impl Refused {
    fn status(&self) -> StatusCode {
        self.form.as_ref().map_or(StatusCode::OK, |(_, form)| form.status())
    }

    /// Returns the form that was sent, if it was this one.
    fn take(&mut self, purpose: Purpose) -> Option<Form> {
        self.form.take_if(|(of, _)| *of == purpose).map(|(_, form)| form)
    }
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, Address::of(&request.visit)?, Refused::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    if let Some(purpose) = Purpose::of(&request.visit) {
        return match purpose.sent(&request, &address)?.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&address.page("access/"), "saved"))?),
            Outcome::Again(form) => {
                let form = Some((purpose, *form));
                show(&request, address, Refused { form, refusal: None }).await
            }
        };
    }
    let write = forms::removal(&request.visit.form, &address)?;
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(&with_notice(&address.page("access/"), "removed"))?),
        Err(refusal) => {
            show(&request, address, Refused { form: None, refusal: Some(refusal) }).await
        }
    }
}

async fn show(request: &SignedIn, address: Address, mut refused: Refused) -> PageResult {
    let api = &request.api;
    let filters = Filters::of(&request.visit);
    let status = refused.status();
    let (members, paging) = Members::load(request, &address, &filters).await?;
    let chosen = members::chosen(request, &address, &filters).await?;
    let rules: Rules = api.get(&address.api("access_controls/")).await?;
    let subjects = Subjects::load(request, &address.project).await?;
    let found = found(request, &address).await?;
    let is_restricted = found.as_ref().is_some_and(|(one, _)| one.restriction_level == 37);
    let may_edit = found.as_ref().is_some_and(|(one, _)| one.rights.may_edit());
    let may_collaborate = is_restricted && may_edit && may_write(request, &address.project).await?;
    let path = address.api("collaborators/");
    let collaborators = api.get_if_allowed::<Vec<Collaborator>>(&path).await?.unwrap_or_default();

    let mut rule = None;
    let may_rule = api.may(&address.operation(forms::RULE)).await?;
    if rules.user_can_edit_access_levels && may_rule {
        let sent = refused.take(Purpose::Rule);
        let form = sent.map_or_else(|| forms::rule(request, &address, chosen.as_ref()), Ok)?;
        rule = Some(forms::with_subjects(form, &subjects));
    }
    let mut restriction = None;
    if let Some((_, version)) = &found
        && api.dry_run(&forms::restriction_probe(&address, is_restricted)).await?.is_none()
    {
        let sent = refused.take(Purpose::Restriction);
        let form = sent.map_or_else(|| forms::restriction(request, &address, version), Ok)?;
        restriction = Some(form.with_id("restriction"));
    }
    let mut collaborator = None;
    if may_collaborate {
        let sent = refused.take(Purpose::Collaborator);
        let form = sent.map_or_else(|| forms::collaborator(request, &address), Ok)?;
        let choices = members::who_only_views(request, &address).await?;
        collaborator = (!choices.is_empty())
            .then(|| form.with_id("collaborator").with_choices("user_uuid", choices));
    }
    let name = found.as_ref().and_then(|(one, _)| one.name.as_deref());
    let name = name_or(name, "this dashboard").to_owned();
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let frame = frame.titled(format!("Who can see {name}")).with_refusal(refused.refusal);
    let rows = rules.access_controls.iter().map(|rule| RuleRow {
        name: subjects.name(rule),
        level: rule.access_level.clone(),
        subject: rule.subject(),
    });
    let page = AccessPage {
        command: Command::get(&request.visit, &members::path(&address, &filters)),
        rules: rows.collect(),
        paging,
        address,
        name,
        filters,
        members,
        chosen,
        rule,
        is_restricted,
        restriction,
        collaborators,
        may_collaborate,
        collaborator,
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}

/// Reads the dashboard, which a session that manages it may be unable to view.
async fn found(request: &SignedIn, address: &Address) -> Result<Option<(Dashboard, Versioned)>> {
    match request.api.get_versioned(&address.api("")).await {
        Ok(Versioned { body, version }) => {
            let restriction = body.get("restriction_level").cloned().unwrap_or(Value::Null);
            let dashboard = serde_json::from_value(body).map_err(Error::internal)?;
            let body = serde_json::json!({ "restriction_level": restriction });
            Ok(Some((dashboard, Versioned { body, version })))
        }
        Err(error) if error.status() == 403 => Ok(None),
        Err(error) => Err(error),
    }
}
