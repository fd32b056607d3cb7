//! Deleted insights: by whom, when, and buttons to restore them.

use askama::Template;
use axum::http::Method;
use serde::Deserialize;
use serde_json::json;

use crate::console::layout::{self, Command, Frame, In, Section, with_notice_of};
use crate::console::list::List;
use crate::console::operation::{Operation, Write};
use crate::console::pages::bulk::{BulkFeedback, BulkOutcome, MAX_OBJECTS, Refusals};
use crate::console::pages::chosen::Chosen;
use crate::console::pages::dashboard::Rights;
use crate::console::pages::object::INSIGHTS;
use crate::console::pages::{excerpt, insight_name, project_id};
use crate::console::paging::Paging;
use crate::console::person::Person;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::{Error, Result};

use super::rights::UPDATE;

const TRASH: &str = "/console/projects/{project_id}/insights/trash/";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, TRASH, page);
    pages.signed_in(Method::POST, TRASH, restore);
}

/// A deleted insight.
#[derive(Deserialize)]
struct Insight {
    id: u64,
    name: Option<String>,
    derived_name: Option<String>,
    description: Option<String>,
    saved: bool,
    deleted_at: String,
    deleted_by: Option<Person>,
    #[serde(flatten)]
    rights: Rights,
}

impl Insight {
    fn name(&self) -> &str {
        insight_name(self.name.as_deref(), self.derived_name.as_deref())
    }

    fn deleter(&self) -> String {
        self.deleted_by.as_ref().map_or(String::new(), Person::name)
    }
}

#[derive(Template)]
#[template(path = "console/pages/insights/trash/page.html")]
struct TrashPage {
    base: String,
    insights: Vec<Insight>,
    may_write: bool,
    paging: Paging,
    chosen: Chosen,
    refusals: Option<Refusals>,
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, BulkFeedback::default()).await
}

async fn restore(request: SignedIn) -> PageResult {
    let project = project_id(&request.visit)?;
    match restore_each(&request, &project).await {
        Ok(outcome) if outcome.has_refusals() => show(&request, outcome.into()).await,
        Ok(outcome) => {
            let trash = format!("{}trash/", INSIGHTS.list(&project));
            let count = outcome.done.len();
            Ok(see_other(&with_notice_of(&trash, "insight-restored", count))?)
        }
        Err(error) if error.status() == 400 => show(&request, error.into()).await,
        Err(error) => Err(error.into()),
    }
}

/// Restores the insights of a form, which has one `id` or several, or of a button, which sends `only`. Those that were not
/// saved stand in `unsaved`: the API sets `saved` to true if it is absent.
async fn restore_each(request: &SignedIn, project: &str) -> Result<BulkOutcome> {
    let form = &request.visit.form;
    let ids: Vec<&str> = match form.value("only") {
        "" => form.values("id").take(MAX_OBJECTS).collect(),
        only => vec![only],
    };
    if ids.is_empty() {
        return Err(Error::invalid_request("invalid_form", "Select the insights first."));
    }
    let mut outcome = BulkOutcome::default();
    for id in ids {
        let id = id.parse::<u64>().map_err(|_| Error::not_found())?.to_string();
        let saved = !form.values("unsaved").any(|unsaved| unsaved == id);
        let body = json!({ "deleted": false, "saved": saved });
        let restored = request.api.write(&Write::new(UPDATE, [project, &id]).body(body)).await;
        outcome.add(id, restored)?;
    }
    Ok(outcome)
}

async fn show(request: &SignedIn, feedback: BulkFeedback) -> PageResult {
    let project = project_id(&request.visit)?;
    let offset = Paging::offset(&request.visit);
    let query = format!("deleted=true&limit={MAX_OBJECTS}&offset={offset}");
    let path = format!("/api/projects/{project}/insights/?{query}");
    let found: List<Insight> = request.api.get(&path).await?;
    let base = INSIGHTS.list(&project);
    let url = |offset| format!("{base}trash/?offset={offset}");
    let page_size = MAX_OBJECTS as u64;
    let paging = Paging::new(&request.visit, found.results.len(), found.count, page_size, url)?;
    let frame = Frame::load(request, Section::Insights, In::Project(&project)).await?;
    let frame = frame.titled("Trash").with_refusal(feedback.refusal);
    let name = |id: &str| {
        let known = found.results.iter().find(|one| one.id.to_string() == id);
        known.map_or_else(|| format!("Insight {id}"), |known| known.name().to_owned())
    };
    let page = TrashPage {
        base,
        may_write: request.api.may(&Operation::new(UPDATE, [&project, "1"])).await?,
        paging,
        chosen: Chosen::of(request),
        refusals: feedback.outcome.refusals(name),
        insights: found.results,
        command: Command::get(&request.visit, &path),
    };
    Ok(layout::page_with_status(&frame, &page, feedback.outcome.status())?)
}
