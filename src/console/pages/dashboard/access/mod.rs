//! The access of each member to a dashboard with the rule that decides it; its rules, its restriction and its collaborators.

pub(in crate::console::pages) mod forms;
pub(in crate::console::pages) mod members;
mod restriction;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Command, Frame, In, Paging, Section, with_notice};
use crate::console::pages::name_or;
use crate::console::pages::rules::{RuleTable, Rules, Subjects};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::address::Address;
use super::rights::may_write;
use forms::Purpose;
use members::{Filters, MemberAccess};
use restriction::{Collaborator, Dashboard};

const ACCESS: &str = "/console/projects/{project_id}/dashboards/{id}/access/";

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/access/page.html")]
struct AccessPage {
    address: Address,
    name: String,
    filters: Filters,
    members: Vec<MemberAccess>,
    paging: Paging,
    chosen: Option<MemberAccess>,
    rules: RuleTable,
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

/// The feedback of the page on a form that was sent.
#[derive(Default)]
struct Feedback {
    /// The form that has to be corrected.
    form: Option<(Purpose, Form)>,
    /// Why the request of a button was refused.
    refusal: Option<Error>,
}

impl Feedback {
    fn status(&self) -> StatusCode {
        self.form.as_ref().map_or(StatusCode::OK, |(_, form)| form.status())
    }

    /// Returns the form that was sent, if it was this one.
    fn take(&mut self, purpose: Purpose) -> Option<Form> {
        self.form.take_if(|(of, _)| *of == purpose).map(|(_, form)| form)
    }
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, Address::of(&request.visit)?, Feedback::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let address = Address::of(&request.visit)?;
    if let Some(purpose) = Purpose::of(&request.visit) {
        return match purpose.sent(&request, &address)?.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&address.page("access/"), "saved"))?),
            Outcome::Again(form) => {
                let form = Some((purpose, *form));
                show(&request, address, Feedback { form, refusal: None }).await
            }
        };
    }
    let write = forms::removal(&request.visit.form, &address)?;
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(&with_notice(&address.page("access/"), "removed"))?),
        Err(refusal) => {
            show(&request, address, Feedback { form: None, refusal: Some(refusal) }).await
        }
    }
}

async fn show(request: &SignedIn, address: Address, mut feedback: Feedback) -> PageResult {
    let api = &request.api;
    let filters = Filters::of(&request.visit);
    let status = feedback.status();
    let (of_page, of_api) = (address.page("access/"), address.api("access/"));
    let (members, paging) = members::load(request, [&of_page, &of_api], &filters).await?;
    let chosen = members::chosen(request, &of_api, &filters).await?;
    let rules: Rules = api.get(&address.api("access_controls/")).await?;
    let subjects = Subjects::load(request, &address.project).await?;
    let found = Dashboard::load(request, &address).await?;
    let is_restricted = found.as_ref().is_some_and(|(one, _)| one.is_restricted());
    let may_edit = found.as_ref().is_some_and(|(one, _)| one.may_edit());
    let may_collaborate = is_restricted && may_edit && may_write(request, &address.project).await?;

    let mut rule = None;
    let may_rule = api.may(&address.operation(forms::RULE)).await?;
    if rules.user_can_edit_access_levels && may_rule {
        let sent = feedback.take(Purpose::Rule);
        let form = match sent {
            Some(form) => form,
            None => forms::for_member(forms::rule(request, &address)?, chosen.as_ref()),
        };
        rule = Some(forms::with_subjects(form, &subjects));
    }
    let mut restriction = None;
    if let Some((dashboard, version)) = &found
        && dashboard.may_restrict(request, &address).await?
    {
        let sent = feedback.take(Purpose::Restriction);
        let form = sent.map_or_else(|| forms::restriction(request, &address, version), Ok)?;
        restriction = Some(form.with_id("restriction"));
    }
    let mut collaborator = None;
    if may_collaborate {
        let sent = feedback.take(Purpose::Collaborator);
        let form = sent.map_or_else(|| forms::collaborator(request, &address), Ok)?;
        let choices = members::who_only_views(request, &of_api).await?;
        collaborator = (!choices.is_empty())
            .then(|| form.with_id("collaborator").with_choices("user_uuid", choices));
    }
    let name = found.as_ref().and_then(|(one, _)| one.name());
    let name = name_or(name, "this dashboard").to_owned();
    let frame = Frame::load(request, Section::Dashboards, In::Project(&address.project)).await?;
    let frame = frame.titled(format!("Who can see {name}")).with_refusal(feedback.refusal);
    let action = rule.as_ref().map(|_| of_page);
    let page = AccessPage {
        collaborators: restriction::collaborators(request, &address).await?,
        command: Command::get(&request.visit, &members::path(&of_api, &filters)),
        rules: RuleTable::new(&rules.access_controls, &subjects, action),
        paging,
        address,
        name,
        filters,
        members,
        chosen,
        rule,
        is_restricted,
        restriction,
        may_collaborate,
        collaborator,
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
