//! The forms of the page: a rule, the restriction, a collaborator.

use serde_json::Value;

use crate::console::api::Versioned;
use crate::console::form::{Form, FormSpec, Input, SubmittedForm};
use crate::console::levels::{MAY_EDIT, RESTRICTIONS};
use crate::console::operation::{Operation, Write};
use crate::console::pages::object::ObjectPath;
use crate::console::pages::rules::{RULE_FORM, Subjects, removed_rule};
use crate::console::visit::{SignedIn, Visit};
use crate::error::{Error, Result};
use crate::http;

use super::members::MemberAccess;

/// The operation that sets a rule.
pub(super) const RULE: &str = "dashboards_access_controls_update";
/// The operation that changes the dashboard.
pub(super) const UPDATE: &str = "dashboards_partial_update";
const ADD: &str = "dashboards_collaborators_create";

const RESTRICTION_FORM: FormSpec = FormSpec::change(
    "Save",
    &[Input::new("restriction_level").label("Who may edit").choices(RESTRICTIONS)],
);

const COLLABORATOR_FORM: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("user_uuid").label("Member").hint("Members who may view but not edit.")],
);

/// The purpose of a form of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Rule,
    Restriction,
    Collaborator,
}

impl Purpose {
    /// Reads the form that the query names.
    pub(super) fn of(visit: &Visit) -> Option<Self> {
        match visit.query("form") {
            "rule" => Some(Self::Rule),
            "restriction" => Some(Self::Restriction),
            "collaborator" => Some(Self::Collaborator),
            _ => None,
        }
    }

    fn operation(self, object: &ObjectPath) -> Operation {
        object.operation(match self {
            Self::Rule => RULE,
            Self::Restriction => UPDATE,
            Self::Collaborator => ADD,
        })
    }

    fn action(self, object: &ObjectPath) -> String {
        let name = match self {
            Self::Rule => "rule",
            Self::Restriction => "restriction",
            Self::Collaborator => "collaborator",
        };
        object.page(&format!("access/?form={name}"))
    }

    const fn spec(self) -> &'static FormSpec {
        match self {
            Self::Rule => &RULE_FORM,
            Self::Restriction => &RESTRICTION_FORM,
            Self::Collaborator => &COLLABORATOR_FORM,
        }
    }

    fn empty(self, request: &SignedIn, object: &ObjectPath) -> Result<Form> {
        self.spec().empty(request, &self.operation(object), &self.action(object))
    }

    /// Reads the form that the browser has sent.
    pub(super) fn sent(self, request: &SignedIn, object: &ObjectPath) -> Result<SubmittedForm> {
        let action = self.action(object);
        let mut sent = self.spec().sent(request, self.operation(object), &action)?;
        if self == Self::Collaborator {
            sent.body.insert("level".to_owned(), MAY_EDIT.into());
        }
        Ok(sent)
    }
}

/// Returns the form that sets a rule.
pub(super) fn rule(request: &SignedIn, object: &ObjectPath) -> Result<Form> {
    Purpose::Rule.empty(request, object)
}

/// Names the chosen member, if there is one, in a new form of a rule.
pub(in crate::console::pages) fn for_member(
    form: Form,
    chosen: Option<&MemberAccess>,
    subjects: &mut Subjects,
) -> Form {
    let Some(member) = chosen else { return form };
    subjects.offer_member(&member.organization_member, &member.label());
    form.with_value("organization_member", &member.organization_member.clone().into())
}

pub(super) fn restriction(
    request: &SignedIn,
    object: &ObjectPath,
    dashboard: &Versioned,
) -> Result<Form> {
    let purpose = Purpose::Restriction;
    purpose.spec().filled(request, &purpose.operation(object), &purpose.action(object), dashboard)
}

pub(super) fn collaborator(request: &SignedIn, object: &ObjectPath) -> Result<Form> {
    Purpose::Collaborator.empty(request, object)
}

/// Returns the request of a button that removes a rule or a collaborator.
///
/// # Errors
/// 404 if the form names neither.
pub(super) fn removal(form: &http::form::Form, object: &ObjectPath) -> Result<Write> {
    if form.has("rule") {
        let body = removed_rule(form.value("rule"));
        return Ok(object.write(RULE).body(Value::Object(body)));
    }
    let user = form.value("collaborator");
    if user.is_empty() {
        return Err(Error::not_found());
    }
    let ids = [object.tenant.as_str(), object.id.as_str(), user];
    Ok(Write::new("dashboards_collaborators_destroy", ids))
}
