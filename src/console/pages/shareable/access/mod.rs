//! The access of each member to a dashboard or an insight with the rule that decides it; the rules, and the restriction of a
//! dashboard with its collaborators.

use crate::console::api::if_allowed;
use crate::console::pages::people::{
    MAX_FOUND, MEMBER, MemberSearch, ROLE, RuleTable, Rules, Subjects, removed_rule,
};
use crate::console::pages::prelude::*;
use crate::console::words::{
    COLLABORATORS_EDIT, EVERYONE_EDITS, MAY_EDIT, RESTRICTIONS, is_restricted,
};
use crate::http;

use super::{DASHBOARD, Shareable, ShareableKind};

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

#[derive(Template)]
#[template(path = "console/pages/shareable/access/page.html")]
struct AccessPage {
    kind: &'static ShareableKind,
    object: ObjectPath,
    name: String,
    filters: Filters,
    list: ListPage<MemberAccess>,
    chosen: Option<MemberAccess>,
    rules: RuleTable,
    /// The form that sets a rule, if the session may.
    rule: Option<Form>,
    subjects: Subjects,
    /// The restriction of a dashboard.
    restriction: Option<Restriction>,
}

pub(super) async fn apply(request: SignedIn) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let page = object.page("access/");
    let form: Option<(&'static FormSpec, _)> = match request.visit.query("form") {
        "rule" => Some((&RULE, kind.set_rule)),
        "restriction" if !kind.is_insight => Some((&RESTRICTION, kind.update)),
        "collaborator" if !kind.is_insight => Some((&COLLABORATOR, ADD_COLLABORATOR)),
        _ => None,
    };
    if let Some((form, operation)) = form {
        let mut sent = form.sent(&request, object.operation(operation), &action(&object, form))?;
        if operation == ADD_COLLABORATOR {
            sent.body.insert("level".to_owned(), MAY_EDIT.into());
        }
        return submit(request, sent, &page, "access-saved", &show).await;
    }
    let write = removal(&request.visit.form, kind, &object)?;
    let is_collaborator = request.visit.form.has("collaborator");
    let notice = if is_collaborator { "collaborator-removed" } else { "rule-removed" };
    press(request, write, &page, notice, &show).await
}

pub(super) async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let kind = ShareableKind::of(&request.visit);
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let filters = Filters::of(&request.visit);
    let of_page = object.page("access/");
    let list = ListSpec::new(object.api("access/"), &of_page).filtered(filters.fields());
    let list = list_page(&request, list).await.read()?;
    let chosen = filters.chosen(&request, &object).await?;
    let rules: Rules = request.api.get(&object.api("access_controls/")).await.read()?;
    let mut subjects = Subjects::load(&request, &object.tenant, &of_page).await?;
    let mut rule = None;
    let set_rule = object.operation(kind.set_rule);
    if rules.user_can_edit_access_levels && request.api.may(&set_rule).await? {
        let (action, nothing) = (action(&object, &RULE), Versioned::default());
        let mut form = RULE.shown(&request, &set_rule, &action, &nothing, &mut feedback)?;
        // A new rule is for the chosen member.
        if let Some(member) = chosen.as_ref().filter(|_| !form.is_sent) {
            let id = member.organization_member.as_str();
            subjects.offer_member(id, &member.user.person.label());
            form = form.with_value("organization_member", &id.into());
        }
        rule = Some(subjects.offer_in(form));
    }
    // A session that manages the object may be unable to view it.
    let found = if_allowed(request.api.get_versioned(&object.api("")).await)?;
    let read = |found: Versioned| Ok::<_, Error>((found.read::<Shareable>()?, found.version));
    let found = found.map(read).transpose()?;
    let name = found.as_ref().map(|(found, _)| kind.name(found).to_owned());
    let name = name.unwrap_or_else(|| format!("this {}", kind.objects.noun));
    let mut restriction = None;
    if !kind.is_insight {
        let shown = Restriction::load(&request, &object, &filters, found, &mut feedback).await?;
        restriction = Some(shown);
    }
    let action = rule.as_ref().map(|_| of_page.clone());
    let url = |offset, at| format!("{}#rules", filters.beside(offset, at).url(&of_page));
    let page = AccessPage {
        kind,
        rules: RuleTable::new(&rules.access_controls, &subjects, &request.visit, &url, action)?,
        object,
        name,
        filters,
        list,
        chosen,
        rule,
        subjects,
        restriction,
    };
    feedback.show(&request, &format!("Who can see {}", page.name), &page).await
}

