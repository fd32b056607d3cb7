//! The forms of the page: a rule, and for dashboards the restriction and a collaborator.

use crate::console::form::SubmittedForm;
use crate::console::pages::prelude::*;
use crate::console::pages::rules::{MEMBER, ROLE, Subjects, removed_rule};
use crate::console::pages::shareable::ShareableKind;
use crate::console::words::{MAY_EDIT, RESTRICTIONS};
use crate::http;

use super::MemberAccess;

const RULE: FormSpec = FormSpec::create(
    "Set the rule",
    &[
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").choices(&[
            ("none", "None: does not see it"),
            ("viewer", "Viewer: sees it"),
            ("editor", "Editor: also changes it"),
            ("manager", "Manager: also sets its rules"),
        ]),
    ],
)
.with_id("rule");

pub(super) const RESTRICTION: FormSpec = FormSpec::change(
    "Save",
    &[Input::new("restriction_level").label("Who may edit").choices(RESTRICTIONS)],
)
.with_id("restriction");

pub(super) const COLLABORATOR: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("user_uuid").label("Member").hint("Members who may view but not edit.")],
)
.with_id("collaborator");

/// The operation that adds a collaborator.
pub(super) const ADD_COLLABORATOR: &str = "dashboards_collaborators_create";

/// Returns the URL that the browser sends a form to.
pub(super) fn action(object: &ObjectPath, form: &FormSpec) -> String {
    object.page(&format!("access/?form={}", form.id))
}

/// Reads the form that the query names. Returns `None` if the page of the kind has no such form.
pub(super) fn sent(
    request: &SignedIn,
    kind: &ShareableKind,
    object: &ObjectPath,
) -> Result<Option<SubmittedForm>> {
    let (form, operation): (&'static FormSpec, _) = match request.visit.query("form") {
        "rule" => (&RULE, kind.set_rule),
        "restriction" if !kind.is_insight => (&RESTRICTION, kind.update),
        "collaborator" if !kind.is_insight => (&COLLABORATOR, ADD_COLLABORATOR),
        _ => return Ok(None),
    };
    let mut sent = form.sent(request, object.operation(operation), &action(object, form))?;
    if operation == ADD_COLLABORATOR {
        sent.body.insert("level".to_owned(), MAY_EDIT.into());
    }
    Ok(Some(sent))
}

/// Returns the form that sets a rule. A new one names the chosen member, if there is one.
pub(super) fn rule(
    request: &SignedIn,
    operation: &Operation,
    object: &ObjectPath,
    chosen: Option<&MemberAccess>,
    subjects: &mut Subjects,
    feedback: &mut Feedback,
) -> Result<Form> {
    let nothing = Versioned::default();
    let form = RULE.shown(request, operation, &action(object, &RULE), &nothing, feedback)?;
    let Some(member) = chosen.filter(|_| !form.is_sent) else { return Ok(form) };
    subjects.offer_member(&member.organization_member, &member.user.person.label());
    Ok(form.with_value("organization_member", &member.organization_member.clone().into()))
}

/// Returns the request of a button that removes a rule or a collaborator.
///
/// # Errors
/// 404 if the form names neither.
pub(super) fn removal(
    form: &http::form::Form,
    kind: &ShareableKind,
    object: &ObjectPath,
) -> Result<Write> {
    if form.has("rule") {
        let body = removed_rule(form.value("rule"));
        return Ok(object.write(kind.set_rule).body(Value::Object(body)));
    }
    let user = form.value("collaborator");
    if user.is_empty() || kind.is_insight {
        return Err(Error::not_found());
    }
    let ids = [object.tenant.as_str(), object.id.as_str(), user];
    Ok(Write::new("dashboards_collaborators_destroy", ids))
}
