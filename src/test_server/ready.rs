//! What a test must know of its server: as a line of JSON, as text, and as variables of a command.

use std::ffi::OsStr;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::base::time::Timestamp;

use super::{Person, Workspace};

const URL_VARIABLES: [&str; 3] = ["STEWARD_URL", "POSTHOG_HOST", "TEST_POSTHOG_API_BASE_URL"];
const KEY_VARIABLES: [&str; 4] = [
    "STEWARD_API_KEY",
    "POSTHOG_API_KEY",
    "POSTHOG_PERSONAL_API_KEY",
    "TEST_POSTHOG_PERSONAL_API_KEY",
];
const ORGANIZATION_VARIABLES: [&str; 3] =
    ["STEWARD_ORGANIZATION_ID", "POSTHOG_ORGANIZATION_ID", "TEST_ORG_ID"];
const PROJECT_VARIABLES: [&str; 3] =
    ["STEWARD_PROJECT_ID", "POSTHOG_PROJECT_ID", "TEST_PROJECT_ID"];

/// The ready line, without its time.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct Ready {
    /// The URL of the service.
    url: String,
    /// The URL of the control plane.
    pub(super) test_url: String,
    /// The release.
    version: &'static str,
    pid: u32,
    /// The number from which ids, keys and tokens are drawn.
    random: u64,
    #[serde(flatten)]
    workspace: Workspace,
    /// The organizations of workspace files.
    seeded: Vec<Value>,
}

/// The ready line.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadyLine)]
pub(super) struct ReadyAt<'r> {
    #[serde(flatten)]
    #[schema(value_type = Ready)]
    ready: &'r Ready,
    /// The time of the service.
    now: Timestamp,
}

impl Ready {
    /// Describes a server at `url`.
    pub(crate) fn new(url: &str, random: u64, workspace: &Workspace) -> Self {
        Self {
            url: url.to_owned(),
            test_url: format!("{url}/_test/"),
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            random,
            workspace: workspace.clone(),
            seeded: Vec::new(),
        }
    }

    /// Returns the key of the user with an address, if the line has one.
    pub(super) fn key_of(&self, email: &str) -> Option<&str> {
        let Workspace { user, member, .. } = &self.workspace;
        let mut known = [Some(user), member.as_ref()].into_iter().flatten();
        known.find(|person| person.email == email).map(|person| person.api_key.as_str())
    }

    /// Returns the line for programs. The clock shows `now`.
    pub(crate) fn to_line(&self, now: Timestamp) -> String {
        // Texts, numbers and times have no value that JSON lacks.
        serde_json::to_string(&self.at(now)).unwrap_or_default() + "\n"
    }

    /// Returns what the line says.
    pub(super) fn at(&self, now: Timestamp) -> ReadyAt<'_> {
        ReadyAt { ready: self, now }
    }

    /// Returns the text for people.
    pub(crate) fn to_text(&self) -> String {
        let Self { url, workspace, .. } = self;
        let Workspace { organization_id, project_id, user, member } = workspace;
        let key = &user.api_key;
        let person = |name: &str, person: &Person| {
            format!("  {name:<12}  {}\n  its key       {}\n", person.email, person.api_key)
        };
        [
            format!("Steward serves a workspace for tests at {url}, in memory\n\n"),
            format!("  organization  {organization_id}\n  project       {project_id}\n"),
            person("owner", user),
            member.as_ref().map_or_else(String::new, |member| person("member", member)),
            format!("\nTry it:\n\n  curl -H \"Authorization: Bearer {key}\" "),
            format!("{url}/api/projects/{project_id}/dashboards/\n\n"),
        ]
        .concat()
    }

    /// Returns the variables of a command that tests against this server: those of Steward, and those that clients of PostHog
    /// and their tests read.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let Workspace { organization_id, project_id, user, member } = &self.workspace;
        let (organization, project) = (organization_id.to_string(), project_id.to_string());
        let named = |names: &[&'static str], value: &str| -> Vec<_> {
            names.iter().map(|name| (*name, value.to_owned())).collect()
        };
        let mut variables = [
            named(&URL_VARIABLES, &self.url),
            named(&["STEWARD_TEST_URL"], &self.test_url),
            named(&KEY_VARIABLES, &user.api_key),
            named(&ORGANIZATION_VARIABLES, &organization),
            named(&PROJECT_VARIABLES, &project),
        ]
        .concat();
        if let Some(member) = member {
            variables.extend(named(&["STEWARD_MEMBER_API_KEY"], &member.api_key));
            variables.extend(named(&["POSTHOG_TEST_USER_EMAIL"], &member.email));
        }
        variables
    }

    /// Returns which of these variables have another value in the environment, which does not reach the command.
    pub(crate) fn overridden(&self) -> Vec<&'static str> {
        let differs = |(name, value): &(&'static str, String)| {
            std::env::var_os(name).is_some_and(|set| set != *OsStr::new(value))
        };
        self.variables().iter().filter(|one| differs(one)).map(|(name, _)| *name).collect()
    }
}
