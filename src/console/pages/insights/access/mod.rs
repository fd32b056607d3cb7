//! Who may do what with an insight and because of which rule; its rules.

use askama::Template;
use axum::http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;

use crate::console::assets::icon;
use crate::console::form::{Form, Outcome};
use crate::console::layout::{self, Command, with_notice};
use crate::console::pages::dashboard::access::forms::for_member;
use crate::console::pages::dashboard::access::members::{self, Filters, MemberAccess};
use crate::console::pages::insight_name;
use crate::console::pages::object::{INSIGHTS, ObjectPath};
use crate::console::pages::rules::{
    RULE_FORM, RuleTable, Rules, Subjects, removed_rule, with_subjects,
};
use crate::console::paging::Paging;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::SignedIn;
use crate::error::Error;

const ACCESS: &str = "/console/projects/{project_id}/insights/{id}/access/";

/// The operation that sets a rule.
const RULE: &str = "insights_access_controls_update";

/// Adds the page and its form to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, ACCESS, page);
    pages.signed_in(Method::POST, ACCESS, apply);
}

#[derive(Deserialize)]
struct Insight {
    name: Option<String>,
    derived_name: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/insights/access/page.html")]
struct AccessPage {
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
    command: Command,
}

async fn page(request: SignedIn) -> PageResult {
    show(&request, ObjectPath::of(&request.visit, INSIGHTS)?, None, None).await
}

/// Sets the rule of the form, or removes that of a button.
async fn apply(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, INSIGHTS)?;
    let path = object.page("access/");
    if request.visit.query("form") == "rule" {
        let sent = RULE_FORM.sent(&request, object.operation(RULE), &action(&object))?;
        return match sent.send(&request).await? {
            Outcome::Done(_) => Ok(see_other(&with_notice(&path, "access-saved"))?),
            Outcome::Again(form) => show(&request, object, Some(*form), None).await,
        };
    }
    if !request.visit.form.has("rule") {
        return Err(Error::not_found().into());
    }
    let body = Value::Object(removed_rule(request.visit.form.value("rule")));
    match request.api.attempt(&object.write(RULE).body(body)).await? {
        Ok(_) => Ok(see_other(&with_notice(&path, "rule-removed"))?),
        Err(refusal) => show(&request, object, None, Some(refusal)).await,
    }
}

/// Returns where the browser sends the form.
fn action(object: &ObjectPath) -> String {
    object.page("access/?form=rule")
}

/// Shows the page with a form that was sent, and why a button was refused.
async fn show(
    request: &SignedIn,
    object: ObjectPath,
    sent: Option<Form>,
    refusal: Option<Error>,
) -> PageResult {
    let api = &request.api;
    let filters = Filters::of(&request.visit);
    let status = sent.as_ref().map_or(StatusCode::OK, Form::status);
    let (of_page, of_api) = (object.page("access/"), object.api("access/"));
    let (members, paging) = members::load(request, [&of_page, &of_api], &filters).await?;
    let chosen = members::chosen(request, &of_api, &filters).await?;
    let rules: Rules = api.get(&object.api("access_controls/")).await?;
    let mut subjects = Subjects::load(request, &object.tenant, &of_page).await?;
    let operation = object.operation(RULE);
    let mut rule = None;
    if rules.user_can_edit_access_levels && api.may(&operation).await? {
        let form = if let Some(form) = sent {
            form
        } else {
            let form = RULE_FORM.empty(request, &operation, &action(&object))?;
            for_member(form, chosen.as_ref(), &mut subjects)
        };
        rule = Some(with_subjects(form, &subjects));
    }
    // A session that manages the insight may be unable to view it.
    let insight = api.get_if_allowed::<Insight>(&object.api("")).await?;
    let name = insight.as_ref().map_or("this insight", |insight| {
        insight_name(insight.name.as_deref(), insight.derived_name.as_deref())
    });
    let name = name.to_owned();
    let frame = object.frame(request).await?;
    let frame = frame.titled(format!("Who can see {name}")).with_refusal(refusal);
    let action = rule.as_ref().map(|_| of_page.clone());
    let url = |offset, at| format!("{}#rules", filters.beside(offset, at).url(&of_page));
    let page = AccessPage {
        command: Command::get(&request.visit, &members::path(&of_api, &filters)),
        rules: RuleTable::new(&rules.access_controls, &subjects, &request.visit, url, action)?,
        object,
        name,
        filters,
        members,
        paging,
        chosen,
        rule,
        subjects,
    };
    Ok(layout::page_with_status(&frame, &page, status)?)
}
