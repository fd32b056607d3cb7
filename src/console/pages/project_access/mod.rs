//! Who sees and runs a project, and the rules on all objects of a kind.

mod matrix;

use askama::Template;
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::console::assets::icon;
use crate::console::entrance::see_other;
use crate::console::form::{Form, FormSpec, Input, Outcome};
use crate::console::layout::{self, Command, Frame, In, Paging, Section, with_notice};
use crate::console::operation::{Operation, Write};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::rules::{Rules, Subjects, removed_rule};
use matrix::Matrix;

const ACCESS: &str = "/console/projects/{project_id}/access/";

const ON_PROJECT: &str = "projects_access_controls_update";
const ON_KINDS: &str = "projects_resource_access_controls_update";

const MEMBER: Input = Input::new("organization_member")
    .label("For the member")
    .hint("Without a member and a role, the rule is for everyone.");
const ROLE: Input = Input::new("role").label("For the role").hint("");

const PROJECT_FORM: FormSpec = FormSpec::create(
    "Set the rule",
    &[
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").hint("").choices(&[
            ("none", "None: for everyone, it makes the project private"),
            ("member", "Member: sees the project, also if it is private"),
            ("admin", "Admin: also sets rules"),
        ]),
    ],
);

const KIND_FORM: FormSpec = FormSpec::create(
    "Set the rule on the kind",
    &[
        Input::new("resource").label("Kind").hint(""),
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").hint("").choices(&[
            ("none", "None: does not see the objects"),
            ("viewer", "Viewer: sees them"),
            ("editor", "Editor: also changes them"),
            ("manager", "Manager: also sets their rules"),
        ]),
    ],
);

/// Adds the page and its forms to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

/// What a form of the page does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Project,
    Kind,
}

impl Purpose {
    const fn parts(self) -> (&'static FormSpec, &'static str, &'static str) {
        match self {
            Self::Project => (&PROJECT_FORM, ON_PROJECT, "project"),
            Self::Kind => (&KIND_FORM, ON_KINDS, "kind"),
        }
    }

    /// Reads the form that the query names.
    fn of(request: &SignedIn) -> Option<Self> {
        let sent = request.visit.query("form");
        [Self::Project, Self::Kind].into_iter().find(|purpose| purpose.parts().2 == sent)
    }
}

/// A rule on the page.
struct RuleRow {
    name: String,
    level: String,
    subject: String,
}

#[derive(Template)]
#[template(path = "console/pages/project_access/page.html")]
struct AccessPage {
    base: String,
    is_private: bool,
    rules: Vec<RuleRow>,
    may_change: bool,
    /// The form for a rule on the project, if the session may set one.
    project: Option<Form>,
    matrix: Matrix,
    paging: Paging,
    may_change_kinds: bool,
    /// The form for a rule on a kind, if the session may set one.
    kind: Option<Form>,
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

async fn page(request: SignedIn) -> PageResult {
    show(&request, Refused::default()).await
}

async fn apply(request: SignedIn) -> PageResult {
    let id = super::project_id(&request.visit)?;
    let base = base(&id);
    if let Some(purpose) = Purpose::of(&request) {
        let (spec, operation, name) = purpose.parts();
        let action = format!("{base}?form={name}");
        let sent = spec.sent(&request, Operation::new(operation, [&id]), &action)?;
        return match sent.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&base, "saved"))?),
            Outcome::Again(form) => {
                show(&request, Refused { form: Some((purpose, *form)), refusal: None }).await
            }
        };
    }
    match request.api.attempt(&button(&request, &id)?).await? {
        Ok(_) => Ok(see_other(&with_notice(&base, "saved"))?),
        Err(refusal) => show(&request, Refused { form: None, refusal: Some(refusal) }).await,
    }
}

fn base(project: &str) -> String {
    format!("/console/projects/{project}/access/")
}

/// Returns the request of a button: to open the project, to make it private, or to remove a rule.
///
/// # Errors
/// 404 if the form is none of these.
fn button(request: &SignedIn, project: &str) -> Result<Write> {
    let form = &request.visit.form;
    if form.has("everyone") {
        let level = if form.value("everyone") == "private" { json!("none") } else { Value::Null };
        let write = Write::new(ON_PROJECT, [project]);
        return Ok(write.body(json!({ "access_level": level })));
    }
    if form.has("rule") {
        let body = removed_rule(form.value("rule"));
        return Ok(Write::new(ON_PROJECT, [project]).body(Value::Object(body)));
    }
    let (kind, subject) = form.value("kind_rule").split_once(' ').ok_or_else(Error::not_found)?;
    let mut body = removed_rule(subject);
    body.insert("resource".to_owned(), kind.into());
    Ok(Write::new(ON_KINDS, [project]).body(Value::Object(body)))
}

async fn show(request: &SignedIn, refused: Refused) -> PageResult {
    let id = super::project_id(&request.visit)?;
    let path = format!("/api/projects/{id}/access_controls/");
    let on_project: Rules = request.api.get(&path).await?;
    let on_kinds: Rules =
        request.api.get(&format!("/api/projects/{id}/resource_access_controls/")).await?;
    let subjects = Subjects::load(request, &id).await?;
    let mut form = refused.form;
    let status = form.as_ref().map_or(StatusCode::OK, |(_, form)| form.status());
    let project = offer(request, &id, Purpose::Project, &on_project, &subjects, &mut form).await?;
    let kind = offer(request, &id, Purpose::Kind, &on_kinds, &subjects, &mut form).await?;
    let rows = on_project.access_controls.iter().map(|rule| RuleRow {
        name: subjects.name(rule),
        level: rule.access_level.clone(),
        subject: rule.subject(),
    });
    let offset = Paging::offset(&request.visit);
    let matrix = Matrix::of(&on_kinds.access_controls, &subjects, offset);
    let url = |offset| format!("{}?offset={offset}", base(&id));
    let frame = Frame::load(request, Section::ProjectAccess, In::Project(&id)).await?;
    let page = AccessPage {
        base: base(&id),
        is_private: on_project.default_access_level == "none",
        rules: rows.collect(),
        may_change: project.is_some(),
        project,
        paging: Paging::new(offset, matrix.rows.len(), matrix.count, matrix::PAGE_SIZE, url)?,
        matrix,
        may_change_kinds: kind.is_some(),
        kind,
        command: Command::get(&request.visit, &path),
    };
    let frame = frame.titled("Access").with_refusal(refused.refusal);
    Ok(layout::page_with_status(&frame, &page, status)?)
}

/// Returns a form if the session may set rules: the one that was refused, or an empty one.
async fn offer(
    request: &SignedIn,
    project: &str,
    purpose: Purpose,
    rules: &Rules,
    subjects: &Subjects,
    refused: &mut Option<(Purpose, Form)>,
) -> Result<Option<Form>> {
    let (spec, operation, name) = purpose.parts();
    let operation = Operation::new(operation, [project]);
    if !rules.user_can_edit_access_levels || !request.api.may(&operation).await? {
        return Ok(None);
    }
    let form = match refused.take_if(|(of, _)| *of == purpose) {
        Some((_, form)) => form,
        None => spec.empty(request, &operation, &format!("{}?form={name}", base(project)))?,
    };
    let form = form.with_id(name).with_choices("organization_member", subjects.members());
    Ok(Some(form.with_choices("role", subjects.roles())))
}
