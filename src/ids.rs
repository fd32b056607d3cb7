//! The identifiers of all objects, each with a type of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::base::time::Timestamp;
use crate::store::{Key, Owner, key};

/// The pattern of a hyphenated UUID, for schemas.
pub const UUID_PATTERN: &str = "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}";

impl Key for Uuid {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        key::take_bytes(input).map(Self::from_bytes)
    }
}

macro_rules! ids {
    ($value:ident: $($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
            ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub $value);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = <$value as FromStr>::Err;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                <$value>::from_str(text).map(Self)
            }
        }

        impl Key for $name {
            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                <$value as Key>::read(input).map(Self)
            }
        }
    )*};
}

ids! {
    Uuid:
    /// The id of an organization, the tenant that all other objects belong to.
    OrganizationId;
    /// The UUID of a user, which paths use (`members/:user__uuid/`).
    UserUuid;
    /// The id of a membership of one user in one organization.
    MembershipId;
    /// The id of a role of an organization.
    RoleId;
    /// The id of a member's membership of a role.
    RoleMembershipId;
    /// The public id of a personal API key. The key's secret is not derived from it.
    ApiKeyId;
    /// The public id of a console session. The session's secret is not derived from it.
    SessionId;
    /// The id of an entry of the activity log.
    ActivityId;
    /// The id of a domain of an organization.
    DomainId;
    /// The id of a batch export of a project.
    BatchExportId;
    /// The id of an invite to an organization.
    InviteId;
    /// The id of a collaborator of a dashboard.
    CollaboratorId;
    /// The id of a mail in the outbox. The mail of an invite has the invite's id.
    OutboxMessageId;
    /// The id of an idempotent request's requester: a user's UUID, or the id of the invite that the request accepts.
    RequesterId;
}

impl OrganizationId {
    /// The owner that the organization's records count towards.
    pub const fn owner(self) -> Owner {
        Owner::Organization(self.0)
    }
}

/// Returns when an id was made, by the clock of that time. `None` if this service did not make it.
pub fn made_at(id: Uuid) -> Option<Timestamp> {
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros.checked_add(i64::from(nanos) / 1_000)?))
}

ids! {
    u64:
    /// The numeric id of a user.
    UserId;
    /// The id of a project.
    ProjectId;
    /// The id of a dashboard, unique across all projects.
    DashboardId;
    /// The id of a tile of a dashboard, unique across all projects.
    TileId;
    /// The id of an insight, unique across all projects.
    InsightId;
    /// The id of a text on tiles, unique across all projects.
    TextId;
}
