//! Every identifier of the service, each a type of its own.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::store::{Key, Owner, key};

macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::from_str(text).map(Self)
            }
        }

        impl Key for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(self.0.as_bytes());
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                key::take::<16>(input).map(|bytes| Self(Uuid::from_bytes(bytes)))
            }
        }
    )*};
}

macro_rules! integer_ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                u64::from_str(text).map(Self)
            }
        }

        impl Key for $name {
            fn write(&self, out: &mut Vec<u8>) {
                self.0.write(out);
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                u64::read(input).map(Self)
            }
        }
    )*};
}

uuid_ids! {
    /// An organization: the tenant everything else lies in.
    OrganizationId;
    /// A user, as paths name them (`members/:user__uuid/`).
    UserUuid;
    /// A membership: one user in one organization.
    MembershipId;
    /// A personal API key, as listings name it. It is public; the key's secret is not derived from it.
    ApiKeyId;
    /// An entry of the activity log.
    ActivityId;
    /// A domain of an organization.
    DomainId;
    /// A batch export of a project.
    BatchExportId;
    /// An invite to an organization.
    InviteId;
    /// A collaborator of a dashboard, as lists name them.
    CollaboratorId;
    /// A mail that waits to be sent. An invite's has the invite's own id.
    LetterId;
    /// Whose request is to be done once: a user's, by their UUID, or that of whoever accepts an invite, by its id.
    RequesterId;
}

impl OrganizationId {
    /// The organization as the one that the bytes of a record count to.
    pub const fn owner(self) -> Owner {
        Owner::Organization(self.0)
    }
}

integer_ids! {
    /// A user.
    UserId;
    /// A project.
    ProjectId;
    /// A dashboard, unique over all projects.
    DashboardId;
    /// A tile of a dashboard, unique over all projects.
    TileId;
    /// An insight, unique over all projects.
    InsightId;
    /// A text on tiles, unique over all projects.
    TextId;
}
