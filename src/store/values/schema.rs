//! Every table and index of a data file, and the version of the file format.
//!
//! All tables map bytes to bytes. [`Key`] encodes the keys. Every value is sealed with a checksum over
//! table, key and value ([`payload`](super::payload)), which each read verifies.
//!
//! In the key descriptions below, "as above" stands for the primary key of the indexed record.

use super::key::Key;

/// The version of the file format. A file of an older format is migrated when it is opened; a file of a newer format
/// is refused.
pub const FORMAT: u64 = 1;

/// Marks a redb file as a Steward data file, in [`Table::Meta`] under [`MARK_KEY`].
pub const MARK: &[u8] = b"steward";
/// The key of the mark.
pub const MARK_KEY: &[u8] = b"mark";
/// The key of the format version: eight bytes, big-endian.
pub const FORMAT_KEY: &[u8] = b"format";
/// The key of the file's cell: eight bytes, big-endian. Absent for cell 0.
pub const CELL_KEY: &[u8] = b"cell";
/// The key of the names of the file's tables, separated by line breaks. A table that this release added has no
/// name there, and is created when the file is opened.
pub const TABLES_KEY: &[u8] = b"tables";
/// Returns the key of a tenant's count of records in `table`, in [`Table::Counts`].
pub fn count_key(table: Table, tenant: &[u8]) -> Vec<u8> {
    let mut key = table.name().to_owned().encoded();
    key.extend_from_slice(tenant);
    key
}

/// The key of the first signing secret. After a rotation it still derives the tags of API keys.
pub const SECRET_KEY: &[u8] = b"signing secret";
/// The key of the rotated signing secret, which derives all other subkeys. Absent before the first rotation.
pub const RENEWED_KEY: &[u8] = b"renewed secret";

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A table of the data file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Table {
            $($(#[$doc])* $name,)*
        }

        impl Table {
            /// All tables.
            pub const ALL: &[Table] = &[$(Table::$name),*];

            /// The table's name in the file. The number at its end is the version of the table's format.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$name => $text,)*
                }
            }

            /// Returns the table with this [`name`](Self::name).
            pub(in crate::store) fn with_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|table| table.name() == name).copied()
            }

            /// The table's name outside the file: without the version.
            pub fn plain_name(self) -> &'static str {
                self.name().split('/').next().unwrap_or_default()
            }

            /// Returns the table with this [`plain_name`](Self::plain_name).
            pub(in crate::store) fn named(plain_name: &str) -> Option<Self> {
                Self::ALL.iter().find(|table| table.plain_name() == plain_name).copied()
            }
        }
    };
}

