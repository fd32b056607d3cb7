//! Names and levels in words for people.

use serde_json::Value;

/// Returns a text with a capital first letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// Returns the name of a field, a value or a kind in words: `start_at` becomes `Start at`.
pub(super) fn words(name: &str) -> String {
    capitalized(&name.replace(['_', '-'], " "))
}

/// The levels of an organization, as forms send them, each with its name.
pub(super) const LEVELS: &[(&str, &str)] = &[("1", "Member"), ("8", "Admin"), ("15", "Owner")];

/// Returns a level as the API takes it. Another text stays as it is, and the API refuses it.
pub(super) fn level_value(text: &str) -> Value {
    text.parse::<u8>().map_or_else(|_| Value::from(text), Value::from)
}

/// Returns the name of a level of an organization, or `None` if there is no such level.
pub(super) fn known_level(level: u8) -> Option<&'static str> {
    let text = level.to_string();
    LEVELS.iter().find(|(known, _)| *known == text).map(|(_, name)| *name)
}

/// Returns the name of a level of an organization.
pub(super) fn level_name(level: u8) -> &'static str {
    known_level(level).unwrap_or("Member")
}

/// The `restriction_level` of a dashboard without a restriction: access rules decide who edits it.
pub(super) const EVERYONE_EDITS: u8 = 21;
/// The `restriction_level` of a dashboard that only collaborators, the creator and admins edit.
pub(super) const COLLABORATORS_EDIT: u8 = 37;

/// The values of `restriction_level`, as forms send them, each with its label.
pub(super) const RESTRICTIONS: &[(&str, &str)] = &[
    ("21", "Everyone whom access rules let edit"),
    ("37", "Only collaborators, the creator and admins"),
];

/// Returns whether a dashboard with this `restriction_level` is restricted.
pub(super) const fn is_restricted(restriction: u8) -> bool {
    restriction == COLLABORATORS_EDIT
}

/// The privilege on a dashboard of users who may view it.
pub(super) const MAY_VIEW: u8 = 21;
/// The privilege on a dashboard of users who may edit it, among them collaborators.
pub(super) const MAY_EDIT: u8 = 37;

/// Returns whether access rules with this `user_access_level` let the session edit.
pub(super) fn is_editor(level: &str) -> bool {
    matches!(level, "editor" | "manager")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_the_known_levels() {
        let values = RESTRICTIONS.iter().map(|(value, _)| value.parse());
        assert!(values.eq([Ok(EVERYONE_EDITS), Ok(COLLABORATORS_EDIT)]));
        assert_eq!((known_level(8), known_level(2)), (Some("Admin"), None));
    }
}
