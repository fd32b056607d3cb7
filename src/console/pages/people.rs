//! The members of an organization whom pages name and offer; access rules as a table, and their subjects: members, roles and
//! everyone.

use std::collections::HashMap;

use crate::console::api::Api;

use super::prelude::*;

/// The maximum number of members that a page can name, and that the filter lists.
const MAX_MEMBERS: usize = 100;

/// The members that the session may see.
#[derive(Default)]
pub(super) struct People(pub(super) Vec<Member>);

impl People {
    /// Loads the members of an organization. A session that may not list them knows no names.
    pub(super) async fn load(api: &Api, organization: Option<&str>) -> Result<Self> {
        let Some(id) = organization else { return Ok(Self::default()) };
        let path = format!("/api/organizations/{id}/members/?limit={MAX_MEMBERS}");
        let found = api.get(&path).await.read_if_allowed::<List<Member>>()?;
        Ok(Self(found.unwrap_or_default().results))
    }

    /// Returns the user with this number.
    pub(super) fn by_number(&self, number: &str) -> Option<&User> {
        let number = number.parse::<u64>().ok()?;
        self.0.iter().map(|member| &member.user).find(|user| user.id == number)
    }

    /// Returns whether a filter names a user that is not among the members.
    pub(super) fn is_unknown(&self, user: &str) -> bool {
        !matches!(user, "" | "@me") && self.0.iter().all(|member| member.user.uuid != user)
    }

    /// Returns the user of a membership.
    pub(super) fn by_membership(&self, id: &str) -> Option<&User> {
        self.0.iter().find(|member| member.id == id).map(|member| &member.user)
    }
}

/// The maximum number of members that a search finds.
pub(super) const MAX_FOUND: u64 = 100;

/// The search, as a form above the choice.
#[derive(Template)]
#[template(path = "console/pages/member_search.html")]
pub(super) struct MemberSearch {
    /// The path of the page.
    page: String,
    /// The parameter of the query with the text.
    parameter: &'static str,
    /// The id of the section with the choice.
    section: &'static str,
    pub(super) text: String,
    /// Whether the choice does not have all members.
    pub(super) is_cut: bool,
}

impl MemberSearch {
    /// Reads the search from the query.
    pub(super) fn of(
        visit: &Visit,
        parameter: &'static str,
        page: &str,
        section: &'static str,
    ) -> Self {
        let text = visit.query(parameter).trim().to_owned();
        Self { page: page.to_owned(), parameter, section, text, is_cut: false }
    }

    /// Searches the members of an organization.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn find(
        mut self,
        request: &SignedIn,
        organization: &str,
    ) -> Result<(Self, List<Member>)> {
        let limit = MAX_FOUND.to_string();
        let query = Query::of([("limit", &*limit), ("order", "joined_at"), ("search", &self.text)]);
        let path = query.url(&format!("/api/organizations/{organization}/members/"));
        let found =
            request.api.get(&path).await.read_if_allowed::<List<Member>>()?.unwrap_or_default();
        self.is_cut = !found.is_complete();
        Ok((self, found))
    }

    /// Returns whether the page shows the search: if there is something to search for, or a search to end.
    pub(super) const fn is_needed(&self) -> bool {
        self.is_cut || !self.text.is_empty()
    }
}

/// The member that a form sets a rule for.
pub(super) const MEMBER: Input = Input::new("organization_member")
    .label("For the member")
    .hint("Without a member and a role, the rule is for everyone.");

/// The role that a form sets a rule for.
pub(super) const ROLE: Input = Input::new("role").label("For the role");

/// An access rule, as the API describes it.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Rule {
    pub(super) access_level: String,
    pub(super) resource: String,
    pub(super) organization_member: Option<String>,
    pub(super) role: Option<String>,
}

impl Rule {
    /// Returns the subject of the rule, as a form sends it; empty for everyone.
    pub(super) fn subject(&self) -> String {
        match (&self.organization_member, &self.role) {
            (Some(member), _) => format!("member {member}"),
            (None, Some(role)) => format!("role {role}"),
            (None, None) => String::new(),
        }
    }
}

/// The rules on a project, on all objects of its kinds, or on one object.
#[derive(Debug, Deserialize)]
pub(super) struct Rules {
    pub(super) access_controls: Vec<Rule>,
    pub(super) default_access_level: String,
    pub(super) user_can_edit_access_levels: bool,
}

/// Returns the body of a request that removes the rule of a subject.
pub(super) fn removed_rule(subject: &str) -> Map<String, Value> {
    let mut body = Map::new();
    match subject.split_once(' ') {
        Some(("member", id)) => body.insert("organization_member".to_owned(), id.into()),
        Some(("role", id)) => body.insert("role".to_owned(), id.into()),
        _ => None,
    };
    body.insert("access_level".to_owned(), Value::Null);
    body
}

/// The parameter of the query with the number of rules before the page of the table.
const OFFSET: &str = "rules";

/// The number of rules on a page.
const PAGE_SIZE: usize = 50;

