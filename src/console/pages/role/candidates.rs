//! The members of the organization who can be added to a role.

use std::collections::HashSet;

use serde::Deserialize;

use crate::console::list::List;
use crate::console::pages::members::Member;
use crate::console::query::Query;
use crate::console::visit::SignedIn;
use crate::error::Result;

use super::address::Address;

/// The maximum number of members in the choice.
const MAX_MEMBERS: u64 = 100;

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
    /// The search of the page.
    pub(super) search: String,
    /// The UUID and the name of each member.
    pub(super) members: Vec<(String, String)>,
    /// Whether the choice does not have all members.
    pub(super) is_cut: bool,
}

impl Candidates {
    /// Searches the organization for members who are not in the role.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(request: &SignedIn, address: &Address) -> Result<Self> {
        let search = request.visit.query("member").trim().to_owned();
        let limit = MAX_MEMBERS.to_string();
        let query = Query::of([("limit", &*limit), ("order", "joined_at"), ("search", &search)]);
        let Address { organization, id } = address;
        let path = query.url(&format!("/api/organizations/{organization}/members/"));
        let found = request.api.get_if_allowed::<List<Member>>(&path).await?.unwrap_or_default();
        let path = format!(
            "/api/organizations/{organization}/roles/{id}/role_memberships/?limit={MAX_LEFT_OUT}"
        );
        let in_role: List<RoleMember> = request.api.get(&path).await?;
        let in_role: HashSet<_> = in_role.results.into_iter().map(|one| one.user.uuid).collect();
        let members = found.results.into_iter();
        let members = members.filter(|member| !in_role.contains(&member.user.uuid));
        let members = members.map(|member| {
            let (name, email) = (member.name(), &member.user.person.email);
            let shown = if name == *email { name } else { format!("{name}, {email}") };
            (member.user.uuid, shown)
        });
        Ok(Self { search, members: members.collect(), is_cut: found.count > MAX_MEMBERS })
    }
}
