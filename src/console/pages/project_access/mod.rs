//! The access to a project, and the rules on all objects of a kind.

mod forms;
mod matrix;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Command, Frame, In, Section, with_notice};
use crate::console::paging::Paging;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::console::words::words;
use crate::error::Error;

use super::rules::{RuleTable, Rules, Subjects};
use forms::Purpose;
use matrix::Matrix;

const ACCESS: &str = "/console/projects/{project_id}/access/";

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

#[derive(Template)]
#[template(path = "console/pages/project_access/page.html")]
struct AccessPage {
    base: String,
    is_private: bool,
    rules: RuleTable,
    may_change: bool,
    /// The form for a rule on the project, if the session may set one.
    project: Option<Form>,
    matrix: Matrix,
    paging: Paging,
    may_change_kinds: bool,
    /// The form for a rule on a kind, if the session may set one.
    kind: Option<Form>,
    subjects: Subjects,
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

async fn page(request: SignedIn) -> PageResult {
    show(&request, Feedback::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let id = super::project_id(&request.visit)?;
    let base = base(&id);
    if let Some(purpose) = Purpose::of(&request) {
        return match purpose.sent(&request, &id)?.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&base, "access-saved"))?),
            Outcome::Again(form) => {
                show(&request, Feedback { form: Some((purpose, *form)), refusal: None }).await
            }
        };
    }
    match request.api.attempt(&forms::button(&request, &id)?).await? {
        Ok(_) => {
            let is_rule = !request.visit.form.has("everyone");
            let notice = if is_rule { "rule-removed" } else { "access-saved" };
            Ok(see_other(&with_notice(&base, notice))?)
        }
        Err(refusal) => show(&request, Feedback { form: None, refusal: Some(refusal) }).await,
    }
}

fn base(project: &str) -> String {
    format!("/console/projects/{project}/access/")
}

async fn show(request: &SignedIn, feedback: Feedback) -> PageResult {
    let id = super::project_id(&request.visit)?;
    let path = format!("/api/projects/{id}/access_controls/");
    let on_project: Rules = request.api.get(&path).await?;
    let on_kinds: Rules =
        request.api.get(&format!("/api/projects/{id}/resource_access_controls/")).await?;
    let subjects = Subjects::load(request, &id, &base(&id)).await?;
    let mut form = feedback.form;
    let status = form.as_ref().map_or(StatusCode::OK, |(_, form)| form.status());
    let project =
        forms::offer(request, &id, Purpose::Project, &on_project, &subjects, &mut form).await?;
    let kind = forms::offer(request, &id, Purpose::Kind, &on_kinds, &subjects, &mut form).await?;
    let action = project.as_ref().map(|_| base(&id));
    let offset = Paging::offset(&request.visit);
    let matrix = Matrix::of(&on_kinds.access_controls, &subjects, offset);
    let url = |offset| format!("{}?offset={offset}#kinds", base(&id));
    let of_rules = |name, offset| format!("{}?{name}={offset}#rules", base(&id));
    let rules = &on_project.access_controls;
    let frame = Frame::load(request, Section::ProjectAccess, In::Project(&id)).await?;
    let page = AccessPage {
        base: base(&id),
        is_private: on_project.default_access_level == "none",
        rules: RuleTable::new(rules, &subjects, &request.visit, of_rules, action)?,
        may_change: project.is_some(),
        project,
        paging: Paging::new(
            &request.visit,
            matrix.rows.len(),
            matrix.count,
            matrix::PAGE_SIZE,
            url,
        )?,
        matrix,
        may_change_kinds: kind.is_some(),
        kind,
        subjects,
        command: Command::get(&request.visit, &path),
    };
    let frame = frame.titled("Access").with_refusal(feedback.refusal);
    Ok(layout::page_with_status(&frame, &page, status)?)
}
