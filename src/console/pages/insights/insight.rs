//! One insight: what it asks, where it is shown, and what the session may do with it.

use askama::Template;
use axum::http::Method;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::assets::icon;
use crate::console::layout::{self, Command};
use crate::console::pages::dashboard::dashboard_names;
use crate::console::pages::insight_name;
use crate::console::pages::object::{INSIGHTS, ObjectPath};
use crate::console::pages::shareable::{INSIGHT, Rights};
use crate::console::person::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};
use crate::resources::sharing::page::Definition;

const PAGE: &str = "/console/projects/{project_id}/insights/{id}/";

/// Adds the page to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, PAGE, page);
}

/// An insight, as the API describes it.
#[derive(Deserialize)]
pub(super) struct Insight {
    short_id: String,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    pub(super) favorited: bool,
    pub(super) saved: bool,
    query: Option<Map<String, Value>>,
    filters: Map<String, Value>,
    dashboards: Vec<u64>,
    created_at: String,
    created_by: Option<Person>,
    last_modified_at: String,
    #[serde(flatten)]
    pub(super) rights: Rights,
}

impl Insight {
    pub(super) fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default().trim()
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/insight.html")]
struct InsightPage {
    object: ObjectPath,
    dashboards: String,
    /// The ids and names of the dashboards that show the insight.
    named: Vec<(u64, String)>,
    insight: Insight,
    definition: Definition,
    may_edit: bool,
    may_see_sharing: bool,
    may_see_access: bool,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    Ok(show(&request, object, None).await?)
}

/// Shows the insight, and why an action was refused.
pub(super) async fn show(
    request: &SignedIn,
    object: ObjectPath,
    refusal: Option<Error>,
) -> Result<Response> {
    let path = object.api("");
    let insight: Insight = request.api.get(&path).await?;
    let frame = object.frame(request).await?;
    let frame = frame.titled(insight.name().to_owned()).with_refusal(refusal);
    let refusal = INSIGHT.refusal(request, &object.tenant, &insight.rights).await?;
    let page = InsightPage {
        named: dashboard_names(request, &object.tenant, &insight.dashboards).await?,
        dashboards: format!("/console/projects/{}/dashboards/", object.tenant),
        definition: Definition::of(insight.query.as_ref().unwrap_or(&insight.filters)),
        may_edit: refusal.is_none(),
        may_see_sharing: request.api.may(&object.operation("insights_sharing_retrieve")).await?,
        may_see_access: request.api.may(&object.operation("insights_access_list")).await?,
        command: Command::get(&request.visit, &path),
        object,
        insight,
    };
    layout::page(&frame, &page)
}
