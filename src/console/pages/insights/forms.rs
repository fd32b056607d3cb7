//! The forms that create and edit an insight.

use crate::console::pages::dashboards::dashboard_choices;
use crate::console::pages::form_page::FormPage;
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::INSIGHT;

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

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form("/console/projects/{project_id}/insights/new/", new, create);
    pages.form("/console/projects/{project_id}/insights/{id}/edit/", edit, save);
}

async fn new(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    if !INSIGHT.may_create(&request, &project).await? {
        return Err(Error::denied("You may not create insights in this project.").into());
    }
    let operation = Operation::new(INSIGHT.create, [&project]);
    let form = NEW_FORM.empty(&request, &operation, &action(&project))?;
    show(&request, &project, "New insight", form.with_value("saved", &json!(true)), &[]).await
}

fn action(project: &str) -> String {
    format!("{}new/", INSIGHTS.list(project))
}

async fn create(request: SignedIn) -> PageResult {
    let project = request.visit.project_id()?;
    let operation = Operation::new(INSIGHT.create, [&project]);
    match NEW_FORM.sent(&request, operation, &action(&project))?.send(&request).await? {
        Outcome::Done(insight) => finish(&INSIGHTS.page_of(&project, &insight), "insight-created"),
        Outcome::Again(form) => show(&request, &project, "New insight", *form, &[]).await,
    }
}

async fn edit(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let insight = request.api.get_versioned(&object.api("")).await?;
    let on = dashboards_of(&insight.body);
    let action = object.page("edit/");
    let form = EDIT_FORM.filled(&request, &object.operation(INSIGHT.update), &action, &insight)?;
    let refusal = INSIGHT.refusal_of(&request, &object, &insight.body).await?;
    let form = form.refused_for(refusal);
    show(&request, &object.tenant, "Edit the insight", form, &on).await
}

async fn save(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let mut sent =
        EDIT_FORM.sent(&request, object.operation(INSIGHT.update), &object.page("edit/"))?;
    // The API sets `saved` to true if it is absent.
    let saved = sent.text("saved") == "true";
    if !sent.body.is_empty() {
        sent.body.insert("saved".to_owned(), saved.into());
    }
    match sent.send(&request).await? {
        Outcome::Done(_) => finish(&object.page(""), "insight-saved"),
        Outcome::Again(form) => {
            let insight: Value = request.api.get(&object.api("")).await?;
            let on = dashboards_of(&insight);
            show(&request, &object.tenant, "Edit the insight", *form, &on).await
        }
    }
}

fn dashboards_of(insight: &Value) -> Vec<u64> {
    let ids = insight.get("dashboards").and_then(Value::as_array);
    ids.into_iter().flatten().filter_map(Value::as_u64).collect()
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

async fn show(
    request: &SignedIn,
    project: &str,
    title: &'static str,
    form: Form,
    on: &[u64],
) -> PageResult {
    let form = offer_dashboards(request, project, form, on).await?;
    let page = FormPage::new(title, form).below(INSIGHTS.list(project), "Insights");
    page.show(request).await
}
