//! The scopes and limits that a key can have with their words, and the operations that it can use.

use std::collections::BTreeSet;

use crate::console::model::Me;
use crate::console::pages::prelude::*;
use crate::resources::api_keys::includes_scope;

/// The scope of everything.
const ALL: &str = "*";

/// The scopes to begin with: the name and the label of each preset.
const PRESETS: [(&str, &str); 4] = [
    ("read", "Read everything"),
    ("dashboards", "Dashboards"),
    ("members", "Members"),
    ("everything", "Everything I may"),
];

/// The access that the session may give to a key.
pub(super) struct Access {
    /// The scopes that operations of the API require and that the session holds.
    scopes: Vec<String>,
    /// The scopes of the session's key.
    held: Vec<String>,
    organizations: Choices,
    projects: Choices,
}

impl Access {
    /// Loads what the session may give. `own` is the key of the session.
    pub(super) async fn load(request: &SignedIn, own: Option<&Key>) -> Result<Self> {
        let held = own.map_or_else(|| vec![ALL.to_owned()], |key| key.scopes.clone());
        let specs = request.api.table.specs().iter();
        let required: BTreeSet<_> = specs.filter_map(|spec| spec.requirements.scope).collect();
        let all = std::iter::once(ALL)
            .chain(required)
            .filter(|scope| held.iter().any(|held| includes_scope(held, scope)));
        let scopes = all.map(str::to_owned).collect();
        let (organizations, projects) = tenants(request).await?;
        Ok(Self { scopes, held, organizations, projects })
    }

    fn only(&self, is_chosen: impl Fn(&str) -> bool) -> Vec<String> {
        self.scopes.iter().filter(|scope| is_chosen(scope)).cloned().collect()
    }

    /// Returns the scopes of a preset. An unknown one has none.
    pub(super) fn preset(&self, name: &str) -> Vec<String> {
        let set: &[&str] = match name {
            "read" => return self.only(|scope| scope.ends_with(":read")),
            "dashboards" => &["dashboard:write", "insight:write", "project:read"],
            "members" => &["organization:read", "organization_member:write"],
            "everything" => return self.held.clone(),
            _ => &[],
        };
        self.only(|scope| set.contains(&scope))
    }

    /// Returns the names and labels of the presets that the session may give.
    pub(super) fn presets(&self) -> Vec<(&'static str, &'static str)> {
        PRESETS.into_iter().filter(|(name, _)| !self.preset(name).is_empty()).collect()
    }

    /// Offers scopes, organizations and projects in a form.
    pub(super) fn offer(&self, form: Form) -> Form {
        let scopes = self.scopes.iter().map(|scope| match scope.split_once(':') {
            Some((object, action)) => {
                let label = if action == "read" { "Read" } else { "Write" };
                Choice::new(scope.as_str(), label).in_group(object_in_words(object))
            }
            None => Choice::new(scope.as_str(), "Everything, also what later versions add"),
        });
        let mut form = form.with_choices("scopes", scopes.collect());
        if let Some(choices) = &self.organizations {
            form = form.with_choices("scoped_organizations", choices.clone());
        }
        if let Some(choices) = &self.projects {
            form = form.with_choices("scoped_teams", choices.clone());
        }
        form
    }

    /// Returns the organizations and projects that a key is limited to, by name if that is known.
    pub(super) fn limits(&self, key: &Key) -> Vec<String> {
        let name = |choices: &Choices, id: String| {
            let known = choices.iter().flatten().find(|choice| choice.text() == id);
            known.map_or(id, |choice| choice.label.clone())
        };
        let organizations = key.scoped_organizations.iter();
        let organizations = organizations.map(|id| name(&self.organizations, id.clone()));
        let projects = key.scoped_teams.iter().map(|id| name(&self.projects, id.to_string()));
        organizations.chain(projects).collect()
    }
}

/// The maximum number of organizations or projects that are offered by name.
const MAX_TENANTS: usize = 100;

/// Organizations or projects by name, if the session may list them and there are few.
type Choices = Option<Vec<Choice>>;

/// Returns the organizations and projects of the user.
///
/// # Errors
/// The errors of the API, except refusals.
async fn tenants(request: &SignedIn) -> Result<(Choices, Choices)> {
    let me = request.api.get("/api/users/@me/").await.read_if_allowed::<Me>()?;
    let mut organizations = me.map(|me| me.organizations);
    if let Some(all) = &mut organizations {
        all.sort_by(|one, other| one.id.cmp(&other.id));
    }
    let path = format!("/api/projects/?limit={MAX_TENANTS}");
    let projects = request.api.get(&path).await.read_if_allowed::<List<Project>>()?;
    let projects = projects.filter(List::is_complete);
    let organization_of = |project: &Project| {
        let mut known = organizations.iter().flatten();
        known.find(|one| one.id == project.organization).map(|one| one.name.as_str())
    };
    let named = |project: Project| {
        let label = match organization_of(&project) {
            Some(organization) => format!("{} ({organization})", project.name),
            None => project.name,
        };
        Choice::new(project.id, label)
    };
    let projects = projects.map(|found| found.results.into_iter().map(named).collect());
    // The list ends after so many, and there may be more.
    let organizations = organizations.filter(|all| all.len() < MAX_TENANTS);
    let organizations =
        organizations.map(|all| all.into_iter().map(|one| Choice::new(one.id, one.name)).collect());
    Ok((organizations, projects))
}

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

pub(super) fn scope_in_words(scope: &str) -> String {
    match scope.split_once(':') {
        Some((object, "read")) => format!("Read {}", object_in_words(object).to_lowercase()),
        Some((object, _)) => format!("Change {}", object_in_words(object).to_lowercase()),
        None => "Everything".to_owned(),
    }
}

/// Returns the object of a scope in words.
fn object_in_words(object: &str) -> String {
    let known = OBJECTS.iter().find(|(name, _)| *name == object);
    known.map_or_else(|| object.replace('_', " "), |(_, words)| (*words).to_owned())
}

/// An operation, as the API describes it.
#[derive(Deserialize)]
pub(super) struct KeyOperation {
    pub(super) summary: String,
    pub(super) resource: String,
    allowed: bool,
    pub(super) reason: Option<String>,
}

/// The operations that a key can use, and the others.
#[derive(Default)]
pub(super) struct Abilities {
    pub(super) total: usize,
    /// For each resource, what the key can do.
    pub(super) groups: Vec<(String, Vec<String>)>,
    pub(super) refused: Vec<KeyOperation>,
    /// Why the API does not say what the key could do.
    pub(super) error: Option<String>,
}

impl Abilities {
    /// Asks what one of the user's keys can do.
    pub(super) async fn of_key(request: &SignedIn, key: &Key) -> Result<Self> {
        let path = format!("/api/personal_api_keys/{}/operations/", key.id);
        request.api.get(&path).await.read().map(Self::of)
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
            let resource = operation.resource.replace('_', " ");
            match found.groups.iter_mut().find(|(known, _)| *known == resource) {
                Some((_, summaries)) => summaries.push(operation.summary),
                None => found.groups.push((resource, vec![operation.summary])),
            }
        }
        found
    }
}
