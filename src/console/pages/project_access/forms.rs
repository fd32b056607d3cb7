//! The forms of the page: a rule on the project, and a rule on all objects of a kind.

use serde_json::{Value, json};

use crate::console::form::{Form, FormSpec, Input, SubmittedForm};
use crate::console::operation::{Operation, Write};
use crate::console::pages::rules::{Rules, Subjects, removed_rule};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

const ON_PROJECT: &str = "projects_access_controls_update";
const ON_KINDS: &str = "projects_resource_access_controls_update";

const MEMBER: Input = Input::new("organization_member")
    .label("For the member")
    .hint("Without a member and a role, the rule is for everyone.");
const ROLE: Input = Input::new("role").label("For the role");

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
);

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
);

/// The purpose of a form of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Project,
    Kind,
}

impl Purpose {
    /// Returns the form, the operation, and the name in the query.
    const fn parts(self) -> (&'static FormSpec, &'static str, &'static str) {
        match self {
            Self::Project => (&PROJECT_FORM, ON_PROJECT, "project"),
            Self::Kind => (&KIND_FORM, ON_KINDS, "kind"),
        }
    }

    /// Reads the form that the query names.
    pub(super) fn of(request: &SignedIn) -> Option<Self> {
        let sent = request.visit.query("form");
        [Self::Project, Self::Kind].into_iter().find(|purpose| purpose.parts().2 == sent)
    }

    fn operation(self, project: &str) -> Operation {
        Operation::new(self.parts().1, [project])
    }

    fn action(self, project: &str) -> String {
        format!("{}?form={}", super::base(project), self.parts().2)
    }

    /// Reads the form that the browser has sent.
    pub(super) fn sent(self, request: &SignedIn, project: &str) -> Result<SubmittedForm> {
        self.parts().0.sent(request, self.operation(project), &self.action(project))
    }
}

/// Returns the request of a button: to open the project, to make it private, or to remove a rule.
///
/// # Errors
/// 404 for any other form.
pub(super) fn button(request: &SignedIn, project: &str) -> Result<Write> {
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

/// Returns a form if the session may set rules: the one that was sent, or an empty one.
pub(super) async fn offer(
    request: &SignedIn,
    project: &str,
    purpose: Purpose,
    rules: &Rules,
    subjects: &Subjects,
    sent: &mut Option<(Purpose, Form)>,
) -> Result<Option<Form>> {
    let (spec, _, name) = purpose.parts();
    let operation = purpose.operation(project);
    if !rules.user_can_edit_access_levels || !request.api.may(&operation).await? {
        return Ok(None);
    }
    let form = match sent.take_if(|(of, _)| *of == purpose) {
        Some((_, form)) => form,
        None => spec.empty(request, &operation, &purpose.action(project))?,
    };
    Ok(Some(subjects.offer_in(form.with_id(name))))
}
