//! What each member may do with a dashboard or an insight, and why. See `docs/spec/access-controls.md`.

mod body;
mod decision;
mod reasons;

use crate::auth::{CallerKey, InProject};
use crate::error::Result;
use crate::json::{Array, JsonItems, WrittenBy};
use crate::resources::access_controls::levels::AccessLevel;
use crate::resources::access_objects::Object;
use crate::resources::members::{self, BY_JOINING, Membership};
use crate::resources::projects;
use crate::resources::roles;
use crate::resources::users::{EmbeddedUser, UserFilter};
use crate::store::{Tx, Window};

pub use body::MemberAccessBody;
use decision::{MemberAccess, Target};
use reasons::reasons;

/// The scope of a key that may list members.
const READ_MEMBERS: &str = "organization_member:read";
/// The scope of a key that may list roles.
const READ_ROLES: &str = "organization:read";

/// The filters of a list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only this user.
    pub user: Option<UserFilter>,
    /// Only members whose name or address matches.
    pub members: members::Filter,
    /// Only members with this level on the object.
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

/// Lists the members of the project's organization with their access to an object, the newest member first. Returns the
/// total and the items in `window` as the items of a JSON array. The handler has checked that the caller may read the
/// access rules on the object.
///
/// # Errors
/// 404 if the object does not exist.
pub fn list(
    tx: &impl Tx,
    tenant: &InProject,
    object: Object,
    visibility: NameVisibility,
    filter: &Filter,
    window: Window,
) -> Result<(u64, Vec<u8>)> {
    let target = Target::of(tx, tenant.project.id, object)?;
    let (project, items) = (&tenant.project, JsonItems::default());
    let mut page = AccessPage { target, project, visibility, filter, window, count: 0, items };
    let Membership { organization, user: caller, .. } = tenant.member;
    match filter.user {
        None if visibility.other_members && filter.scans() => {
            let all = Window::all(window.order);
            tx.walk(&BY_JOINING, &organization, all, |row| page.add(tx, &row.meta))?;
        }
        None if visibility.other_members => {
            let count = tx.count::<Membership>(&organization)?;
            if window.begins_within(count) {
                tx.walk(&BY_JOINING, &organization, window, |row| page.push(tx, &row.meta))?;
            }
            return Ok((count, page.items.into_bytes()));
        }
        named => {
            let user = named.unwrap_or(UserFilter::Caller).resolve(tx, caller)?;
            if let Some(user) = user.filter(|user| visibility.other_members || *user == caller)
                && let Some(member) = members::find_listed(tx, organization, user)?
            {
                page.add(tx, &member)?;
            }
        }
    }
    Ok((page.count as u64, page.items.into_bytes()))
}

/// A page of the list while it is read.
struct AccessPage<'p> {
    target: Target,
    project: &'p projects::Meta,
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
        let access = self.target.access(tx, self.project, member)?;
        if self.filter.access_level.is_none_or(|level| level == access.level()) {
            if self.window.shows(self.count) {
                self.render(tx, &access)?;
            }
            self.count += 1;
        }
        Ok(())
    }

    fn push(&mut self, tx: &impl Tx, member: &Membership) -> Result<()> {
        let access = self.target.access(tx, self.project, member)?;
        self.render(tx, &access)
    }

    fn render(&mut self, tx: &impl Tx, access: &MemberAccess) -> Result<()> {
        let Membership { organization, user, id, .. } = access.tenant.member;
        let Self { visibility, items, .. } = self;
        items.push(MemberAccessBody {
            user: EmbeddedUser::find(tx, Some(user))?,
            organization_member: id,
            access_level: access.level(),
            can_edit_access_levels: access.can_edit_access_levels(tx)?,
            because: WrittenBy(&mut |out| {
                Array::write(out, |array| {
                    for mut reason in reasons(tx, access)? {
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
