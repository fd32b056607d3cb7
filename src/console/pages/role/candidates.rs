//! The members of the organization who can be added to a role.

use std::collections::HashSet;

use serde::Deserialize;

use crate::console::list::List;
use crate::console::pages::member_search::MemberSearch;
use crate::console::pages::members::Member;
use crate::console::pages::object::ObjectPath;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The parameter of the query with the search.
const SEARCH: &str = "member";

/// The maximum number of members of the role that are left out of the choice. The API refuses to add the others again.
const MAX_LEFT_OUT: u64 = 1000;

#[derive(Deserialize)]
struct RoleMember {
    user: User,
}

#[derive(Deserialize)]
struct User {
    uuid: String,
}

/// Members that a search found, without those of the role.
pub(super) struct Candidates {
    pub(super) search: MemberSearch,
    /// The UUID and the name of each member.
    pub(super) members: Vec<(String, String)>,
}

impl Candidates {
    /// Searches the organization for members who are not in the role.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(request: &SignedIn, role: &ObjectPath) -> Result<Self> {
        let search = MemberSearch::of(&request.visit, SEARCH, &role.page(""), "candidates");
        let (search, found) = search.find::<Member>(request, &role.tenant).await?;
        let path = role.api(&format!("role_memberships/?limit={MAX_LEFT_OUT}"));
        let in_role: List<RoleMember> = request.api.get(&path).await?;
        let in_role: HashSet<_> = in_role.results.into_iter().map(|one| one.user.uuid).collect();
        let members = found.results.into_iter();
        let members = members.filter(|member| !in_role.contains(&member.user.uuid));
        let members = members.map(|member| (member.user.uuid, member.user.person.label()));
        Ok(Self { search, members: members.collect() })
    }
}
