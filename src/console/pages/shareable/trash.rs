//! The trash of dashboards or insights: the question before one is moved there; by whom and when they were deleted, and
//! buttons to restore them.

use crate::console::form::ConfirmOption;
use crate::console::pages::prelude::*;

use super::{Shareable, ShareableKind, deletion_body};

#[derive(Template)]
#[template(path = "console/pages/shareable/trash.html")]
struct TrashPage {
    kind: &'static ShareableKind,
    /// The path of the list.
    base: String,
    list: ListPage<Shareable>,
    may_write: bool,
    chosen: Chosen,
    refusals: Option<Refusals>,
}

/// Restores the objects of a form, which has one `id` or several, or of a button, which sends `only`. Insights that were not
/// saved stand in `unsaved`.
pub(super) async fn restore(request: SignedIn) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let project = request.visit.project_id()?;
    let form = &request.visit.form;
    let ids: Vec<&str> = match form.value("only") {
        "" => form.values("id").take(MAX_OBJECTS).collect(),
        only => vec![only],
    };
    if ids.is_empty() {
        let detail = format!("Select the {}s first.", kind.objects.noun);
        return show(request, Error::invalid_request("invalid_form", detail).into()).await;
    }
    let mut outcome = BulkFeedback::default();
    for id in ids {
        let id = id.parse::<u64>().map_err(|_| Error::not_found())?.to_string();
        let is_saved = !form.values("unsaved").any(|unsaved| unsaved == id);
        let body = deletion_body(false, kind.is_insight.then_some(is_saved));
        let restored =
            request.api.write(&Write::new(kind.update, [&project, &id]).body(body)).await;
        outcome.add(id, restored)?;
    }
    if !outcome.refused.is_empty() {
        return show(request, outcome).await;
    }
    let trash = format!("{}trash/", kind.objects.list(&project));
    Ok(see_other(&with_notice_of(&trash, kind.restored, outcome.done.len()))?)
}

pub(super) async fn show(request: SignedIn, mut feedback: BulkFeedback) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let project = request.visit.project_id()?;
    let base = kind.objects.list(&project);
    let api_query = Query::of([("deleted", "true"), LIMIT]);
    let list = ListSpec::new(kind.objects.api(&project), &format!("{base}trash/"));
    let list = ListSpec { api_query, ..list };
    let list = list_page(&request, list).await.read::<Shareable>()?;
    let frame = feedback.on(Frame::load(&request).await?.titled("Trash"));
    let name = |id: &str| {
        let known = list.rows.iter().find(|one| one.id.to_string() == id);
        known.map_or_else(|| format!("{} {id}", kind.title), |known| kind.name(known).to_owned())
    };
    let page = TrashPage {
        kind,
        base,
        may_write: kind.may_write(&request, &project).await?,
        chosen: Chosen::of(&request),
        refusals: feedback.refusals(name),
        list,
    };
    Ok(layout::page(&frame, &page)?)
}

/// The box that deletes the insights too, and the property of the request.
const WITH_INSIGHTS: &str = "delete_insights";

/// Asks before a dashboard or an insight is moved to the trash.
pub(super) async fn delete(request: SignedIn) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let done = format!("{}&undo={}", with_notice(&object.list(), kind.deleted), object.id);
    let found = request.api.get(&object.api("")).await.read::<Shareable>();
    let found = found.map_err(|error| answered_before(&request, error, &done))?;
    let done = if found.is_unsaved() { format!("{done}&unsaved=true") } else { done };
    let refusal = kind.refusal(&request, &object.tenant, &found.rights).await?;
    let is_checked = !kind.is_insight && request.visit.form.value(WITH_INSIGHTS) == "true";
    let mut body = deletion_body(true, found.saved);
    if let Some(members) = body.as_object_mut().filter(|_| is_checked) {
        members.insert(WITH_INSIGHTS.to_owned(), true.into());
    }
    let closed = if found.is_shared { " Its public page is closed." } else { "" };
    let text = format!("{}{closed}", kind.consequences);
    let write = object.write(kind.update).body(body);
    let mut confirm = object.deletion(kind.name(&found), &text, write);
    confirm.refusal = refusal;
    if !kind.is_insight {
        confirm.option = Some(ConfirmOption {
            name: WITH_INSIGHTS,
            label: "Delete its insights too",
            hint: "Those that no other dashboard shows and that you may edit.",
            is_checked,
        });
    }
    confirm.respond(&request, &object.page(""), &done).await
}
