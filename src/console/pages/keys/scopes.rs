//! Scopes in words.

/// The objects of scopes, in the words of the console. Other objects have their own name.
const OBJECTS: [(&str, &str); 11] = [
    ("access_control", "Access rules"),
    ("activity_log", "Activity"),
    ("batch_export", "Batch exports"),
    ("dashboard", "Dashboards"),
    ("insight", "Insights"),
    ("organization", "Organizations"),
    ("organization_member", "Members and invites"),
    ("personal_api_key", "API keys"),
    ("project", "Projects"),
    ("sharing_configuration", "Public links"),
    ("user", "Your account"),
];

/// Returns a scope in words.
pub(super) fn in_words(scope: &str) -> String {
    match scope.split_once(':') {
        Some((object, "read")) => format!("Read {}", object_in_words(object).to_lowercase()),
        Some((object, _)) => format!("Change {}", object_in_words(object).to_lowercase()),
        None => "Everything".to_owned(),
    }
}

/// Returns the object of a scope in words.
pub(super) fn object_in_words(object: &str) -> String {
    let known = OBJECTS.iter().find(|(name, _)| *name == object);
    known.map_or_else(|| object.replace('_', " "), |(_, words)| (*words).to_owned())
}
