//! The words of the activity log for activities and kinds of objects.

use std::borrow::Cow;

/// A kind of object in the log.
pub(super) struct ObjectKind {
    /// The `scope` of its entries.
    pub(super) scope: &'static str,
    /// The kind in the choice of a filter.
    pub(super) plural: &'static str,
    /// The object in a sentence. `{}` stands for its name, `{who}` for the member that the entry is about, and `{target}`
    /// for the object of an access rule.
    object: &'static str,
    /// Activities that are said in other words than those of [`VERBS`].
    phrases: &'static [(&'static str, &'static str)],
}

const fn kind(scope: &'static str, plural: &'static str, object: &'static str) -> ObjectKind {
    ObjectKind { scope, plural, object, phrases: &[] }
}

/// All kinds, in the order of the filter.
pub(super) const KINDS: &[ObjectKind] = &[
    kind("Dashboard", "Dashboards", "the dashboard {}"),
    kind("Insight", "Insights", "the insight {}"),
    ObjectKind {
        phrases: &[
            ("created", "added {who} as a collaborator of the dashboard {}"),
            ("deleted", "removed {who} as a collaborator of the dashboard {}"),
        ],
        ..kind(
            "DashboardCollaborator",
            "Collaborators",
            "the collaborator {who} of the dashboard {}",
        )
    },
    kind("AccessControl", "Access rules", "the access rule for {who} on {target}"),
    kind("BatchExport", "Batch exports", "the batch export {}"),
    kind("Project", "Projects", "the project {}"),
    kind("Organization", "Organization", "the organization {}"),
    ObjectKind {
        phrases: &[
            ("created", "added {who} to the organization"),
            ("deleted", "removed {who} from the organization"),
        ],
        ..kind("OrganizationMembership", "Members", "the membership of {who}")
    },
    kind("Role", "Roles", "the role {}"),
    ObjectKind {
        phrases: &[
            ("created", "added {who} to the role {}"),
            ("deleted", "removed {who} from the role {}"),
        ],
        ..kind("RoleMembership", "Members of roles", "the membership of {who} in the role {}")
    },
    ObjectKind {
        phrases: &[("created", "invited {}")],
        ..kind("OrganizationInvite", "Invites", "the invite of {}")
    },
    kind("OrganizationDomain", "Domains", "the domain {}"),
    kind("PersonalAPIKey", "API keys", "the API key {}"),
    kind("User", "Users", "the user {}"),
];

/// An activity of the log.
pub(super) struct Verb {
    /// The `activity` of its entries.
    pub(super) activity: &'static str,
    /// The activity in the choice of a filter.
    pub(super) choice: &'static str,
    /// The activity in a sentence. `{}` stands for the object.
    phrase: &'static str,
}

const fn verb(activity: &'static str, choice: &'static str, phrase: &'static str) -> Verb {
    Verb { activity, choice, phrase }
}

/// All activities, in the order of the filter.
pub(super) const VERBS: &[Verb] = &[
    verb("created", "Created", "created {}"),
    verb("updated", "Updated", "updated {}"),
    verb("deleted", "Deleted", "deleted {}"),
    verb("restored", "Restored", "restored {}"),
    verb("sharing enabled", "Public page enabled", "enabled the public page of {}"),
    verb("sharing disabled", "Public page disabled", "disabled the public page of {}"),
    verb("access token refreshed", "Public link replaced", "replaced the public link of {}"),
    verb("paused", "Paused", "paused {}"),
    verb("unpaused", "Unpaused", "unpaused {}"),
    verb("rolled", "Rotated", "rotated {}"),
];

/// Returns what was done, with the placeholders of [`ObjectKind`]. `field` is the label of the field if it alone was updated.
pub(super) fn sentence(scope: &str, activity: &str, field: Option<&str>) -> String {
    let kind = KINDS.iter().find(|kind| kind.scope == scope);
    let own = kind.and_then(|kind| kind.phrases.iter().find(|(known, _)| *known == activity));
    if let Some((_, phrase)) = own {
        return (*phrase).to_owned();
    }
    let object = object(scope);
    match field {
        Some(field) if activity == "updated" => format!("updated the {field} of {object}"),
        _ => match VERBS.iter().find(|verb| verb.activity == activity) {
            Some(verb) => verb.phrase.replace("{}", &object),
            None => format!("recorded “{}” of {object}", without_braces(activity)),
        },
    }
}

/// Returns the object of an entry in a sentence, with the placeholders of [`ObjectKind`].
pub(super) fn object(scope: &str) -> Cow<'static, str> {
    match KINDS.iter().find(|kind| kind.scope == scope) {
        Some(kind) => Cow::Borrowed(kind.object),
        None => Cow::Owned(format!("the {} {{}}", split_words(scope))),
    }
}

pub(super) fn without_braces(text: &str) -> String {
    text.replace(['{', '}'], "")
}

/// Splits a name such as `HogFunction` into words in lower case.
fn split_words(name: &str) -> String {
    let mut words = String::new();
    for one in name.chars() {
        if one.is_uppercase() && words.ends_with(char::is_lowercase) {
            words.push(' ');
        }
        words.extend(one.to_lowercase());
    }
    without_braces(&words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_what_was_done() {
        for (scope, activity, field, expected) in [
            ("Dashboard", "updated", None, "updated the dashboard {}"),
            ("Dashboard", "updated", Some("name"), "updated the name of the dashboard {}"),
            ("Dashboard", "created", Some("name"), "created the dashboard {}"),
            ("OrganizationInvite", "created", None, "invited {}"),
            ("OrganizationInvite", "deleted", None, "deleted the invite of {}"),
            ("HogFunction", "deleted", None, "deleted the hog function {}"),
            ("Role", "{}archived", None, "recorded “archived” of the role {}"),
        ] {
            assert_eq!(sentence(scope, activity, field), expected);
        }
    }
}
