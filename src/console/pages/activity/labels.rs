//! The names of fields and values in the activity log.

use std::borrow::Cow;

use serde_json::Value;

use crate::console::words::{COLLABORATORS_EDIT, EVERYONE_EDITS, MAY_EDIT, MAY_VIEW, known_level};

use super::words::without_braces;

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
