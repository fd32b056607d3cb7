//! The form that sets a rule on one object.

use crate::console::form::{Form, FormSpec, Input};

use super::Subjects;

/// The form.
pub(in crate::console::pages) const RULE_FORM: FormSpec = FormSpec::create(
    "Set the rule",
    &[
        Input::new("organization_member")
            .label("For the member")
            .hint("Without a member and a role, the rule is for everyone."),
        Input::new("role").label("For the role"),
        Input::new("access_level").label("Level").choices(&[
            ("none", "None: does not see it"),
            ("viewer", "Viewer: sees it"),
            ("editor", "Editor: also changes it"),
            ("manager", "Manager: also sets its rules"),
        ]),
    ],
);

/// Offers the members and the roles in the form.
pub(in crate::console::pages) fn with_subjects(form: Form, subjects: &Subjects) -> Form {
    subjects.offer_in(form.with_id("rule"))
}
