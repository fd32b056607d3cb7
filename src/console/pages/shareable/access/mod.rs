//! The access of each member to a dashboard or an insight with the rule that decides it; the rules, and the restriction of a
//! dashboard.

mod forms;

use crate::console::api::if_allowed;
use crate::console::pages::people::{RuleTable, Rules, Subjects};
use crate::console::pages::prelude::*;

use super::{Shareable, ShareableKind};
use forms::Restriction;

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

pub(super) async fn apply(request: SignedIn, kind: &'static ShareableKind) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let page = object.page("access/");
    if let Some(sent) = forms::sent(&request, kind, &object)? {
        return match sent.send(&request).await? {
            Outcome::Done(_) => finish(&page, "access-saved"),
            Outcome::Again(form) => show(request, kind, form.into()).await,
        };
    }
    let write = forms::removal(&request.visit.form, kind, &object)?;
    match request.api.attempt(&write).await? {
        Ok(_) if request.visit.form.has("collaborator") => finish(&page, "collaborator-removed"),
        Ok(_) => finish(&page, "rule-removed"),
        Err(refusal) => show(request, kind, refusal.into()).await,
    }
}

pub(super) async fn show(
    request: SignedIn,
    kind: &'static ShareableKind,
    mut feedback: Feedback,
) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let filters = Filters::of(&request.visit);
    let of_page = object.page("access/");
    let list = ListSpec::new(object.api("access/"), &of_page).filtered(filters.fields());
    let list = list_page(&request, list).await?;
    let chosen = filters.chosen(&request, &object).await?;
    let rules: Rules = request.api.get(&object.api("access_controls/")).await?;
    let mut subjects = Subjects::load(&request, &object.tenant, &of_page).await?;
    let mut rule = None;
    let set_rule = object.operation(kind.set_rule);
    if rules.user_can_edit_access_levels && request.api.may(&set_rule).await? {
        let (chosen, feedback) = (chosen.as_ref(), &mut feedback);
        let form = forms::rule(&request, &set_rule, &object, chosen, &mut subjects, feedback)?;
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
        rules: RuleTable::new(&rules.access_controls, &subjects, &request.visit, url, action)?,
        object,
        name,
        filters,
        list,
        chosen,
        rule,
        subjects,
        restriction,
    };
    feedback.show(&request, format!("Who can see {}", page.name), &page).await
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
        let found: List<MemberAccess> = request.api.get(&path).await?;
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