/// The levels with their words.
const LEVELS: [(&str, &str); 4] =
    [("none", "Nothing"), ("viewer", "View"), ("editor", "Edit"), ("manager", "Manage")];

/// The filters of the list, which stand in the query.
struct Filters {
    search: String,
    level: String,
    offset: u64,
    /// The UUID of the member whose rules are explained.
    member: String,
}

impl Filters {
    fn of(visit: &Visit) -> Self {
        let level = visit.query("access_level");
        let level = LEVELS.iter().find(|(name, _)| *name == level);
        Self {
            search: visit.query("search").trim().to_owned(),
            level: level.map_or(String::new(), |(name, _)| (*name).to_owned()),
            offset: Paging::offset(visit),
            member: visit.query("member").to_owned(),
        }
    }

    fn fields(&self) -> [(&'static str, &str); 2] {
        [("search", &self.search), ("access_level", &self.level)]
    }

    /// Returns the query of the page with these members and with another list that begins at `at`, the value of `offset`.
    fn beside(&self, offset: &'static str, at: u64) -> Query {
        let at = if at == 0 { String::new() } else { at.to_string() };
        self.explaining(&self.member).and([(offset, at.as_str())])
    }

    /// Returns the query of the page that explains the access of a member.
    fn explaining(&self, member: &str) -> Query {
        Query::of(self.fields()).and([("member", member)]).at(self.offset)
    }

    /// Reads the access of the member that the query names.
    ///
    /// # Errors
    /// The errors of the API.
    async fn chosen(
        &self,
        request: &SignedIn,
        object: &ObjectPath,
    ) -> Result<Option<MemberAccess>> {
        if self.member.is_empty() {
            return Ok(None);
        }
        let path = Query::of([("user", self.member.as_str())]).url(&object.api("access/"));
        let found: List<MemberAccess> = request.api.get(&path).await.read()?;
        Ok(found.results.into_iter().next())
    }
}

/// The access of a member, as the API describes it.
#[derive(Deserialize)]
struct MemberAccess {
    user: User,
    organization_member: String,
    access_level: String,
    because: Vec<Reason>,
}

/// A rule that can decide.
#[derive(Deserialize)]
struct Reason {
    role_name: Option<String>,
    reached: bool,
    decided: bool,
    text: String,
}

impl MemberAccess {
    /// Returns what the member may do, in a word.
    fn may(&self) -> &str {
        let known = LEVELS.iter().find(|(name, _)| *name == self.access_level);
        known.map_or(&*self.access_level, |(_, word)| *word)
    }

    /// Returns the rule that decided.
    fn deciding(&self) -> Option<&Reason> {
        self.because.iter().find(|reason| reason.decided)
    }
}

/// Returns the request of a button that removes a rule or a collaborator.
///
/// # Errors
/// 404 if the form names neither.
fn removal(form: &http::form::Form, kind: &ShareableKind, object: &ObjectPath) -> Result<Write> {
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
struct Restriction {
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
    async fn load(
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
            request.api.get(&object.api("collaborators/")).await.read_if_allowed()?;
        let all = all.unwrap_or_default();
        let page = object.page("access/");
        let url = |at| format!("{}#restricted", filters.beside(OFFSET, at).url(&page));
        let (listed, paging) = Paging::of_all(&all, &request.visit, OFFSET, PAGE_SIZE, &url)?;
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
        let viewers: List<MemberAccess> = request.api.get(&path).await.read()?;
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