tables! {
    /// The mark, the format version, the names of the tables and the signing secret. Key: a text.
    Meta = "meta/1",
    /// The last number of each integer id. Key: the name of the table that the ids belong to.
    Sequences = "sequences/1",
    /// Maintained counts and sums. Key: the name of the counted table or of the sum, then the tenant.
    Counts = "counts/1",

    /// Users. Key: user id.
    Users = "users/1",
    /// Unique. Key: e-mail address in lower case.
    UsersByEmail = "users_by_email/1",
    /// Unique. Key: the user's UUID.
    UsersByUuid = "users_by_uuid/1",

    /// The part of a user that only the user sees. Key: user id.
    UserProfiles = "user_profiles/1",

    /// Accounts created through an invite link whose address was never verified. Key: user id.
    LinkAccounts = "link_accounts/1",

    /// Organizations. Key: organization id.
    Organizations = "organizations/1",
    /// Unique. Key: slug.
    OrganizationsBySlug = "organizations_by_slug/1",

    /// Memberships. Key: organization, user.
    Memberships = "memberships/1",
    /// Unique. Key: membership id.
    MembershipsById = "memberships_by_id/1",
    /// Key: user, organization.
    MembershipsByUser = "memberships_by_user/1",
    /// Memberships that lists show. Key: organization, time of joining, user.
    MembershipsByJoining = "memberships_by_joining/1",
    /// Who invited a member, for members that joined by an invite. Key: organization, user.
    MembershipOrigins = "membership_origins/1",

    /// Roles. Key: organization, role.
    Roles = "roles/1",
    /// Unique. Key: organization, name in lower case.
    RolesByName = "roles_by_name/1",
    /// Members of roles. Key: organization, role, user.
    RoleMemberships = "role_memberships/1",
    /// Unique. Key: role membership id.
    RoleMembershipsById = "role_memberships_by_id/1",
    /// Key: organization, user, then as above.
    RoleMembershipsByUser = "role_memberships_by_user/1",
    /// Role memberships that lists show. Key: organization, role, time of joining, then as above.
    RoleMembershipsByJoining = "role_memberships_by_joining/1",
    /// Users that were enabled or disabled and whose role memberships do not all follow yet. Key: user id.
    PendingListings = "pending_listings/1",
    /// The role that users get when they join an organization. Key: organization.
    DefaultRoles = "default_roles/1",

    /// The part of a project that lists show. Key: organization, project.
    Projects = "projects/1",
    /// Unique. Key: project.
    ProjectsById = "projects_by_id/1",
    /// Projects with `access_control` on. Key: organization, project.
    ProjectsPrivate = "projects_private/1",
    /// The part of a project that only its own response shows. Key: organization, project.
    ProjectSettings = "project_settings/1",
    /// Access levels on projects. Key: organization, project, subject: everyone, a role or a user.
    Grants = "grants/1",
    /// Grants for one member. Key: organization, user, then as above.
    GrantsByUser = "grants_by_user/1",
    /// Grants for one role. Key: organization, role, then as above.
    GrantsByRole = "grants_by_role/1",

    /// Domains. Key: organization, domain id.
    Domains = "domains/1",
    /// Unique over all organizations. Key: the domain's name.
    DomainsByName = "domains_by_name/1",
    /// Key: organization, name, domain id.
    DomainsOfOrganization = "domains_of_organization/1",

    /// Batch exports. Key: project, export id.
    BatchExports = "batch_exports/1",
    /// Unique. Key: export id.
    BatchExportsById = "batch_exports_by_id/1",
    /// Key: organization, serial number, then as above.
    BatchExportsOfOrganization = "batch_exports_of_organization/1",
    /// Key: project, serial number, then as above.
    BatchExportsOfProject = "batch_exports_of_project/1",
    /// The secret configuration of a batch export, if it has any. Key: project, export id.
    BatchExportSecrets = "batch_export_secrets/1",

    /// Invites. Key: organization, invite id.
    Invites = "invites/1",
    /// Unique. Key: invite id.
    InvitesById = "invites_by_id/1",
    /// Unique. Key: organization, address in lower case.
    InvitesByAddress = "invites_by_address/1",
    /// Key: organization, serial number, invite id.
    InvitesBySerial = "invites_by_serial/1",
    /// What became of the mail of an invite. Key: organization, invite id.
    InviteMails = "invite_mails/1",

    /// Outbox messages: mails that wait to be sent. Key: message id.
    Outbox = "outbox/1",
    /// Key: time at which the mail is due, message id.
    OutboxByDueAt = "outbox_by_due_at/1",
    /// The last attempts to send mails of an organization, for the invites of a user, or to a mailbox. Key: 0 and the
    /// organization, 1 and the user, or 2 and the mailbox.
    MailPaces = "mail_paces/1",
    /// Key: time at which the record expires, then as above.
    MailPacesByExpiry = "mail_paces_by_expiry/1",

    /// API keys. Key: key id.
    ApiKeys = "api_keys/1",
    /// Key: user, key id.
    ApiKeysByUser = "api_keys_by_user/1",
    /// When a key was last used, to the hour. Key: key id.
    ApiKeyUses = "api_key_uses/1",
    /// The permissions of the keys that created or rotated a key's secrets. Key: key id.
    ApiKeyMakers = "api_key_makers/1",

    /// Console sessions. Key: session id.
    Sessions = "sessions/1",
    /// Key: user, session id.
    SessionsByUser = "sessions_by_user/1",
    /// Links that create a console session once. Key: keyed digest of the link's code.
    SignInLinks = "sign_in_links/1",
    /// Key: user, expiry, keyed digest of the link's code.
    SignInLinksByUser = "sign_in_links_by_user/1",
    /// Requests for a sign-in mail. Key: keyed digest of the nonce of the browser that asked.
    SignInRequests = "sign_in_requests/1",
    /// Requests that a user gets a mail for. Key: user, then as above.
    SignInRequestsByUser = "sign_in_requests_by_user/1",

    /// The part of a dashboard that lists show. Key: project, dashboard.
    Dashboards = "dashboards/1",
    /// Live dashboards, complete. Key: project, not pinned, name (null last), dashboard.
    DashboardsByName = "dashboards_by_name/1",
    /// The part of a dashboard that only its own response shows, unless it is empty. Key: project, dashboard.
    DashboardDetails = "dashboard_details/1",

    /// Insights, the content of tiles that show a query. Key: project, insight.
    Insights = "insights/1",
    /// Unique. Key: project, short id.
    InsightsByShortId = "insights_by_short_id/1",
    /// Who deleted a dashboard or an insight and when, while it is deleted. Key: project, kind of object, number.
    Deletions = "deletions/1",
    /// Key: project, kind of object, time, then as above.
    DeletionsByTime = "deletions_by_time/1",
    /// Texts, the content of tiles that show Markdown. Key: project, text.
    Texts = "texts/1",
    /// Tiles of dashboards. After insights and texts, because an import reads the tables in this order and what a tile
    /// adds to a sum depends on its content. Key: project, dashboard, tile.
    Tiles = "tiles/1",
    /// Tiles that show an insight. Key: project, insight, whether the tile is deleted, then as above.
    TilesByInsight = "tiles_by_insight/1",
    /// Tiles that show a text, deleted ones included. Key: project, text, then as above.
    TilesByText = "tiles_by_text/1",

    /// Access rules on objects. Key: project, kind of object, object (null for all of the kind), subject.
    AccessRules = "access_rules/1",
    /// Rules for one member. Key: organization, user, then as above.
    AccessRulesByMember = "access_rules_by_member/1",
    /// Rules for one role. Key: organization, role, then as above.
    AccessRulesByRole = "access_rules_by_role/1",
    /// Rules for everyone. Key: project, kind of object, then as above.
    AccessRulesForAll = "access_rules_for_all/1",

    /// Collaborators of restricted dashboards. Key: project, dashboard, user.
    Collaborators = "collaborators/1",
    /// Key: organization, user, then as above.
    CollaboratorsByUser = "collaborators_by_user/1",

    /// Whether an object has a public page, and its token. Key: project, kind of object, number.
    Sharing = "sharing/1",
    /// Unique. Key: keyed hash of a token that opens a public page, whether the token was replaced.
    SharingTokens = "sharing_tokens/1",

    /// Entries of the activity log. Packed, and so are its indexes. Key: organization, time, entry id.
    Activity = "activity/1",
    /// Key: project, then as above.
    ActivityByProject = "activity_by_project/1",
    /// Key: organization, user, then as above.
    ActivityByUser = "activity_by_user/1",
    /// Key: organization, the changed resource, then as above.
    ActivityByItem = "activity_by_item/1",

    /// Responses to requests with an `Idempotency-Key`. Key: requester, hash of path and key.
    Idempotency = "idempotency/1",
    /// Key: time, then as above.
    IdempotencyByMoment = "idempotency_by_moment/1",
    /// Key: requester, time, then as above.
    IdempotencyByRequester = "idempotency_by_requester/1",
    /// The bodies of stored responses, in parts. Key: requester, hash of path and key, number of the part.
    IdempotencyParts = "idempotency_parts/1",
    /// References to the resources of responses whose bodies are not stored. Key: requester, hash of path and key.
    IdempotencyObjects = "idempotency_objects/1",

    /// Deleted organizations, projects, memberships and roles whose records are not all deleted yet. Key: organization,
    /// then a role, or null and 0, the project, or the user with the highest bit set.
    Sweeps = "sweeps/1",

    /// Imports of organizations that are not complete, and the accounts that they created. Key: whether it is an account,
    /// organization, user or 0.
    Imports = "imports/1",

    /// Which node of a shared database does the work that only one node may do. Empty in a data file. Key: the duty.
    Leases = "leases/1",
}