/// A page of rules, with a button for each that removes it.
#[derive(Template)]
#[template(path = "console/pages/rules.html")]
pub(super) struct RuleTable {
    /// The rules, each with the name of its subject.
    pub(super) rows: Vec<(String, Rule)>,
    paging: Paging,
    /// The URL that the buttons send the form to, if the session may remove rules.
    action: Option<String>,
}

impl RuleTable {
    /// Shows the page of the rules that the query names. `url` returns the URL of a page with this parameter of the query.
    ///
    /// # Errors
    /// Those of [`Paging::of_all`].
    pub(super) fn new(
        rules: &[Rule],
        subjects: &Subjects,
        visit: &Visit,
        url: &dyn Fn(&'static str, u64) -> String,
        action: Option<String>,
    ) -> Result<Self, Failure> {
        let url = |at| url(OFFSET, at);
        let (shown, paging) = Paging::of_all(rules, visit, OFFSET, PAGE_SIZE, &url)?;
        let rows = shown.iter().map(|rule| (subjects.name(rule), rule.clone()));
        Ok(Self { rows: rows.collect(), paging, action })
    }
}

/// The maximum number of members, and of roles, that a form offers without a search and that a list of rules names.
const MAX_SUBJECTS: usize = 500;

/// The parameter of the query with the search for a member.
const SEARCH: &str = "subject";

/// The members and the roles of an organization, as far as the session may list them.
#[derive(Default)]
pub(super) struct Subjects {
    /// The members that a form offers.
    members: Vec<(String, String)>,
    /// The search for others, if there are more members than a form offers.
    pub(super) search: Option<MemberSearch>,
    /// The roles. `None` if there are more than a form offers.
    roles: Option<Vec<(String, String)>>,
    names: HashMap<String, String>,
}

impl Subjects {
    /// Loads the members and roles of the organization of a project. `page` is the path of the page.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(request: &SignedIn, project: &str, page: &str) -> Result<Self> {
        let api = &request.api;
        let found =
            api.get(&format!("/api/projects/{project}/")).await.read_if_allowed::<Project>()?;
        let Some(Project { organization, .. }) = found else {
            return Ok(Self { roles: Some(Vec::new()), ..Self::default() });
        };
        let path = format!("/api/organizations/{organization}/members/?limit={MAX_SUBJECTS}");
        let mut members =
            api.get(&path).await.read_if_allowed::<List<Member>>()?.unwrap_or_default();
        let mut names = HashMap::new();
        note(&mut names, &members);
        let mut search = None;
        if !members.is_complete() {
            let found = MemberSearch::of(&request.visit, SEARCH, page, "rules");
            let (found, matching) = found.find(request, &organization).await?;
            note(&mut names, &matching);
            (search, members) = (Some(found), matching);
        }
        let path =
            format!("/api/organizations/{organization}/roles/?limit={MAX_SUBJECTS}&basic=true");
        let roles = api.get(&path).await.read_if_allowed::<List<Role>>()?.unwrap_or_default();
        let is_complete = roles.is_complete();
        let roles: Vec<_> = roles.results.into_iter().map(|one| (one.id, one.name)).collect();
        names.extend(roles.iter().cloned());
        let members = members.results.into_iter().map(|one| (one.id, one.user.person.label()));
        let mut members: Vec<_> = members.collect();
        members.sort_by_key(|(_, label)| label.to_lowercase());
        Ok(Self { members, search, roles: is_complete.then_some(roles), names })
    }

    /// Returns the name of the subject of a rule.
    pub(super) fn name(&self, rule: &Rule) -> String {
        let named = |id: &String, kind: &str| {
            let name = self.names.get(id).unwrap_or(id);
            format!("{kind}{name}")
        };
        match (&rule.organization_member, &rule.role) {
            (Some(member), _) => named(member, ""),
            (None, Some(role)) => named(role, "Role "),
            (None, None) => "Everyone".to_owned(),
        }
    }

    /// Offers a member besides those that were found.
    pub(super) fn offer_member(&mut self, id: &str, name: &str) {
        if self.members.iter().all(|(known, _)| known != id) {
            self.members.push((id.to_owned(), name.to_owned()));
        }
    }

    /// Offers the members and the roles in a form of a rule. With too many roles, the form takes the id of one.
    pub(super) fn offer_in(&self, form: Form) -> Form {
        let form = form.with_choices("organization_member", choices("No member", &self.members));
        match &self.roles {
            Some(roles) => form.with_choices("role", choices("No role", roles)),
            None => form.with_hint("role", "The ID of the role, which is in the URL of its page."),
        }
    }
}

fn note(names: &mut HashMap<String, String>, members: &List<Member>) {
    names.extend(members.results.iter().map(|one| (one.id.clone(), one.user.person.name())));
}

fn choices(none: &str, named: &[(String, String)]) -> Vec<Choice> {
    let all = named.iter().map(|(id, name)| Choice::new(id.as_str(), name.as_str()));
    [Choice::new("", none)].into_iter().chain(all).collect()
}
