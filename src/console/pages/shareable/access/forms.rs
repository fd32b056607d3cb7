//! The forms of the page: a rule, and for dashboards the restriction with its collaborators.

use crate::console::form::SubmittedForm;
use crate::console::pages::people::{
    MAX_FOUND, MEMBER, MemberSearch, ROLE, Subjects, removed_rule,
};
use crate::console::pages::prelude::*;
use crate::console::pages::shareable::{DASHBOARD, Shareable, ShareableKind};
use crate::console::words::{
    COLLABORATORS_EDIT, EVERYONE_EDITS, MAY_EDIT, RESTRICTIONS, is_restricted,
};
use crate::http;

use super::{Filters, MemberAccess};

const RULE: FormSpec = FormSpec::create(
    "Set the rule",
    &[
        MEMBER,
        ROLE,
        Input::new("access_level").label("Level").choices(&[
            ("none", "None: does not see it"),
            ("viewer", "Viewer: sees it"),
            ("editor", "Editor: also changes it"),
            ("manager", "Manager: also sets its rules"),
        ]),
    ],
)
.with_id("rule");

const RESTRICTION: FormSpec = FormSpec::change(
    "Save",
    &[Input::new("restriction_level").label("Who may edit").choices(RESTRICTIONS)],
)
.with_id("restriction");

const COLLABORATOR: FormSpec = FormSpec::create(
    "Add",
    &[Input::new("user_uuid").label("Member").hint("Members who may view but not edit.")],
)
.with_id("collaborator");

/// The operation that adds a collaborator.
const ADD_COLLABORATOR: &str = "dashboards_collaborators_create";

/// Returns the URL that the browser sends a form to.
fn action(object: &ObjectPath, form: &FormSpec) -> String {
    object.page(&format!("access/?form={}", form.id))
}

/// Reads the form that the query names. Returns `None` if the page of the kind has no such form.
pub(super) fn sent(
    request: &SignedIn,
    kind: &ShareableKind,
    object: &ObjectPath,
) -> Result<Option<SubmittedForm>> {
    let (form, operation): (&'static FormSpec, _) = match request.visit.query("form") {
        "rule" => (&RULE, kind.set_rule),
        "restriction" if !kind.is_insight => (&RESTRICTION, kind.update),
        "collaborator" if !kind.is_insight => (&COLLABORATOR, ADD_COLLABORATOR),
        _ => return Ok(None),
    };
    let mut sent = form.sent(request, object.operation(operation), &action(object, form))?;
    if operation == ADD_COLLABORATOR {
        sent.body.insert("level".to_owned(), MAY_EDIT.into());
    }
    Ok(Some(sent))
}

/// Returns the form that sets a rule. A new one names the chosen member, if there is one.
pub(super) fn rule(
    request: &SignedIn,
    operation: &Operation,
    object: &ObjectPath,
    chosen: Option<&MemberAccess>,
    subjects: &mut Subjects,
    feedback: &mut Feedback,
) -> Result<Form> {
    let nothing = Versioned::default();
    let form = RULE.shown(request, operation, &action(object, &RULE), &nothing, feedback)?;
    let Some(member) = chosen.filter(|_| !form.is_sent) else { return Ok(form) };
    subjects.offer_member(&member.organization_member, &member.user.person.label());
    Ok(form.with_value("organization_member", &member.organization_member.clone().into()))
}

/// Returns the request of a button that removes a rule or a collaborator.
///
/// # Errors
/// 404 if the form names neither.
pub(super) fn removal(
    form: &http::form::Form,
    kind: &ShareableKind,
    object: &ObjectPath,
) -> Result<Write> {
    if form.has("rule") {
        let body = removed_rule(form.value("rule"));
        return Ok(object.write(kind.set_rule).body(Value::Object(body)));
    }
    let user = form.value("collaborator");
    if user.is_empty() || kind.is_insight {
        return Err(Error::not_found());
    }
    let ids = [object.tenant.as_str(), object.id.as_str(), user];
    Ok(Write::new("dashboards_collaborators_destroy", ids))
}

/// The parameter of the query with the number of collaborators before the page of the list.
const OFFSET: &str = "collaborators";
/// The parameter of the query with the search for a member to add.
const SEARCH: &str = "candidate";

/// The number of collaborators on a page.
const PAGE_SIZE: usize = 50;

