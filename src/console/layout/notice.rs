//! The line that says what a form has done, on the page that follows it.

use crate::console::visit::Visit;

/// The parameter of the query that names the notice: an object and a verb, such as `dashboard-created`.
const DONE: &str = "done";
/// The parameter with the number of objects, if there are several.
const COUNT: &str = "count";

/// The objects of notices: the name in the query, one of them, and several. A link can only choose among these texts.
const OBJECTS: [(&str, &str, &str); 23] = [
    ("access", "Access", "rules"),
    ("arrangement", "Arrangement", "arrangements"),
    ("change", "Change", "changes"),
    ("collaborator", "Collaborator", "collaborators"),
    ("dashboard", "Dashboard", "dashboards"),
    ("domain", "Domain", "domains"),
    ("export", "Batch export", "batch exports"),
    ("insight", "Insight", "insights"),
    ("invite", "Invite", "invites"),
    ("key", "API key", "API keys"),
    ("level", "Level", "levels"),
    ("link", "Public link", "public links"),
    ("member", "Member", "members"),
    ("organization", "Organization", "organizations"),
    ("page", "Public page", "public pages"),
    ("profile", "Profile", "profiles"),
    ("project", "Project", "projects"),
    ("role", "Role", "roles"),
    ("rule", "Rule", "rules"),
    ("settings", "Settings", "settings"),
    ("text", "Text", "texts"),
    ("tile", "Tile", "tiles"),
    ("token", "Token", "tokens"),
];

/// The verbs of notices.
const VERBS: &str = "added created deleted disabled duplicated enabled moved paused removed replaced restored reverted \
                     revoked saved unpaused verified";

/// Another notice, with its name in the query.
const LEFT: (&str, &str) = ("left", "You have left the organization.");

/// The largest number of objects that a notice names. A form changes fewer.
const MAX_COUNT: usize = 1000;

/// Returns the notice that the page's query names.
pub(super) fn of(visit: &Visit) -> Option<String> {
    let count = visit.query(COUNT).parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
    text(visit.query(DONE), count.unwrap_or(1))
}

fn text(name: &str, count: usize) -> Option<String> {
    if name == LEFT.0 {
        return Some(LEFT.1.to_owned());
    }
    let (object, verb) = name.split_once('-')?;
    let (_, one, several) = OBJECTS.iter().find(|(known, ..)| *known == object)?;
    let verb = VERBS.split(' ').find(|known| *known == verb)?;
    Some(match count {
        1 => format!("{one} {verb}."),
        count => format!("{count} {several} {verb}."),
    })
}

/// Returns the path of a page that shows a notice.
pub(in crate::console) fn with_notice(path: &str, name: &'static str) -> String {
    with_notice_of(path, name, 1)
}

/// Returns the path of a page that shows a notice about this number of objects.
pub(in crate::console) fn with_notice_of(path: &str, name: &'static str, count: usize) -> String {
    debug_assert!(text(name, count).is_some(), "an unknown notice: {name}");
    let separator = if path.contains('?') { '&' } else { '?' };
    let count = if count == 1 { String::new() } else { format!("&{COUNT}={count}") };
    format!("{path}{separator}{DONE}={name}{count}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_names_the_object_and_the_number() {
        assert_eq!(text("dashboard-created", 1).as_deref(), Some("Dashboard created."));
        assert_eq!(text("export-paused", 3).as_deref(), Some("3 batch exports paused."));
        assert_eq!(text("left", 1).as_deref(), Some("You have left the organization."));
        for unknown in ["", "created", "dashboard", "dashboard-evil", "evil-created", "a-b-c"] {
            assert_eq!(text(unknown, 1), None, "{unknown}");
        }
        assert_eq!(with_notice("/a", "key-saved"), "/a?done=key-saved");
        assert_eq!(with_notice_of("/a?b", "key-saved", 2), "/a?b&done=key-saved&count=2");
    }
}
