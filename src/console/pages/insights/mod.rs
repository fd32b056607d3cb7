//! The insights of a project: their list, with its filters; what one asks, where it is shown, and what the session may do with it;
//! the forms that create and edit one.

use crate::console::model::insight_name;
use crate::resources::sharing::page::Definition;

use super::dashboards::{dashboard_choices, dashboard_names};
use super::people::People;
use super::prelude::*;
use super::shareable::INSIGHT;

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.get("/console/projects/{project_id}/insights/", &list);
    pages.form("/console/projects/{project_id}/insights/new/", &new);
    pages.form("/console/projects/{project_id}/insights/{id}/edit/", &edit);
    pages.get("/console/projects/{project_id}/insights/{id}/", &|request| {
        show(request, Feedback::default())
    });
    pages.post("/console/projects/{project_id}/insights/{id}/favorite/", &favorite);
    pages.post("/console/projects/{project_id}/insights/{id}/restore/", &restore);
}

/// An insight in the list.
#[derive(Deserialize)]
struct ListedInsight {
    id: u64,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    tags: Vec<String>,
    favorited: bool,
    saved: bool,
    dashboards: Vec<u64>,
    created_by: Option<Person>,
    last_modified_at: String,
}

impl ListedInsight {
    fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/list.html")]
struct InsightsPage {
    base: String,
    filters: ListFilters,
    people: People,
    list: ListPage<ListedInsight>,
    may_create: bool,
}

impl InsightsPage {
    /// Whether one of the filters is set that are folded away.
    fn more_are_set(&self) -> bool {
        FILTERS.iter().skip(7).any(|name| !self.filters.value(name).is_empty())
    }
}

/// Returns the form that restores the insight that was just deleted, and leaves it unsaved if it was.
fn undo(request: &SignedIn, base: &str) -> Option<Undo> {
    let id = request.visit.query("undo").parse::<u64>().ok()?;
    let is_unsaved = !request.visit.query("unsaved").is_empty();
    let fields = is_unsaved.then(|| ("unsaved", id.to_string())).into_iter().collect();
    Some(Undo { action: format!("{base}{id}/restore/"), fields })
}

async fn list(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let base = INSIGHTS.list(&project);
    let filters = filters(&request.visit);
    let list = ListSpec {
        api: INSIGHTS.api(&project),
        api_query: api_query(&filters),
        page: base.clone(),
        page_query: filters.to_query(),
    };
    let list = list_page(&request, list).await.read()?;
    let frame = Frame::load(&request).await?;
    let frame = frame.titled("Insights").with_undo(undo(&request, &base));
    let page = InsightsPage {
        people: People::load(&request.api, frame.organization()).await?,
        may_create: INSIGHT.may_create(&request, &project).await?,
        list,
        base,
        filters,
    };
    Ok(layout::page(&frame, &page)?)
}

/// The maximum length of a filter, in characters.
const MAX_LENGTH: usize = 200;

/// The names of the filters, which are those of the API. Only `created_by=@me` is `user` there.
const FILTERS: [&str; 13] = [
    "search",
    "tags",
    "created_by",
    "favorited",
    "saved",
    "insight",
    "order",
    "date_from",
    "date_to",
    "created_date_from",
    "created_date_to",
    "dashboards",
    "short_id",
];

const FAVORITES: Choices = &[("", "Favorites or not"), ("true", "Favorites")];
const SAVED: Choices =
    &[("", "Saved or not"), ("true", "Saved, or on a dashboard"), ("false", "Not saved")];
const KINDS: Choices = &[
    ("", "Any kind"),
    ("TRENDS", "Trends"),
    ("FUNNELS", "Funnels"),
    ("RETENTION", "Retention"),
    ("PATHS", "Paths"),
    ("STICKINESS", "Stickiness"),
    ("LIFECYCLE", "Lifecycle"),
    ("SQL", "SQL"),
    ("JSON", "Other"),
];
const ORDERS: Choices = &[
    ("", "In order of creation"),
    ("-last_modified_at", "Last modified first"),
    ("last_modified_at", "Last modified last"),
    ("-created_at", "Newest first"),
    ("name", "By name"),
    ("-name", "By name, descending"),
    ("-updated_at", "Updated first"),
    ("updated_at", "Updated last"),
    ("created_by", "By creator"),
    ("-created_by", "By creator, descending"),
];

/// Reads the filters of the list.
fn filters(visit: &Visit) -> ListFilters {
    ListFilters::of(visit, &FILTERS, |name, text| {
        let text: String = text.chars().take(MAX_LENGTH).collect();
        let is_known = match name {
            "created_by" => text == "@me" || text.parse::<u64>().is_ok(),
            "dashboards" => text.parse::<u64>().is_ok(),
            "favorited" => is_one_of(FAVORITES, &text),
            "saved" => is_one_of(SAVED, &text),
            "insight" => is_one_of(KINDS, &text),
            "order" => is_one_of(ORDERS, &text),
            _ => true,
        };
        if is_known { text } else { String::new() }
    })
}

/// Returns the query of the API's list.
fn api_query(filters: &ListFilters) -> Query {
    let fields = filters.fields().map(|(name, value)| match (name, value) {
        ("created_by", "@me") => ("user", value),
        field => field,
    });
    Query::of([("basic", "true"), LIMIT]).and(fields)
}

/// An insight, as the API describes it.
#[derive(Deserialize)]
struct Insight {
    #[serde(flatten)]
    listed: ListedInsight,
    short_id: String,
    query: Option<Map<String, Value>>,
    filters: Map<String, Value>,
    created_at: String,
    #[serde(flatten)]
    rights: Rights,
}

#[derive(Template)]
#[template(path = "console/pages/insights/one.html")]
struct InsightPage {
    object: ObjectPath,
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
    let insight: Insight = request.api.get(&path).await.read()?;
    let refusal = INSIGHT.refusal(&request, &object.tenant, &insight.rights).await?;
    let page = InsightPage {
        named: dashboard_names(&request, &object.tenant, &insight.listed.dashboards).await?,
        definition: Definition::of(insight.query.as_ref().unwrap_or(&insight.filters)),
        may_edit: refusal.is_none(),
        may_see_sharing: request.api.may(&object.operation("insights_sharing_retrieve")).await?,
        may_see_access: request.api.may(&object.operation("insights_access_list")).await?,
        command: Command::get(&request.visit, &path),
        object,
        insight,
    };
    feedback.show(&request, page.insight.listed.name(), &page).await
}

async fn favorite(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let found: Insight = request.api.get(&object.api("")).await.read()?;
    let favorited = request.visit.form.value("favorited") == "true";
    // The API sets `saved` to true if it is absent.
    let body = json!({ "favorited": favorited, "saved": found.listed.saved });
    let write = object.write(INSIGHT.update).body(body);
    press(request, write, &object.page(""), "insight-saved", &show).await
}

async fn restore(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    // The API sets `saved` to true if it is absent.
    let saved = request.visit.form.values("unsaved").all(|id| id != object.id);
    let body = json!({ "deleted": false, "saved": saved });
    request.api.write(&object.write(INSIGHT.update).body(body)).await?;
    finish(&object.page(""), "insight-restored")
}

const INPUTS: &[Input] = &[
    Input::new("name").label("Name").required(),
    Input::new("description").label("Description").shape(Shape::Area),
    Input::new("tags").label("Tags"),
    Input::new("favorited").label("Favorite").hint("One flag for all users."),
    Input::new("saved").label("Saved").hint("Lists may leave out insights that are not saved."),
    Input::new("query")
        .label("Query")
        .hint("A JSON object. Steward stores it and does not run it."),
    Input::new("dashboards").label("Dashboards").hint("Those that show the insight."),
    Input::new("derived_name")
        .heading("Other")
        .label("Derived name")
        .hint("Shown if the name is empty."),
    Input::new("filters")
        .label("Legacy filters")
        .hint("A JSON object. It is of use only without a query."),
    Input::new("order").label("Order").hint("A number to sort by."),
];

const NEW_FORM: FormSpec = FormSpec::create("Create insight", INPUTS);
const EDIT_FORM: FormSpec = FormSpec::change("Save", INPUTS);

async fn new(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let create = Operation::new(INSIGHT.create, [&project]);
    let list = INSIGHTS.list(&project);
    let action = format!("{list}new/");
    let form = if request.visit.sends_form() {
        match NEW_FORM.sent(&request, create, &action)?.send(&request).await? {
            Ok(insight) => return finish(&page_of(&list, &insight), "insight-created"),
            Err(form) => *form,
        }
    } else if INSIGHT.may_create(&request, &project).await? {
        NEW_FORM.empty(&request, &create, &action)?.with_value("saved", &json!(true))
    } else {
        return Err(Error::denied("You may not create insights in this project.").into());
    };
    let form = offer_dashboards(&request, &project, form, &[]).await?;
    let page = FormPage::new("New insight", form).below(list, "Insights");
    page.show(&request).await
}

async fn edit(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let (update, action) = (object.operation(INSIGHT.update), object.page("edit/"));
    let (form, insight) = if request.visit.sends_form() {
        let mut sent = EDIT_FORM.sent(&request, update, &action)?;
        // The API sets `saved` to true if it is absent.
        let saved = sent.text("saved") == "true";
        if !sent.body.is_empty() {
            sent.body.insert("saved".to_owned(), saved.into());
        }
        match sent.send(&request).await? {
            Ok(_) => return finish(&object.page(""), "insight-saved"),
            Err(form) => (*form, request.api.get(&object.api("")).await.read()?),
        }
    } else {
        let insight = request.api.get_versioned(&object.api("")).await?;
        let form = EDIT_FORM.filled(&request, &update, &action, &insight)?;
        let refusal = INSIGHT.refusal_of(&request, &object, &insight.body).await?;
        (form.refused_for(refusal), insight.body)
    };
    let on = insight.get("dashboards").and_then(Value::as_array).into_iter().flatten();
    let on: Vec<u64> = on.filter_map(Value::as_u64).collect();
    let form = offer_dashboards(&request, &object.tenant, form, &on).await?;
    let page = FormPage::new("Edit the insight", form).below(object.list(), "Insights");
    page.show(&request).await
}

/// Offers the dashboards that may show the insight: those that the session may edit, and those that show it already. With too
/// many dashboards, the field takes their ids.
async fn offer_dashboards(
    request: &SignedIn,
    project: &str,
    form: Form,
    on: &[u64],
) -> Result<Form> {
    let found = dashboard_choices(request, project).await?.unwrap_or_default();
    if !found.is_complete() {
        return Ok(form.with_hint("dashboards", "The IDs of those that show the insight."));
    }
    let offered = found.results.iter().filter(|one| one.rights.may_edit() || on.contains(&one.id));
    let offered = offered.map(|one| {
        let note = if one.rights.may_edit() { "" } else { " (you may not edit it)" };
        Choice::new(one.id, format!("{}{note}", one.name()))
    });
    Ok(form.with_choices("dashboards", offered.collect()))
}
