//! Every table and index of a data file, and the version of their form.
//!
//! All tables map bytes to bytes. Keys are written by [`Key`](super::Key); every value is sealed with
//! a checksum over table, key and value ([`record`](super::record)), which each read verifies.

/// The form of the tables below. A file of an older form is migrated when it is opened, one of a
/// newer form is refused.
pub const FORMAT: u64 = 5;

/// Marks a redb file as one of ours, in [`Table::Meta`] under [`MARK_KEY`].
pub const MARK: &[u8] = b"steward";
/// Where the mark stands.
pub const MARK_KEY: &[u8] = b"mark";
/// Where the format version stands, as eight bytes, most significant first.
pub const FORMAT_KEY: &[u8] = b"format";
/// Where the signing secret stands.
pub const SECRET_KEY: &[u8] = b"signing secret";
/// Where what took its place stands, but for the tags of API keys, since it was renewed.
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
            /// All of them.
            pub const ALL: &[Table] = &[$(Table::$name),*];

            /// The table's name in the file; the number at its end is the version of its form.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Table::$name => $text,)*
                }
            }

            /// What it is called outside the file: its name without the version.
            pub fn plain_name(self) -> &'static str {
                self.name().split('/').next().unwrap_or_default()
            }
        }
    };
}

tables! {
    /// The mark, the format version, the signing secret. Key: a word.
    Meta = "meta/1",
    /// The next number of each integer id. Key: the name of the table it numbers.
    Sequences = "sequences/1",
    /// Maintained counts. Key: the counted table's name, then the tenant.
    Counts = "counts/1",

    /// Users. Key: user id.
    Users = "users/1",
    /// Unique. Key: e-mail address in lower case.
    UsersByEmail = "users_by_email/1",
    /// Unique. Key: the user's UUID.
    UsersByUuid = "users_by_uuid/1",

    /// What only the user sees of themselves. Key: user id.
    UserProfiles = "user_profiles/1",

    /// Accounts that only an invite's link made and whose address was never proven. Key: user id.
    LinkAccounts = "link_accounts/1",

    /// Organizations. Key: organization id.
    Organizations = "organizations/1",
    /// Unique. Key: slug.
    OrganizationsBySlug = "organizations_by_slug/1",

    /// Memberships. Key: organization, user.
    Memberships = "memberships/1",
    /// Key: user, organization.
    MembershipsByUser = "memberships_by_user/1",
    /// Those that lists show. Key: organization, moment of joining, user.
    MembershipsByJoining = "memberships_by_joining/1",
    /// By whose invite members joined, for those who joined by one. Key: organization, user.
    MembershipOrigins = "membership_origins/1",

    /// What a list of projects shows. Key: organization, project.
    Projects = "projects/1",
    /// Unique. Key: project.
    ProjectsById = "projects_by_id/1",
    /// Projects with `access_control` on. Key: organization, project.
    ProjectsPrivate = "projects_private/1",
    /// What only a single project shows. Key: organization, project.
    ProjectSettings = "project_settings/1",
    /// Members' grants on projects. Key: organization, project, user.
    Grants = "grants/1",
    /// Key: organization, user, project.
    GrantsByUser = "grants_by_user/1",

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
    /// What of a batch export is never shown, where there is any. Key: project, export id.
    BatchExportSecrets = "batch_export_secrets/1",

    /// Invites. Key: organization, invite id.
    Invites = "invites/1",
    /// Unique. Key: invite id.
    InvitesById = "invites_by_id/1",
    /// Unique. Key: organization, address in lower case.
    InvitesByAddress = "invites_by_address/1",
    /// Key: organization, serial number, invite id.
    InvitesBySerial = "invites_by_serial/1",

    /// Mails that wait to be sent. Key: letter id.
    Outbox = "outbox/1",
    /// Key: organization, the moment of the next attempt, letter id.
    OutboxByOrganization = "outbox_by_organization/1",
    /// Mails that were sent within the hour. Key: moment, letter id.
    MailSent = "mail_sent/1",
    /// Key: mailbox, moment, letter id.
    MailSentByAddress = "mail_sent_by_address/1",
    /// Key: organization, moment, letter id.
    MailSentByOrganization = "mail_sent_by_organization/1",
    /// Those that a user caused. Key: user, moment, letter id.
    MailSentByUser = "mail_sent_by_user/1",

    /// API keys. Key: key id.
    ApiKeys = "api_keys/1",
    /// Key: user, key id.
    ApiKeysByUser = "api_keys_by_user/1",
    /// When a key was last used, at most hourly. Key: key id.
    ApiKeyUses = "api_key_uses/1",
    /// Digests of the secrets of keys: of the current one, and of the one before with its end. Formats before 5 have
    /// them only of keys that were rolled, hence the name. Key: key id.
    ApiKeyVerifiers = "api_key_rolls/1",
    /// What the keys held that made the secrets of others. Key: key id.
    ApiKeyMakers = "api_key_makers/1",

    /// What a list of dashboards shows. Key: project, dashboard.
    Dashboards = "dashboards/1",
    /// Live dashboards, whole. Key: project, not pinned, name (null last), dashboard.
    DashboardsByName = "dashboards_by_name/1",
    /// What only a single dashboard shows, where that is not all empty. Key: project, dashboard.
    DashboardDetails = "dashboard_details/1",

    /// Who removed a dashboard, and when, while it is removed. Key: project, dashboard.
    Removals = "removals/1",
    /// Key: project, moment, dashboard.
    RemovalsByMoment = "removals_by_moment/1",
    /// What tiles show: queries. Key: project, insight.
    Insights = "insights/1",
    /// What tiles show: Markdown. Key: project, text.
    Texts = "texts/1",
    /// Tiles of dashboards. Stands behind what tiles show: an import reads the tables in this order, and what a tile
    /// adds to a sum rests on what it shows. Key: project, dashboard, tile.
    Tiles = "tiles/1",
    /// Live tiles that show an insight. Key: project, insight, then as above.
    TilesByInsight = "tiles_by_insight/1",
    /// Tiles that show a text, removed ones too. Key: project, text, then as above.
    TilesByText = "tiles_by_text/1",

    /// What members may do with dashboards, or anyone by default. Key: project, dashboard (none for all),
    /// user (none for everyone).
    AccessRules = "access_rules/1",
    /// Those that name a member. Key: organization, user, then as above.
    AccessRulesByMember = "access_rules_by_member/1",
    /// Those for everyone. Key: project, then as above.
    AccessRulesForAll = "access_rules_for_all/1",

    /// Who edits a restricted dashboard. Key: project, dashboard, user.
    Collaborators = "collaborators/1",
    /// Key: organization, user, then as above.
    CollaboratorsByUser = "collaborators_by_user/1",

    /// Whether a dashboard has a public page, and under which token. Key: project, dashboard.
    Sharing = "sharing/1",
    /// Unique. Key: keyed hash of a token that opens a public page, whether it was replaced.
    SharingTokens = "sharing_tokens/1",

    /// What was changed, by whom. Key: organization, moment, entry id.
    Activity = "activity/1",
    /// Key: project, then as above.
    ActivityByProject = "activity_by_project/1",
    /// Key: organization, user, then as above.
    ActivityByUser = "activity_by_user/1",
    /// Key: organization, what was changed, then as above.
    ActivityByItem = "activity_by_item/1",

    /// Answers to requests that carried an `Idempotency-Key`. Key: requester, hash of path and key.
    Idempotency = "idempotency/1",
    /// Key: moment, then as above.
    IdempotencyByMoment = "idempotency_by_moment/1",
    /// Key: requester, moment, then as above.
    IdempotencyByRequester = "idempotency_by_requester/1",
    /// Their bodies, in pieces. Key: requester, hash of path and key, the piece's place.
    IdempotencyParts = "idempotency_parts/1",
    /// The objects that answers show whose bodies are not kept. Key: requester, hash of path and key.
    IdempotencyObjects = "idempotency_objects/1",

    /// Removed parents whose records have yet to be swept. Key: organization, then the project or 0.
    Sweeps = "sweeps/1",
}

/// The tables of older forms that this one has no more.
pub(super) const RETIRED: &[&str] = &["outbox_by_due/1"];
