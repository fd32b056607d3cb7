//! The members of the organization who can be added to a role.

use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::console::pages::members::Member;
use crate::console::visit::SignedIn;
use crate::error::Result;

/// The maximum number of members in the choice.
const MAX_MEMBERS: u64 = 100;

#[derive(Deserialize)]
struct Members {
    count: u64,
    results: Vec<Member>,
}

/// Members that a search found, without those of the role.
pub(super) struct Candidates {
    /// What the page searches for.
    pub(super) search: String,
    /// The UUID and the name of each member.
    pub(super) members: Vec<(String, String)>,
    /// Whether the choice does not have all members.
    pub(super) is_cut: bool,
}

impl Candidates {
    /// Searches the members of an organization. `role` is the body of the role.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    pub(super) async fn load(request: &SignedIn, organization: &str, role: &Value) -> Result<Self> {
        let search = request.visit.query("member").trim().to_owned();
        let query = query(&search);
        let path = format!("/api/organizations/{organization}/members/?{query}");
        let found = request.api.get_if_allowed::<Members>(&path).await?;
        let found = found.unwrap_or(Members { count: 0, results: Vec::new() });
        let in_role: Vec<_> = role
            .get("members")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .filter_map(|member| member.pointer("/user/uuid")?.as_str())
            .collect();
        let members = found.results.into_iter();
        let members = members.filter(|member| !in_role.contains(&member.user.uuid.as_str()));
        let members = members.map(|member| {
            let (name, email) = (member.name(), &member.user.person.email);
            let shown = if name == *email { name } else { format!("{name}, {email}") };
            (member.user.uuid, shown)
        });
        Ok(Self { search, members: members.collect(), is_cut: found.count > MAX_MEMBERS })
    }
}

fn query(search: &str) -> String {
    let mut query = Serializer::new(format!("limit={MAX_MEMBERS}&order=joined_at"));
    if !search.is_empty() {
        query.append_pair("search", search);
    }
    query.finish()
}
