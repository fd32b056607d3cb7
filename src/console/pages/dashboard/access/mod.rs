//! The access of each member to a dashboard with the rule that decides it; its rules, its restriction and its collaborators.

mod collaborators;
pub(in crate::console::pages) mod forms;
pub(in crate::console::pages) mod members;
mod restriction;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Command, with_notice};
use crate::console::pages::name_or;
use crate::console::pages::object::{DASHBOARDS, ObjectPath};
use crate::console::pages::rules::{RuleTable, Rules, Subjects, with_subjects};
use crate::console::paging::Paging;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use forms::Purpose;
use members::{Filters, MemberAccess};
use restriction::{Dashboard, Restriction};

const ACCESS: &str = "/console/projects/{project_id}/dashboards/{id}/access/";

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

#[derive(Template)]
#[template(path = "console/pages/dashboard/access/page.html")]
struct AccessPage {
    object: ObjectPath,
    name: String,
    filters: Filters,
    members: Vec<MemberAccess>,
    paging: Paging,
    chosen: Option<MemberAccess>,
    rules: RuleTable,
    /// The form that sets a rule, if the session may.
    rule: Option<Form>,
    subjects: Subjects,
    restriction: Restriction,
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
    show(&request, ObjectPath::of(&request.visit, DASHBOARDS)?, Feedback::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, DASHBOARDS)?;
    if let Some(purpose) = Purpose::of(&request.visit) {
        return match purpose.sent(&request, &object)?.send(&request).await? {
            Outcome::Done(_) => {
                Ok(see_other(&with_notice(&object.page("access/"), "access-saved"))?)
            }
            Outcome::Again(form) => {
                let form = Some((purpose, *form));
                show(&request, object, Feedback { form, refusal: None }).await
            }
        };
    }
    let write = forms::removal(&request.visit.form, &object)?;
    match request.api.attempt(&write).await? {
        Ok(_) => {
            let is_rule = !request.visit.form.has("collaborator");
            let notice = if is_rule { "rule-removed" } else { "collaborator-removed" };
            Ok(see_other(&with_notice(&object.page("access/"), notice))?)
        }
        Err(refusal) => {
            show(&request, object, Feedback { form: None, refusal: Some(refusal) }).await
        }
    }
}

async fn show(request: &SignedIn, object: ObjectPath, mut feedback: Feedback) -> PageResult {
    let filters = Filters::of(&request.visit);
    let status = feedback.status();
    let (of_page, of_api) = (object.page("access/"), object.api("access/"));
    let (members, paging) = members::load(request, [&of_page, &of_api], &filters).await?;
    let chosen = members::chosen(request, &of_api, &filters).await?;
    let rules: Rules = request.api.get(&object.api("access_controls/")).await?;
    let mut subjects = Subjects::load(request, &object.tenant, &of_page).await?;
    let mut rule = None;
    let may_rule = request.api.may(&object.operation(forms::RULE)).await?;
    if rules.user_can_edit_access_levels && may_rule {
        let form = match feedback.take(Purpose::Rule) {
            Some(form) => form,
            None => {
                forms::for_member(forms::rule(request, &object)?, chosen.as_ref(), &mut subjects)
            }
        };
        rule = Some(with_subjects(form, &subjects));
    }
    let found = Dashboard::load(request, &object).await?;
    let name = found.as_ref().and_then(|(one, _)| one.name());
    let name = name_or(name, "this dashboard").to_owned();
    let restriction = Restriction::load(request, &object, &filters, found, &mut feedback).await?;
    let frame = object.frame(request).await?;
    let frame = frame.titled(format!("Who can see {name}")).with_refusal(feedback.refusal);
    let action = rule.as_ref().map(|_| of_page.clone());
    let url = |offset, at| format!("{}#rules", filters.beside(offset, at).url(&of_page));
    let page = AccessPage {
        command: Command::get(&request.visit, &members::path(&of_api, &filters)),
        rules: RuleTable::new(&rules.access_controls, &subjects, &request.visit, url, action)?,
        paging,
        object,
        name,
        filters,
        members,
        chosen,
        rule,
        subjects,
        restriction,
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
