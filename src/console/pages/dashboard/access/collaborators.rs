//! The collaborators of a restricted dashboard, and the form that adds one.

use askama::Template;
use serde::Deserialize;

use crate::console::failure::Failure;
use crate::console::form::{Choice, Form};
use crate::console::list::List;
use crate::console::pages::member_search::{MAX_FOUND, MemberSearch};
use crate::console::pages::object::ObjectPath;
use crate::console::paging::Paging;
use crate::console::person::Person;
use crate::console::query::Query;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::forms;
use super::members::{Filters, MemberAccess};

/// The parameter of the query with the number of collaborators before the page of the list.
const OFFSET: &str = "collaborators";
/// The parameter of the query with the search for a member to add.
const SEARCH: &str = "candidate";

/// The number of collaborators on a page.
const PAGE_SIZE: usize = 50;

/// A collaborator, as the API describes one.
#[derive(Clone, Deserialize)]
struct Collaborator {
    user: Person,
    user_uuid: String,
}

/// A page of the collaborators.
#[derive(Template)]
#[template(path = "console/pages/dashboard/access/collaborators.html")]
pub(super) struct Collaborators {
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
    /// Loads the page that the query names, as far as the session may see it. `sent` is a form that has to be corrected.
    ///
    /// # Errors
    /// Those of [`Paging::of_all`] and of the API, except refusals.
    pub(super) async fn load(
        request: &SignedIn,
        object: &ObjectPath,
        filters: &Filters,
        may_change: bool,
        sent: Option<Form>,
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
            found.offer(request, sent).await?;
        }
        Ok(found)
    }

    /// Offers the members who may view the dashboard but not edit it.
    async fn offer(&mut self, request: &SignedIn, sent: Option<Form>) -> Result<()> {
        let limit = MAX_FOUND.to_string();
        let query = [("access_level", "viewer"), ("limit", &limit), ("search", &self.search.text)];
        let path = Query::of(query).url(&self.object.api("access/"));
        let viewers: List<MemberAccess> = request.api.get(&path).await?;
        self.search.is_cut = !viewers.is_complete();
        if sent.is_none() && viewers.results.is_empty() {
            return Ok(());
        }
        let form = sent.map_or_else(|| forms::collaborator(request, &self.object), Ok)?;
        let viewers = viewers.results.iter();
        let choices = viewers.map(|member| Choice::new(member.uuid(), member.label()));
        let form = form.with_id("collaborator").with_choices("user_uuid", choices.collect());
        self.form = Some(form);
        Ok(())
    }
}
