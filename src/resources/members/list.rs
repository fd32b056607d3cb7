//! Lists and filters members.

use crate::error::Result;
use crate::ids::OrganizationId;
use crate::input::{Choices, choices_schema};
use crate::json;
use crate::resources::users::{self, User};
use crate::store::{Tx, Window};
use crate::time::Timestamp;

use super::body::MemberReader;
use super::{BY_JOINING, Membership, find_listed};

/// The values of `order`.
pub struct Orders;

impl Choices for Orders {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["-joined_at", "joined_at"];
}

choices_schema!(Orders);

/// The filters of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only the member with exactly this address.
    pub email: Option<String>,
    /// Only members whose name or address contains this text, ignoring case. Must be in lower case.
    pub search: Option<String>,
    /// Only members that were updated at or after this time.
    pub updated_after: Option<Timestamp>,
}

impl Filter {
    /// Returns whether the list must visit every member. A filter by address uses the index of users.
    pub fn scans(&self) -> bool {
        self.email.is_none() && (self.search.is_some() || self.updated_after.is_some())
    }

    /// Returns whether a member matches the filters other than `email`.
    pub fn matches(&self, tx: &impl Tx, member: &Membership) -> Result<bool> {
        if self.updated_after.is_some_and(|moment| member.updated_at < moment) {
            return Ok(false);
        }
        self.search.as_ref().map_or(Ok(true), |search| matches_search(tx, member, search))
    }
}

fn matches_search(tx: &impl Tx, member: &Membership, search: &str) -> Result<bool> {
    let user: User = tx.get(&member.user)?;
    let users::Fields { first_name, last_name, email, .. } = user.fields;
    Ok(format!("{first_name} {last_name} {email}").to_lowercase().contains(search))
}

/// Lists the members of an organization that match `filter`. Returns the total and the items in `window` as the items
/// of a JSON array.
pub fn list(
    tx: &impl Tx,
    organization: OrganizationId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let (mut count, mut items) = (0, MemberItems::default());
    let mut look_at = |member: &Membership| {
        if filter.matches(tx, member)? {
            if window.shows(count) {
                items.push(tx, member)?;
            }
            count += 1;
        }
        Ok(())
    };
    if let Some(email) = &filter.email {
        if let Some(member) = find_by_address(tx, organization, email)? {
            look_at(&member)?;
        }
    } else if filter.scans() {
        let all = Window::all(window.order);
        tx.walk(&BY_JOINING, &organization, all, |row| look_at(&row.meta))?;
    } else {
        return list_all(tx, organization, window);
    }
    Ok((count as u64, items.text.into_bytes()))
}

fn list_all(tx: &impl Tx, organization: OrganizationId, window: Window) -> Result<(u64, Vec<u8>)> {
    let mut items = MemberItems::default();
    let count = tx.count::<Membership>(&organization)?;
    if window.begins_within(count) {
        tx.walk(&BY_JOINING, &organization, window, |row| items.push(tx, &row.meta))?;
    }
    Ok((count, items.text.into_bytes()))
}

fn find_by_address(
    tx: &impl Tx,
    organization: OrganizationId,
    email: &str,
) -> Result<Option<Membership>> {
    match users::find_by_email(tx, email)? {
        Some(user) if user.fields.email == email => find_listed(tx, organization, user.meta.id),
        _ => Ok(None),
    }
}

#[derive(Default)]
struct MemberItems {
    text: json::JsonItems,
    reader: MemberReader,
}

impl MemberItems {
    fn push(&mut self, tx: &impl Tx, member: &Membership) -> Result<()> {
        self.text.push(self.reader.body(tx, member)?)
    }
}
