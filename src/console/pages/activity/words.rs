//! The words of the activity log for activities, kinds of objects, fields and values.

use std::borrow::Cow;

use serde_json::Value;

use crate::console::words::{COLLABORATORS_EDIT, EVERYONE_EDITS, MAY_EDIT, MAY_VIEW, known_level};

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
            Some(verb) => verb.phrase.replace("{}", object),
            None => format!("recorded “{}” of {object}", without_braces(activity)),
        },
    }
}

/// Returns the object of an entry in a sentence, with the placeholders of [`ObjectKind`].
pub(super) fn object(scope: &str) -> &'static str {
    KINDS.iter().find(|kind| kind.scope == scope).map_or("the object {}", |kind| kind.object)
}

fn without_braces(text: &str) -> String {
    text.replace(['{', '}'], "")
}

/// Names of fields that say more than the field's own name.
const FIELDS: &[(&str, &str)] = &[
    ("access_token", "public link"),
    ("default_role_id", "default role"),
    ("destination__secrets", "secrets of the destination"),
    ("is_shared", "public page"),
    ("last_rolled_at", "last rotation"),
    ("restriction_level", "restriction"),
    ("role_id", "role"),
    ("target_email", "address"),
    ("took_over_account_since", "account taken over since"),
];

/// The parts of a dashboard whose fields stand in its entries: `tiles__3__color`.
const PARTS: &[(&str, &str)] = &[("tiles", "tile"), ("texts", "text"), ("insights", "insight")];

/// Returns the label of a field.
pub(super) fn label(field: &str) -> Cow<'static, str> {
    if let Some((_, label)) = FIELDS.iter().find(|(known, _)| *known == field) {
        return Cow::Borrowed(label);
    }
    let plain = |name: &str| without_braces(&name.replace("__", ": ").replace('_', " "));
    let mut parts = field.splitn(3, "__");
    if let (Some(list), Some(id), Some(name)) = (parts.next(), parts.next(), parts.next())
        && let Some((_, part)) = PARTS.iter().find(|(known, _)| *known == list)
    {
        return Cow::Owned(format!("{} of {part} {id}", plain(name)));
    }
    Cow::Owned(plain(field))
}

/// Returns the word for a value that is a level or a boolean.
pub(super) fn word(scope: &str, field: &str, value: &Value) -> Option<String> {
    match value {
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => level(scope, field, u8::try_from(number.as_u64()?).ok()?),
        _ => None,
    }
}

fn level(scope: &str, field: &str, level: u8) -> Option<String> {
    let word = match (scope, field, level) {
        ("OrganizationMembership" | "OrganizationInvite", "level", _) => {
            return known_level(level).map(str::to_lowercase);
        }
        ("DashboardCollaborator", "level", MAY_VIEW) => "may view",
        ("DashboardCollaborator", "level", MAY_EDIT) => "may edit",
        ("Dashboard", "restriction_level", EVERYONE_EDITS) => "everyone edits",
        ("Dashboard", "restriction_level", COLLABORATORS_EDIT) => "collaborators edit",
        _ => return None,
    };
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sentences_name_what_was_done() {
        for (scope, activity, field, expected) in [
            ("Dashboard", "updated", None, "updated the dashboard {}"),
            ("Dashboard", "updated", Some("name"), "updated the name of the dashboard {}"),
            ("Dashboard", "created", Some("name"), "created the dashboard {}"),
            ("OrganizationInvite", "created", None, "invited {}"),
            ("OrganizationInvite", "deleted", None, "deleted the invite of {}"),
            ("HogFunction", "deleted", None, "deleted the object {}"),
            ("Role", "{}archived", None, "recorded “archived” of the role {}"),
        ] {
            assert_eq!(sentence(scope, activity, field), expected);
        }
    }

    #[test]
    fn labels_of_fields_are_words() {
        for (field, expected) in [
            ("restriction_level", "restriction"),
            ("session_recording_opt_in", "session recording opt in"),
            ("tiles__3__show_description", "show description of tile 3"),
            ("destination__secrets", "secrets of the destination"),
            ("a__b", "a: b"),
        ] {
            assert_eq!(label(field), expected);
        }
    }

    #[test]
    fn levels_are_words_only_in_their_field() {
        assert_eq!(word("OrganizationMembership", "level", &json!(8)), Some("admin".to_owned()));
        assert_eq!(word("Project", "level", &json!(8)), None);
        assert_eq!(word("Project", "opt_out", &json!(true)), Some("yes".to_owned()));
    }
}
