//! The operations that a key can use.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::api::Write;
use crate::console::model::Key;
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

/// An operation, as the API describes it.
#[derive(Deserialize)]
pub(super) struct KeyOperation {
    pub(super) summary: String,
    pub(super) resource: String,
    pub(super) allowed: bool,
    pub(super) reason: Option<String>,
}

/// The operations of one resource that a key can use.
pub(super) struct Group {
    pub(super) resource: String,
    pub(super) summaries: Vec<String>,
}

/// The operations that a key can use, and the others.
#[derive(Default)]
pub(super) struct Abilities {
    pub(super) count: usize,
    pub(super) total: usize,
    pub(super) groups: Vec<Group>,
    pub(super) refused: Vec<KeyOperation>,
    /// Why the API does not say what the key could do.
    pub(super) error: Option<String>,
}

impl Abilities {
    /// Asks what one of the user's keys can do.
    pub(super) async fn of_key(request: &SignedIn, key: &Key) -> Result<Self> {
        let path = format!("/api/personal_api_keys/{}/operations/", key.id);
        request.api.get(&path).await.map(Self::of)
    }

    /// Asks what a new key could do. `body` is the body of the request that creates it.
    pub(super) async fn of_new(request: &SignedIn, body: &Map<String, Value>) -> Result<Self> {
        if !body.contains_key("scopes") {
            return Ok(Self::default());
        }
        let access = body.iter().filter(|(name, _)| name.starts_with("scope"));
        let access = access.map(|(name, value)| (name.clone(), value.clone())).collect();
        let write = Write::new("personal_api_keys_operations_create", []);
        match request.api.query(&write.body(Value::Object(access))).await {
            Ok(found) => Ok(Self::of(serde_json::from_value(found).map_err(Error::internal)?)),
            Err(error) if matches!(error.status(), 400 | 403) => {
                Ok(Self { error: Some(error.detail().to_owned()), ..Self::default() })
            }
            Err(error) => Err(error),
        }
    }

    fn of(operations: Vec<KeyOperation>) -> Self {
        let mut found = Self { total: operations.len(), ..Self::default() };
        for mut operation in operations {
            // The marks of code in the document.
            operation.summary = operation.summary.replace('`', "");
            if !operation.allowed {
                found.refused.push(operation);
                continue;
            }
            found.count += 1;
            let resource = operation.resource.replace('_', " ");
            match found.groups.iter_mut().find(|group| group.resource == resource) {
                Some(group) => group.summaries.push(operation.summary),
                None => {
                    found.groups.push(Group { resource, summaries: vec![operation.summary] });
                }
            }
        }
        found
    }
}
