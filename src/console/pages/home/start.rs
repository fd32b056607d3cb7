//! The start page: pinned dashboards, the latest changes, open invites, and keys that expire soon.

use askama::Template;

use crate::console::model::{Dashboard, Invite, Key, List};
use crate::console::pages::activity::Latest;
use crate::console::visit::SignedIn;
use crate::error::Result;
use crate::time::Timestamp;

use super::steps::Steps;

/// The number of pinned dashboards.
const MAX_PINNED: usize = 12;
/// The number of invites.
const MAX_INVITES: usize = 5;
/// The seconds before its expiry in which a key is shown.
const SOON: i64 = 14 * 24 * 60 * 60;

impl Key {
    fn expires_soon(&self, now: Timestamp) -> bool {
        let end = self.expires_at.as_deref().and_then(Timestamp::parse);
        end.is_some_and(|end| now < end && end <= now.plus_seconds(SOON))
    }
}

#[derive(Template)]
#[template(path = "console/pages/home/page.html")]
pub(super) struct StartPage {
    steps: Option<Steps>,
    /// The path of the dashboards.
    base: String,
    /// Absent if the session may not read dashboards.
    pinned: Option<Vec<Dashboard>>,
    latest: Option<Latest>,
    /// The keys that expire soon.
    keys: Vec<Key>,
    invites: Vec<Invite>,
    /// The path of all invites.
    all_invites: String,
}

impl StartPage {
    /// Loads what the session may see.
    pub(super) async fn load(
        request: &SignedIn,
        project: &str,
        organization: Option<&str>,
    ) -> Result<Self> {
        let api = &request.api;
        let path = format!("/api/projects/{project}/dashboards/?pinned=true&limit={MAX_PINNED}");
        let pinned = api.get_if_allowed::<List<Dashboard>>(&path).await?;
        let keys = api.get_if_allowed::<Vec<Key>>("/api/personal_api_keys/").await?;
        let mut keys = keys.unwrap_or_default();
        let invites = match organization {
            Some(id) => {
                let path = format!("/api/organizations/{id}/invites/?limit={MAX_INVITES}");
                api.get_if_allowed::<List<Invite>>(&path).await?
            }
            None => None,
        };
        let invited = invites.as_ref().map_or(0, |found| found.count);
        let steps = match organization {
            Some(id) => Steps::load(request, id, invited, keys.len()).await?,
            None => None,
        };
        let now = request.visit.app.now();
        keys.retain(|key| key.expires_soon(now));
        Ok(Self {
            steps,
            base: format!("/console/projects/{project}/dashboards/"),
            pinned: pinned.map(|found| found.results),
            latest: Latest::load(request, project, organization).await?,
            keys,
            invites: invites.map_or(Vec::new(), |found| found.results),
            all_invites: organization
                .map_or(String::new(), |id| format!("/console/organizations/{id}/invites/")),
        })
    }
}
