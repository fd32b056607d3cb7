//! Scopes limit what a key may do: `object:read`, `object:write` or `*`. See `docs/spec/authentication.md`.

use crate::resources::shared::prelude::*;

/// The objects that scopes can name.
const OBJECTS: &str = "\
    access_control action activity_log alert annotation batch_export cohort comment dashboard \
    dashboard_template dataset early_access_feature element endpoint error_tracking evaluation \
    event_definition experiment experiment_saved_metric export external_data_source feature_flag \
    file_system group hog_flow hog_function insight integration link logs notebook organization \
    organization_integration organization_member persisted_folder person personal_api_key plugin \
    project property_definition query revenue_analytics session_recording \
    session_recording_playlist sharing_configuration subscription survey task user \
    user_interview warehouse_table warehouse_view web_analytics webhook";

/// The prefix of objects that concern language models. PostHog accepts any name after it.
const MODEL_OBJECT_PREFIX: &str = "llm_";
/// The scope that allows everything.
const ALL_SCOPES: &str = "*";

/// Returns the regular expression that matches what [`is_scope`] accepts.
pub(super) fn pattern() -> String {
    let objects = OBJECTS.replace(' ', "|");
    format!(r"^(\*|({objects}|{MODEL_OBJECT_PREFIX}[a-z0-9_]+):(read|write))$")
}

/// Returns whether `text` is a valid scope.
pub fn is_scope(text: &str) -> bool {
    text == ALL_SCOPES
        || text.split_once(':').is_some_and(|(object, action)| {
            matches!(action, "read" | "write")
                && (OBJECTS.split(' ').any(|known| known == object) || is_model_object(object))
        })
}

fn is_model_object(object: &str) -> bool {
    let name = object.strip_prefix(MODEL_OBJECT_PREFIX).unwrap_or_default();
    !name.is_empty() && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_'))
}

/// The scopes of a key, never empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(Vec<String>);

impl Scopes {
    /// Sorts the scopes and removes duplicates.
    ///
    /// # Errors
    /// 400 if the list is empty or contains an invalid scope.
    pub fn new(mut scopes: Vec<String>) -> Result<Self> {
        if let Some(wrong) = scopes.iter().find(|scope| !is_scope(scope)) {
            let detail = format!("Invalid scope: {wrong}");
            return Err(Error::invalid("invalid_input", detail));
        }
        if scopes.is_empty() {
            return Err(Error::invalid("empty", "This list may not be empty."));
        }
        scopes.sort();
        scopes.dedup();
        Ok(Self(scopes))
    }

    /// Returns whether a key with `others` may do everything that a key with these scopes may do.
    pub fn are_within(&self, others: &Self) -> bool {
        self.0.iter().all(|scope| others.allows(scope))
    }

    /// Returns whether one of these scopes includes `scope`.
    pub fn allows(&self, scope: &str) -> bool {
        self.0.iter().any(|held| includes_scope(held, scope))
    }
}

/// Returns whether the scope `held` includes `scope`. `write` includes `read` of the same object, and `*` includes everything.
pub fn includes_scope(held: &str, scope: &str) -> bool {
    let object = scope.strip_suffix(":read");
    held == ALL_SCOPES
        || held == scope
        || object.is_some_and(|object| held.strip_suffix(":write") == Some(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(held: &str, needed: &str) -> bool {
        Scopes::new(vec![held.to_owned()]).is_ok_and(|scopes| scopes.allows(needed))
    }

    #[test]
    fn write_implies_only_read_of_the_same_object() {
        assert!(allows("dashboard:write", "dashboard:read"));
        assert!(allows("*", "organization:write"));
        assert!(!allows("dashboard:read", "dashboard:write"));
        assert!(!allows("organization:write", "organization_member:read"));
    }

    #[test]
    fn invalid_scope_is_rejected_by_name() {
        let error = Scopes::new(vec!["dashboard:admin".to_owned()]).expect_err("no such action");
        assert_eq!(error.detail(), "Invalid scope: dashboard:admin");
        assert!(Scopes::new(Vec::new()).is_err());
        assert!(is_scope("llm_gateway:read"));
        for wrong in ["llm_:read", "llm_A:read", "llm_a b:read", "llm_a\n:read", "*:read", ""] {
            assert!(!is_scope(wrong), "{wrong}");
        }
    }
}