impl Table {
    /// The tables that belong to one file and to a short time: backups and exports leave them out, and a restore clears
    /// them. They have no counts, sums or sequences, and no other record refers to theirs.
    pub(in crate::store) const TRANSIENT: &[Self] = &[
        Self::Sessions,
        Self::SessionsByUser,
        Self::SignInLinks,
        Self::SignInLinksByUser,
        Self::SignInRequests,
        Self::SignInRequestsByUser,
        Self::Leases,
    ];

    /// Whether the values of the table are blocks of several entries ([`packed`](crate::store::packed)).
    pub(in crate::store) const fn is_packed(self) -> bool {
        matches!(
            self,
            Self::Activity | Self::ActivityByProject | Self::ActivityByUser | Self::ActivityByItem
        )
    }

    /// Whether backups and exports leave the table out.
    pub fn is_transient(self) -> bool {
        Self::TRANSIENT.contains(&self)
    }

    /// Returns the tables that a backup contains.
    pub(in crate::store) fn backed_up() -> Vec<Self> {
        Self::ALL.iter().filter(|table| !table.is_transient()).copied().collect()
    }
}

/// One slot for each table, found by index instead of by hash. On the heap, because what holds the slots is moved often.
pub(in crate::store) struct PerTable<T>(Box<[T]>);

impl<T> PerTable<T> {
    pub(in crate::store) fn new(empty: impl Fn() -> T) -> Self {
        Self(Table::ALL.iter().map(|_| empty()).collect())
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(in crate::store) fn slot(&self, table: Table) -> &T {
        &self.0[table as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "there is a slot for each table")]
    pub(in crate::store) fn slot_mut(&mut self, table: Table) -> &mut T {
        &mut self.0[table as usize]
    }
}
