//! The levels of members in words.

/// The levels of an organization, as forms send them, each with its name.
pub(super) const LEVELS: &[(&str, &str)] = &[("1", "Member"), ("8", "Admin"), ("15", "Owner")];

/// Returns the name of a level.
pub(super) fn level_name(level: u8) -> &'static str {
    let text = level.to_string();
    LEVELS.iter().find(|(known, _)| *known == text).map_or("Member", |(_, name)| name)
}
