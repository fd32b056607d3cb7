//! The access of each member to a dashboard or an insight with the rule that decides it; the rules, and the restriction of a
//! dashboard.

mod forms;
mod members;
mod restriction;

use askama::Template;
use axum::http::{Method, StatusCode};

use crate::console::assets::icon;
use crate::console::form::{Form, Outcome};
use crate::console::headers::see_other;
use crate::console::layout::{self, Command, with_notice};
use crate::console::pages::object::ObjectPath;
use crate::console::pages::rules::{RuleTable, Rules, Subjects};
use crate::console::paging::{ListPage, Paging, list_page};
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

use super::{DASHBOARD, INSIGHT, Shareable, ShareableKind};
use forms::Purpose;
use members::{Filters, MemberAccess};
use restriction::Restriction;

const ACCESS: [(&str, &ShareableKind); 2] = [
    ("/console/projects/{project_id}/dashboards/{id}/access/", DASHBOARD),
    ("/console/projects/{project_id}/insights/{id}/access/", INSIGHT),
];

pub(super) fn routes(pages: &mut Pages<'_>) {
    for (path, kind) in ACCESS {
        pages.signed_in(Method::GET, path, move |request| page(request, kind));
        pages.signed_in(Method::POST, path, move |request| apply(request, kind));
    }
}

#[derive(Template)]
#[template(path = "console/pages/shareable/access/page.html")]
struct AccessPage {
    kind: &'static ShareableKind,
    object: ObjectPath,
    name: String,
    filters: Filters,
    members: Vec<MemberAccess>,
    paging: Paging,
    chosen: Option<MemberAccess>,
    rules: RuleTable,
    /// The form that sets a rule, if the session may.
    rule: Option<Form>,
    subjects: Subjects,
    /// The restriction of a dashboard.
    restriction: Option<Restriction>,
    command: Command,
}

/// The feedback of the page on a form that was sent.
#[derive(Default)]
struct Feedback {
    /// The form that has to be corrected.
    form: Option<(Purpose, Form)>,
    /// Why the request of a button was refused.
    refusal: Option<Error>,
}

impl Feedback {
    fn status(&self) -> StatusCode {
        self.form.as_ref().map_or(StatusCode::OK, |(_, form)| form.status())
    }

    /// Returns the form that was sent, if it was this one.
    fn take(&mut self, purpose: Purpose) -> Option<Form> {
        self.form.take_if(|(of, _)| *of == purpose).map(|(_, form)| form)
    }
}

async fn page(request: SignedIn, kind: &'static ShareableKind) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    show(&request, kind, object, Feedback::default()).await
}

async fn apply(request: SignedIn, kind: &'static ShareableKind) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let page = object.page("access/");
    if let Some(purpose) = Purpose::of(&request.visit, kind) {
        return match purpose.sent(&request, kind, &object)?.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&page, "access-saved"))?),
            Outcome::Again(form) => {
                let form = Some((purpose, *form));
                show(&request, kind, object, Feedback { form, refusal: None }).await
            }
        };
    }
    let write = forms::removal(&request.visit.form, kind, &object)?;
    match request.api.attempt(&write).await? {
        Ok(_) => {
            let is_rule = !request.visit.form.has("collaborator");
            let notice = if is_rule { "rule-removed" } else { "collaborator-removed" };
            Ok(see_other(&with_notice(&page, notice))?)
        }
        Err(refusal) => {
            let feedback = Feedback { form: None, refusal: Some(refusal) };
            show(&request, kind, object, feedback).await
        }
    }
}

async fn show(
    request: &SignedIn,
    kind: &'static ShareableKind,
    object: ObjectPath,
    mut feedback: Feedback,
) -> PageResult {
    let filters = Filters::of(&request.visit);
    let status = feedback.status();
    let of_page = object.page("access/");
    let ListPage { rows: members, paging, command } =
        list_page(request, filters.list(&object)).await?;
    let chosen = filters.chosen(request, &object).await?;
    let rules: Rules = request.api.get(&object.api("access_controls/")).await?;
    let mut subjects = Subjects::load(request, &object.tenant, &of_page).await?;
    let mut rule = None;
    let may_rule = request.api.may(&object.operation(kind.set_rule)).await?;
    if rules.user_can_edit_access_levels && may_rule {
        let form = match feedback.take(Purpose::Rule) {
            Some(form) => form,
            None => forms::rule(request, kind, &object, chosen.as_ref(), &mut subjects)?,
        };
        rule = Some(subjects.offer_in(form.with_id("rule")));
    }
    // A session that manages the object may be unable to view it.
    let found = match request.api.get_versioned(&object.api("")).await {
        Ok(found) => Some((found.read::<Shareable>()?, found.version)),
        Err(error) if matches!(error.status(), 403 | 404) => None,
        Err(error) => return Err(error.into()),
    };
    let name = found.as_ref().map(|(found, _)| kind.name(found).to_owned());
    let name = name.unwrap_or_else(|| format!("this {}", kind.objects.noun));
    let mut restriction = None;
    if !kind.is_insight {
        let shown = Restriction::load(request, &object, &filters, found, &mut feedback).await?;
        restriction = Some(shown);
    }
    let frame = object.frame(request).await?;
    let frame = frame.titled(format!("Who can see {name}")).with_refusal(feedback.refusal);
    let action = rule.as_ref().map(|_| of_page.clone());
    let url = |offset, at| format!("{}#rules", filters.beside(offset, at).url(&of_page));
    let page = AccessPage {
        kind,
        rules: RuleTable::new(&rules.access_controls, &subjects, &request.visit, url, action)?,
        paging,
        object,
        name,
        filters,
        members,
        chosen,
        rule,
        subjects,
        restriction,
        command,
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
