//! The access to a project, and the rules on all objects of a kind.

use std::collections::BTreeMap;

use crate::console::pages::people::{MEMBER, ROLE, Rule, RuleTable, Rules, Subjects, removed_rule};
use crate::console::pages::prelude::*;
use crate::console::words::words;

#[derive(Template)]
#[template(path = "console/pages/projects/access.html")]
struct AccessPage {
    base: String,
    is_private: bool,
    rules: RuleTable,
    /// The form for a rule on the project, if the session may set one.
    project: Option<Form>,
    matrix: Matrix,
    /// The form for a rule on a kind, if the session may set one.
    kind: Option<Form>,
    subjects: Subjects,
    command: Command,
}

pub(super) async fn apply(request: SignedIn) -> PageResult {
    let id = request.visit.project_id()?;
    let base = base(&id);
    let named = request.visit.query("form");
    if let Some((form, operation)) = FORMS.into_iter().find(|(form, _)| form.id == named) {
        let sent = form.sent(&request, Operation::new(operation, [&id]), &action(&id, form))?;
        return submit(request, sent, &base, "access-saved", &show).await;
    }
    let write = button(&request, &id)?;
    let is_setting = request.visit.form.has("everyone");
    let notice = if is_setting { "access-saved" } else { "rule-removed" };
    press(request, write, &base, notice, &show).await
}

fn base(project: &str) -> String {
    format!("/console/projects/{project}/access/")
}

pub(super) async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let id = request.visit.project_id()?;
    let path = format!("/api/projects/{id}/access_controls/");
    let on_project: Rules = request.api.get(&path).await.read()?;
    let on_kinds: Rules =
        request.api.get(&format!("/api/projects/{id}/resource_access_controls/")).await.read()?;
    let subjects = Subjects::load(&request, &id, &base(&id)).await?;
    let [of_project, of_kind] = FORMS;
    let project = offer(&request, &id, of_project, &on_project, &subjects, &mut feedback).await?;
    let kind = offer(&request, &id, of_kind, &on_kinds, &subjects, &mut feedback).await?;
    let action = project.as_ref().map(|_| base(&id));
    let of_kinds = |offset| format!("{}?offset={offset}#kinds", base(&id));
    let of_rules = |name, offset| format!("{}?{name}={offset}#rules", base(&id));
    let (rules, on_kinds) = (&on_project.access_controls, &on_kinds.access_controls);
    let page = AccessPage {
        base: base(&id),
        is_private: on_project.default_access_level == "none",
        rules: RuleTable::new(rules, &subjects, &request.visit, &of_rules, action)?,
        project,
        matrix: Matrix::of(on_kinds, &subjects, &request.visit, of_kinds)?,
        kind,
        subjects,
        command: Command::get(&request.visit, &path),
    };
    feedback.show(&request, "Access", &page).await
}

const ON_PROJECT: &str = "projects_access_controls_update";
const ON_KINDS: &str = "projects_resource_access_controls_update";

const PROJECT_FORM: FormSpec = FormSpec::create(
    "Set the rule",
    &[
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").choices(&[
            ("none", "None: for everyone, it makes the project private"),
            ("member", "Member: sees the project, also if it is private"),
            ("admin", "Admin: also sets rules"),
        ]),
    ],
)
.with_id("project");

const KIND_FORM: FormSpec = FormSpec::create(
    "Set the rule on the kind",
    &[
        Input::new("resource").label("Kind"),
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").choices(&[
            ("none", "None: does not see the objects"),
            ("viewer", "Viewer: sees them"),
            ("editor", "Editor: also changes them"),
            ("manager", "Manager: also sets their rules"),
        ]),
    ],
)
.with_id("kind");

/// The forms of the page, each with the operation that it sends.
const FORMS: [(&FormSpec, &str); 2] = [(&PROJECT_FORM, ON_PROJECT), (&KIND_FORM, ON_KINDS)];

/// Returns the URL that the browser sends a form to.
fn action(project: &str, form: &FormSpec) -> String {
    format!("{}?form={}", base(project), form.id)
}

/// Returns the request of a button: to open the project, to make it private, or to remove a rule.
///
/// # Errors
/// 404 for any other form.
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

/// Returns a form if the session may set rules: as it was sent, or an empty one.
async fn offer(
    request: &SignedIn,
    project: &str,
    (form, operation): (&'static FormSpec, &'static str),
    rules: &Rules,
    subjects: &Subjects,
    feedback: &mut Feedback,
) -> Result<Option<Form>> {
    let operation = Operation::new(operation, [project]);
    if !rules.user_can_edit_access_levels || !request.api.may(&operation).await? {
        return Ok(None);
    }
    let (action, nothing) = (action(project, form), Versioned::default());
    let form = form.shown(request, &operation, &action, &nothing, feedback)?;
    Ok(Some(subjects.offer_in(form)))
}

/// The maximum number of rows on a page.
const PAGE_SIZE: usize = 50;

/// A page of the table.
struct Matrix {
    kinds: Vec<String>,
    rows: Vec<Row>,
    paging: Paging,
}

/// The rules of a subject.
struct Row {
    name: String,
    subject: String,
    /// The kinds, each with the level of the rule, if there is one.
    levels: Vec<(String, Option<String>)>,
}

impl Matrix {
    /// Arranges the rules. The rules for everyone come first. `url` returns the URL of a page.
    ///
    /// # Errors
    /// Those of [`Paging::of_all`].
    fn of(
        rules: &[Rule],
        subjects: &Subjects,
        visit: &Visit,
        url: impl Fn(u64) -> String,
    ) -> Result<Self, Failure> {
        // Everyone has the lowest key, roles come after members.
        let mut by_subject: BTreeMap<String, Vec<&Rule>> = BTreeMap::new();
        let mut kinds: Vec<String> = Vec::new();
        for rule in rules {
            by_subject.entry(rule.subject()).or_default().push(rule);
            if !kinds.contains(&rule.resource) {
                kinds.push(rule.resource.clone());
            }
        }
        kinds.sort();
        let by_subject: Vec<_> = by_subject.into_iter().collect();
        let (shown, paging) = Paging::of_all(&by_subject, visit, OFFSET, PAGE_SIZE, &url)?;
        let rows = shown.iter().map(|(subject, rules)| {
            let level = |kind: &String| {
                let of_kind = rules.iter().find(|rule| rule.resource == *kind);
                (kind.clone(), of_kind.map(|rule| rule.access_level.clone()))
            };
            let name = rules.first().map_or(String::new(), |rule| subjects.name(rule));
            Row { name, subject: subject.clone(), levels: kinds.iter().map(level).collect() }
        });
        Ok(Self { rows: rows.collect(), kinds, paging })
    }
}
