//! What each member may do with a dashboard, and why. See `docs/spec/access-controls.md`.

mod body;
mod decision;
mod reasons;

use crate::auth::{CallerKey, InProject};
use crate::error::{Error, Result};
use crate::ids::{DashboardId, UserId, UserUuid};
use crate::json::{Array, JsonItems, WrittenBy};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_controls::require_read;
use crate::resources::members::{self, BY_JOINING, Membership};
use crate::resources::roles;
use crate::resources::users::{self, EmbeddedUser};
use crate::store::{Tx, Window};

use super::{Dashboard, Meta};
pub use body::MemberAccessBody;
use decision::{AccessSources, MemberAccess};
use reasons::reasons;

/// The scope of a key that may list members.
const READ_MEMBERS: &str = "organization_member:read";
/// The scope of a key that may list roles.
const READ_ROLES: &str = "organization:read";

/// A user that a filter names.
#[derive(Debug, Clone, Copy)]
pub enum UserFilter {
    /// The caller.
    Caller,
    /// The user with this UUID.
    Uuid(UserUuid),
}

/// The filters of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this user.
    pub user: Option<UserFilter>,
    /// Only members whose name or address matches.
    pub members: members::Filter,
    /// Only members with this level on the dashboard.
    pub access_level: Option<AccessLevel>,
}

impl Filter {
    /// Returns whether the list must visit every member.
    pub fn scans(&self) -> bool {
        self.user.is_none() && (self.members.scans() || self.access_level.is_some())
    }
}

/// What a response to the caller may name. It names other members and roles only to a key that may list them.
#[derive(Debug, Clone, Copy)]
pub struct NameVisibility {
    other_members: bool,
    roles: bool,
}

impl NameVisibility {
    /// Returns what the key may see. A key that is limited to projects lists neither members nor roles.
    pub fn of(key: &CallerKey) -> Self {
        let is_limited = key.scoped_projects().is_some();
        let may = |scope| !is_limited && key.has_scope(scope);
        Self { other_members: may(READ_MEMBERS), roles: may(READ_ROLES) }
    }
}

/// Lists the members of the project's organization with their access to a dashboard, the newest member first. Returns
/// the total and the items in `window` as the items of a JSON array.
///
/// # Errors
/// 404 if the dashboard does not exist or is deleted; 403 if the caller may not read its access rules.
pub fn list(
    tx: &impl Tx,
    tenant: &InProject,
    id: DashboardId,
    visibility: NameVisibility,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let dashboard = get_readable(tx, tenant, id)?;
    let sources = AccessSources::of(tx, &tenant.project, dashboard)?;
    let mut page =
        AccessPage { sources, visibility, filter, window, count: 0, items: JsonItems::default() };
    let organization = tenant.member.organization;
    match select(tx, &tenant.member, visibility, filter.user)? {
        Selection::Nobody => {}
        Selection::One(user) => {
            if let Some(member) = members::find_listed(tx, organization, user)? {
                page.add(tx, &member)?;
            }
        }
        Selection::All if filter.scans() => {
            let all = Window::all(window.order);
            tx.walk(&BY_JOINING, &organization, all, |row| page.add(tx, &row.meta))?;
        }
        Selection::All => {
            let count = tx.count::<Membership>(&organization)?;
            if window.begins_within(count) {
                tx.walk(&BY_JOINING, &organization, window, |row| page.push(tx, &row.meta))?;
            }
            return Ok((count, page.items.into_bytes()));
        }
    }
    Ok((page.count as u64, page.items.into_bytes()))
}

/// Returns the dashboard, if the caller may read its access rules.
fn get_readable(tx: &impl Tx, tenant: &InProject, id: DashboardId) -> Result<Meta> {
    let found = tx.meta::<Dashboard>(&(tenant.project.id, id))?.filter(|meta| !meta.deleted);
    let dashboard = found.ok_or_else(Error::not_found)?;
    require_read(tx, tenant, dashboard.rights(tx, tenant)?.user_access_level)?;
    Ok(dashboard)
}

/// The members that a list visits.
enum Selection {
    All,
    One(UserId),
    Nobody,
}

fn select(
    tx: &impl Tx,
    caller: &Membership,
    visibility: NameVisibility,
    named: Option<UserFilter>,
) -> Result<Selection> {
    let named = match named {
        None if visibility.other_members => return Ok(Selection::All),
        None | Some(UserFilter::Caller) => Some(caller.user),
        Some(UserFilter::Uuid(uuid)) => tx.lookup(&users::BY_UUID, &uuid)?,
    };
    let is_visible = |user: &UserId| visibility.other_members || *user == caller.user;
    Ok(named.filter(is_visible).map_or(Selection::Nobody, Selection::One))
}

/// A page of the list while it is read.
struct AccessPage<'p> {
    sources: AccessSources<'p>,
    visibility: NameVisibility,
    filter: &'p Filter,
    window: Window,
    /// The number of members that match the filter.
    count: usize,
    items: JsonItems,
}

impl AccessPage<'_> {
    /// Counts a member that matches the filter, and appends the member if the window shows it.
    fn add(&mut self, tx: &impl Tx, member: &Membership) -> Result<()> {
        if !self.filter.members.matches(tx, member)? {
            return Ok(());
        }
        let access = self.sources.access(tx, member)?;
        if self.filter.access_level.is_none_or(|level| level == access.level()) {
            if self.window.shows(self.count) {
                self.render(tx, &access)?;
            }
            self.count += 1;
        }
        Ok(())
    }

    fn push(&mut self, tx: &impl Tx, member: &Membership) -> Result<()> {
        let access = self.sources.access(tx, member)?;
        self.render(tx, &access)
    }

    fn render(&mut self, tx: &impl Tx, access: &MemberAccess<'_>) -> Result<()> {
        let Membership { organization, user, id, .. } = *access.member;
        let Self { sources, visibility, items, .. } = self;
        items.push(MemberAccessBody {
            user: EmbeddedUser::find(tx, Some(user))?,
            organization_member: id,
            access_level: access.level(),
            can_edit_access_levels: access.can_edit_access_levels,
            because: WrittenBy(&mut |out| {
                Array::write(out, |array| {
                    for mut reason in reasons(sources, access)? {
                        if let Some(role) = reason.role.filter(|_| visibility.roles) {
                            reason.role_name = roles::find_name(tx, organization, role)?;
                        }
                        array.push(reason)?;
                    }
                    Ok(())
                })
            }),
        })
    }
}