/// The restriction on the page, with the collaborators.
#[derive(Template)]
#[template(path = "console/pages/shareable/access/restriction.html")]
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
        found: Option<(Shareable, Option<String>)>,
        feedback: &mut Feedback,
    ) -> Result<Self, Failure> {
        let Some((dashboard, version)) = found else {
            return Ok(Self { is_restricted: false, form: None, collaborators: None });
        };
        let level = dashboard.restriction_level;
        let is_restricted = level.is_some_and(is_restricted);
        // Every editor may send the level that the dashboard has.
        let other = if is_restricted { EVERYONE_EDITS } else { COLLABORATORS_EDIT };
        let change = object.write(DASHBOARD.update).body(json!({ "restriction_level": other }));
        let refusal = request.api.dry_run(&change).await?;
        let mut form = None;
        if refusal.as_ref().is_none_or(|refusal| refusal.status() == 503) {
            let stored = Versioned { body: json!({ "restriction_level": level }), version };
            let (update, action) =
                (object.operation(DASHBOARD.update), action(object, &RESTRICTION));
            let shown = RESTRICTION.shown(request, &update, &action, &stored, feedback)?;
            let reason = refusal.map(|refusal| refusal.detail().to_owned());
            form = Some(shown.refused_for(reason));
        }
        let mut collaborators = None;
        if is_restricted {
            let may_change =
                dashboard.rights.may_edit() && DASHBOARD.may_write(request, &object.tenant).await?;
            let found = Collaborators::load(request, object, filters, may_change, feedback).await?;
            collaborators = Some(found);
        }
        Ok(Self { is_restricted, form, collaborators })
    }
}

/// A collaborator, as the API describes one.
#[derive(Clone, Deserialize)]
struct Collaborator {
    user: Person,
    user_uuid: String,
}

/// A page of the collaborators.
#[derive(Template)]
#[template(path = "console/pages/shareable/access/collaborators.html")]
struct Collaborators {
    object: ObjectPath,
    listed: Vec<Collaborator>,
    paging: Paging,
    /// Whether the session may add and remove them.
    may_change: bool,
    search: MemberSearch,
    /// The form that adds one, if the session may and there is somebody to add.
    form: Option<Form>,
}

impl Collaborators {
    /// Loads the page that the query names, as far as the session may see it.
    ///
    /// # Errors
    /// Those of [`Paging::of_all`] and of the API, except refusals.
    async fn load(
        request: &SignedIn,
        object: &ObjectPath,
        filters: &Filters,
        may_change: bool,
        feedback: &mut Feedback,
    ) -> Result<Self, Failure> {
        let all: Option<Vec<Collaborator>> =
            request.api.get_if_allowed(&object.api("collaborators/")).await?;
        let all = all.unwrap_or_default();
        let page = object.page("access/");
        let url = |at| format!("{}#restricted", filters.beside(OFFSET, at).url(&page));
        let (listed, paging) = Paging::of_all(&all, &request.visit, OFFSET, PAGE_SIZE, url)?;
        let search = MemberSearch::of(&request.visit, SEARCH, &page, "restricted");
        let mut found = Self {
            object: object.clone(),
            listed: listed.to_vec(),
            paging,
            may_change,
            search,
            form: None,
        };
        if may_change {
            found.offer(request, feedback).await?;
        }
        Ok(found)
    }

    /// Offers the members who may view the dashboard but not edit it.
    async fn offer(&mut self, request: &SignedIn, feedback: &mut Feedback) -> Result<()> {
        let limit = MAX_FOUND.to_string();
        let query = [("access_level", "viewer"), ("limit", &limit), ("search", &self.search.text)];
        let path = Query::of(query).url(&self.object.api("access/"));
        let viewers: List<MemberAccess> = request.api.get(&path).await?;
        self.search.is_cut = !viewers.is_complete();
        let (add, nothing) = (self.object.operation(ADD_COLLABORATOR), Versioned::default());
        let action = action(&self.object, &COLLABORATOR);
        let form = COLLABORATOR.shown(request, &add, &action, &nothing, feedback)?;
        if form.is_sent || !viewers.results.is_empty() {
            let viewers = viewers.results.iter();
            let choice = |user: &User| Choice::new(user.uuid.as_str(), user.person.label());
            let choices = viewers.map(|member| choice(&member.user));
            self.form = Some(form.with_choices("user_uuid", choices.collect()));
        }
        Ok(())
    }
}
