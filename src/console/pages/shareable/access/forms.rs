//! The forms of the page: a rule, and for dashboards the restriction and a collaborator.

use crate::console::form::SubmittedForm;
use crate::console::pages::prelude::*;
use crate::console::pages::rules::{MEMBER, ROLE, Subjects, removed_rule};
use crate::console::pages::shareable::ShareableKind;
use crate::console::words::{MAY_EDIT, RESTRICTIONS};
use crate::http;

use super::MemberAccess;

const RULE_FORM: FormSpec = FormSpec::create(
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
);

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
    /// Reads the form that the query names, if the page of the kind has it.
    pub(super) fn of(visit: &Visit, kind: &ShareableKind) -> Option<Self> {
        match visit.query("form") {
            "rule" => Some(Self::Rule),
            "restriction" if !kind.is_insight => Some(Self::Restriction),
            "collaborator" if !kind.is_insight => Some(Self::Collaborator),
            _ => None,
        }
    }

    const fn operation(self, kind: &ShareableKind) -> &'static str {
        match self {
            Self::Rule => kind.set_rule,
            Self::Restriction => kind.update,
            Self::Collaborator => "dashboards_collaborators_create",
        }
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

    /// Returns the empty form.
    pub(super) fn empty(
        self,
        request: &SignedIn,
        kind: &ShareableKind,
        object: &ObjectPath,
    ) -> Result<Form> {
        let operation = object.operation(self.operation(kind));
        self.spec().empty(request, &operation, &self.action(object))
    }

    /// Returns the form, filled from what is stored.
    pub(super) fn filled(
        self,
        request: &SignedIn,
        kind: &ShareableKind,
        object: &ObjectPath,
        stored: &Versioned,
    ) -> Result<Form> {
        let operation = object.operation(self.operation(kind));
        self.spec().filled(request, &operation, &self.action(object), stored)
    }

    /// Reads the form that the browser has sent.
    pub(super) fn sent(
        self,
        request: &SignedIn,
        kind: &ShareableKind,
        object: &ObjectPath,
    ) -> Result<SubmittedForm> {
        let operation = object.operation(self.operation(kind));
        let mut sent = self.spec().sent(request, operation, &self.action(object))?;
        if self == Self::Collaborator {
            sent.body.insert("level".to_owned(), MAY_EDIT.into());
        }
        Ok(sent)
    }
}

/// Returns the form that sets a rule. It names the chosen member, if there is one.
pub(super) fn rule(
    request: &SignedIn,
    kind: &ShareableKind,
    object: &ObjectPath,
    chosen: Option<&MemberAccess>,
    subjects: &mut Subjects,
) -> Result<Form> {
    let form = Purpose::Rule.empty(request, kind, object)?;
    let Some(member) = chosen else { return Ok(form) };
    subjects.offer_member(&member.organization_member, &member.label());
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
