//! What the tests, benchmarks, fuzz targets and examples of this repository use besides the public items. This module is not
//! part of the library's interface and may change without notice.

pub mod auth {
    pub use crate::auth::{InProject, PathTarget, Requirements};
}
pub mod bootstrap {
    pub use crate::operator::bootstrap::{CreatedWorkspace, InitialRecords, create_at, import};
}
pub mod config {
    pub use crate::config::{Caps, Config, MailConfig, RateLimit, Switch};
}
pub mod error {
    pub use crate::base::error::{Error, Result};
}
pub mod fair_queue {
    pub use crate::fair::fair_queue::Consumer;
}
pub mod http {
    pub use crate::http::client::Peer;
    pub use crate::http::form::Form;
    pub use crate::http::openapi::build_document;
    pub use crate::http::routes::{PageAccess, PageSpec, RouteSpec};
    pub mod logging {
        pub use crate::http::logging::{LogFormat, init};
    }
}
pub mod idempotency {
    pub use crate::exchange::idempotency::{
        IdempotencyRequest, IdempotentResponse, MAX_RESPONSES_PER_REQUESTER, StoredBodyPart,
        StoredObjectRef, StoredResponse, find, store,
    };
}
pub mod ids {
    pub use crate::ids::{
        ActivityId, ApiKeyId, BatchExportId, CollaboratorId, DashboardId, DomainId, InsightId,
        InviteId, MembershipId, OrganizationId, OutboxMessageId, ProjectId, RequesterId, RoleId,
        RoleMembershipId, SessionId, TileId, UserId, UserUuid,
    };
}
pub mod input {
    pub use crate::input::{Input, JsonObject, Parsed, require_object};
}
pub mod leases {
    pub use crate::leases::{LeaseWatch, list};
}
pub mod mail {
    pub use crate::mail::compose::{ComposeMail, Composed, Delivery, MailContent, MailKind};
    pub use crate::mail::mailer::Mailer;
    pub use crate::mail::outbox::{Notification, OutboxMessage, cancel, enqueue, queued_count};
    pub use crate::mail::pace::{Pace, PaceKey};
    pub use crate::mail::wire::SendError;
    pub use crate::mail::worker::MailWorker;
}
pub mod metrics {
    pub use crate::metrics::{Metrics, Series};
}
pub mod operator {
    pub use crate::operator::{KeyOptions, Operation, OrganizationOptions, UserOptions, perform};
}
pub mod resources {
    pub use crate::resources::record_registry;
    pub mod access_controls {
        pub use crate::resources::access_controls::levels::AccessLevel;
        pub use crate::resources::access_controls::rules::{AccessRule, BY_MEMBER, BY_ROLE};
    }
    pub mod activity {
        pub use crate::resources::activity::{Detail, Entry, Fields, Meta, NO_ORGANIZATION};
    }
    pub mod api_keys {
        pub use crate::resources::api_keys::{ApiKey, ApiKeyUse, Grantors, list, record_use};
    }
    pub mod batch_exports {
        pub use crate::resources::batch_exports::{
            BatchExport, BatchExportFields, PatchBody, Secrets,
        };
    }
    pub mod cascade_delete {
        pub use crate::resources::cascade_delete::{
            delete_account_data, delete_batch, delete_member, delete_organization, delete_project,
            delete_role, delete_up_to, needs_batches,
        };
        pub use crate::resources::shared::pending_deletion::PendingDeletion;
    }
    pub mod collaborators {
        pub use crate::resources::collaborators::{BY_USER, Collaborator};
    }
    pub mod dashboards {
        pub use crate::resources::dashboards::deletions::Deletion;
        pub use crate::resources::dashboards::{Dashboard, Details};
        pub mod insights {
            pub use crate::resources::dashboards::insights::{Fields, Insight, delete};
        }
        pub mod tiles {
            pub use crate::resources::dashboards::tiles::{
                Content, Fields, MAX_TILES, Tile, add_insight, add_text,
            };
        }
    }
    pub mod domains {
        pub use crate::resources::domains::{Domain, verify};
    }
    pub mod invites {
        pub use crate::resources::invites::InviteMail;
    }
    pub mod members {
        pub use crate::resources::members::{Level, Membership, find, set_listed};
    }
    pub mod organizations {
        pub use crate::resources::organizations::{NewOrganization, Organization, create};
    }
    pub mod projects {
        pub use crate::resources::projects::{
            NewProject, Project, Settings, create, create_first, find_by_id,
        };
        pub mod grants {
            pub use crate::resources::projects::grants::{BY_USER, Grant, GrantLevel, raise};
        }
    }
    pub mod relocation {
        pub use crate::resources::relocation::{Batches, Plan, select};
    }
    pub mod roles {
        pub use crate::resources::roles::{
            DefaultRole, PendingListing, Role, RoleMembership, continue_listing, set_listed,
        };
    }
    pub mod shared {
        pub use crate::resources::shared::access_objects::{Kind, Object};
        pub use crate::resources::shared::access_subject::Subject;
        pub use crate::resources::shared::import_mark::{Attempt, ImportMark};
    }
    pub mod sharing {
        pub use crate::resources::sharing::{Sharing, SharingTokens};
    }
    pub mod sessions {
        pub use crate::resources::sessions::{
            Fields, Session, SignInLink, SignInRequest, VerifiedSession,
        };
    }
    pub mod users {
        pub use crate::resources::users::{
            BY_UUID, User, find_by_email, owner_of, set_current_tenant,
        };
    }
}
pub mod router {
    pub use crate::router::{router, routes};
}
pub mod secret {
    pub use crate::base::secret::{Seed, SeedSource};
}
pub mod state {
    pub use crate::app::{ImportedOrganization, PageKey};
}
pub mod store {
    pub use crate::store::file_system::{FileIdentity, FileSystem, FreeBytes, FsFile};
    pub use crate::store::schema::FORMAT;
    pub use crate::store::{
        BoundedRead, Cell, ExportOptions, FreeSpace, Imported, Key, OpenError, Order, Place,
        PreparedRestore, Progress, Raw, Record, SelectOrganization, SentCopy, Snapshot,
        StagedExport, Store, Table, Tx, Window, WriteTx, beside, canonical_line, import, receive,
    };
}
pub mod time {
    pub use crate::base::time::{Clock, ManualClock, Timestamp};
}
