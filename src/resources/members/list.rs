//! Which members a list shows, and the list (facts-org §4.2).

use crate::error::Result;
use crate::ids::OrganizationId;
use crate::input::{Choices, choices_schema};
use crate::json;
use crate::resources::users::{self, User};
use crate::store::{Tx, Window};
use crate::time::Timestamp;

use super::body::Writer;
use super::{BY_JOINING, Membership, find_listed};

/// The orders of a list: by joining.
pub struct Orders;

impl Choices for Orders {
    type Value = &'static str;
    const ALL: &'static [&'static str] = &["-joined_at", "joined_at"];
}

choices_schema!(Orders);

/// Which members a list shows.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only the one with exactly this address.
    pub email: Option<String>,
    /// Only those whose name or address contains this, in whatever case. Itself in lower case.
    pub search: Option<String>,
    /// Only those whose membership changed then or later.
    pub updated_after: Option<Timestamp>,
}

impl Filter {
    /// Whether the list has to look at every member. An address leads to the one it is of.
    pub fn walks(&self) -> bool {
        self.email.is_none() && (self.search.is_some() || self.updated_after.is_some())
    }

    /// Whether a member is shown, as far as it is not a question of the address.
    fn shows(&self, tx: &impl Tx, member: &Membership) -> Result<bool> {
        if self.updated_after.is_some_and(|moment| member.updated_at < moment) {
            return Ok(false);
        }
        self.search.as_ref().map_or(Ok(true), |search| is_found(tx, member, search))
    }
}

fn is_found(tx: &impl Tx, member: &Membership, search: &str) -> Result<bool> {
    let user: User = tx.get(&member.user)?;
    let users::Shown { first_name, last_name, email, .. } = user.shown;
    Ok(format!("{first_name} {last_name} {email}").to_lowercase().contains(search))
}

/// The members of an organization that `filter` lets through: how many there are in all, and those in
/// `window` as the items of a JSON array.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub fn list(
    tx: &impl Tx,
    organization: OrganizationId,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let (mut count, mut items) = (0, Items::default());
    let mut look_at = |member: &Membership| {
        if filter.shows(tx, member)? {
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
    } else if filter.walks() {
        let all = Window::all(window.order);
        tx.walk(&BY_JOINING, &organization, all, |row| look_at(&row.head))?;
    } else {
        return list_all(tx, organization, window);
    }
    Ok((count as u64, items.text.into_bytes()))
}

fn list_all(tx: &impl Tx, organization: OrganizationId, window: Window) -> Result<(u64, Vec<u8>)> {
    let mut items = Items::default();
    let count = tx.count::<Membership>(&organization)?;
    if window.begins_within(count) {
        tx.walk(&BY_JOINING, &organization, window, |row| items.push(tx, &row.head))?;
    }
    Ok((count, items.text.into_bytes()))
}

fn find_by_address(
    tx: &impl Tx,
    organization: OrganizationId,
    email: &str,
) -> Result<Option<Membership>> {
    match users::find_by_email(tx, email)? {
        Some(user) if user.shown.email == email => find_listed(tx, organization, user.head.id),
        _ => Ok(None),
    }
}

#[derive(Default)]
struct Items {
    text: json::Items,
    writer: Writer,
}

impl Items {
    fn push(&mut self, tx: &impl Tx, member: &Membership) -> Result<()> {
        self.text.push(|out| self.writer.write(tx, member, out))
    }
}
