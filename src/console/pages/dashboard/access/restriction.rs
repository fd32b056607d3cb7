//! The restriction of a dashboard: who may edit it, and who decides that.

use askama::Template;
use serde::Deserialize;
use serde_json::json;

use crate::console::api::Versioned;
use crate::console::failure::Failure;
use crate::console::form::Form;
use crate::console::levels;
use crate::console::pages::object::ObjectPath;
use crate::console::pages::shareable::{DASHBOARD, Rights};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::Feedback;
use super::collaborators::Collaborators;
use super::forms::{self, Purpose, UPDATE};
use super::members::Filters;

/// The facts about the dashboard that the page shows.
#[derive(Deserialize)]
pub(super) struct Dashboard {
    name: Option<String>,
    restriction_level: u8,
    #[serde(flatten)]
    rights: Rights,
}

impl Dashboard {
    /// Reads the dashboard, with its restriction for the form. A session that manages the dashboard may be unable to view it.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(
        request: &SignedIn,
        object: &ObjectPath,
    ) -> Result<Option<(Self, Versioned)>> {
        let found = match request.api.get_versioned(&object.api("")).await {
            Ok(found) => found,
            Err(error) if error.status() == 403 => return Ok(None),
            Err(error) => return Err(error),
        };
        let dashboard: Self = found.read()?;
        let body = json!({ "restriction_level": dashboard.restriction_level });
        Ok(Some((dashboard, Versioned { body, version: found.version })))
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    const fn is_restricted(&self) -> bool {
        levels::is_restricted(self.restriction_level)
    }

    fn may_edit(&self) -> bool {
        self.rights.may_edit()
    }

    /// Returns why the session cannot change the restriction, or `None` if it can. The request that asks changes nothing.
    ///
    /// # Errors
    /// As [`dry_run`](crate::console::api::Api::dry_run).
    async fn restriction_refusal(
        &self,
        request: &SignedIn,
        object: &ObjectPath,
    ) -> Result<Option<Error>> {
        // Every editor may send the level that the dashboard has.
        let other =
            if self.is_restricted() { levels::EVERYONE_EDITS } else { levels::COLLABORATORS_EDIT };
        let change = json!({ "restriction_level": other });
        request.api.dry_run(&object.write(UPDATE).body(change)).await
    }
}

/// The restriction on the page, with the collaborators.
#[derive(Template)]
#[template(path = "console/pages/dashboard/access/restriction.html")]
pub(super) struct Restriction {
    is_restricted: bool,
    /// The form that changes it, if the session may.
    form: Option<Form>,
    /// The collaborators, if the dashboard is restricted.
    collaborators: Option<Collaborators>,
}

impl Restriction {
    /// Describes the restriction of a dashboard, as far as the session may see it.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(
        request: &SignedIn,
        object: &ObjectPath,
        filters: &Filters,
        found: Option<(Dashboard, Versioned)>,
        feedback: &mut Feedback,
    ) -> Result<Self, Failure> {
        let Some((dashboard, version)) = found else {
            return Ok(Self { is_restricted: false, form: None, collaborators: None });
        };
        let refusal = dashboard.restriction_refusal(request, object).await?;
        let mut form = None;
        if refusal.as_ref().is_none_or(|refusal| refusal.status() == 503) {
            let sent = feedback.take(Purpose::Restriction);
            let shown = sent.map_or_else(|| forms::restriction(request, object, &version), Ok)?;
            let reason = refusal.map(|refusal| refusal.detail().to_owned());
            form = Some(shown.with_id("restriction").refused_for(reason));
        }
        let is_restricted = dashboard.is_restricted();
        let mut collaborators = None;
        if is_restricted {
            let may_change =
                dashboard.may_edit() && DASHBOARD.may_write(request, &object.tenant).await?;
            let sent = feedback.take(Purpose::Collaborator);
            let found = Collaborators::load(request, object, filters, may_change, sent).await?;
            collaborators = Some(found);
        }
        Ok(Self { is_restricted, form, collaborators })
    }
}
