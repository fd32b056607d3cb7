//! One insight: what it asks, where it is shown, what the session may do with it, and actions that need no form.

use crate::console::model::insight_name;
use crate::console::pages::dashboards::dashboard_names;
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::INSIGHT;
use crate::resources::sharing::page::Definition;

pub(super) fn routes(pages: &mut Pages<'_>) {
    let open = |request| show(request, Feedback::default());
    pages.get("/console/projects/{project_id}/insights/{id}/", open);
    pages.post("/console/projects/{project_id}/insights/{id}/favorite/", favorite);
    pages.post("/console/projects/{project_id}/insights/{id}/restore/", restore);
}

/// An insight, as the API describes it.
#[derive(Deserialize)]
struct Insight {
    short_id: String,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    favorited: bool,
    saved: bool,
    query: Option<Map<String, Value>>,
    filters: Map<String, Value>,
    dashboards: Vec<u64>,
    created_at: String,
    created_by: Option<Person>,
    last_modified_at: String,
    #[serde(flatten)]
    rights: Rights,
}

impl Insight {
    fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default().trim()
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/one.html")]
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

/// Shows the insight, and why an action was refused.
async fn show(request: SignedIn, feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let path = object.api("");
    let insight: Insight = request.api.get(&path).await?;
    let frame = object.frame(&request).await?.titled(insight.name().to_owned());
    let refusal = INSIGHT.refusal(&request, &object.tenant, &insight.rights).await?;
    let page = InsightPage {
        named: dashboard_names(&request, &object.tenant, &insight.dashboards).await?,
        dashboards: format!("/console/projects/{}/dashboards/", object.tenant),
        definition: Definition::of(insight.query.as_ref().unwrap_or(&insight.filters)),
        may_edit: refusal.is_none(),
        may_see_sharing: request.api.may(&object.operation("insights_sharing_retrieve")).await?,
        may_see_access: request.api.may(&object.operation("insights_access_list")).await?,
        command: Command::get(&request.visit, &path),
        object,
        insight,
    };
    Ok(layout::page(&feedback.on(frame), &page)?)
}

async fn favorite(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let found: Insight = request.api.get(&object.api("")).await?;
    let favorited = request.visit.form.value("favorited") == "true";
    // The API sets `saved` to true if it is absent.
    let body = json!({ "favorited": favorited, "saved": found.saved });
    let done = with_notice(&object.page(""), "insight-saved");
    change(request, object, body, &done).await
}

async fn restore(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let done = with_notice(&object.page(""), "insight-restored");
    // The API sets `saved` to true if it is absent.
    let saved = request.visit.form.values("unsaved").all(|id| id != object.id);
    let body = json!({ "deleted": false, "saved": saved });
    request.api.write(&object.write(INSIGHT.update).body(body)).await?;
    Ok(see_other(&done)?)
}

/// Sends a change. A refused one shows the insight with the reason.
async fn change(request: SignedIn, object: ObjectPath, body: Value, done: &str) -> PageResult {
    let write = object.write(INSIGHT.update).body(body);
    match request.api.attempt(&write).await? {
        Ok(_) => Ok(see_other(done)?),
        Err(error) if error.status() == 404 => Err(error.into()),
        Err(error) => show(request, error.into()).await,
    }
}
