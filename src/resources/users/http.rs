//! `/api/users/@me/`.

use std::sync::Arc;

use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::http::prelude::*;
use crate::ids::{UUID_PATTERN, UserUuid};
use crate::input::ParsedWithKept;
use crate::resources::members::{self, Membership};
use crate::resources::organizations::http::body::{
    self as organization_body, BasicOrganization, MAX_PROJECTS, OrganizationBody, write_basic_of,
    write_full,
};
use crate::resources::projects;
use crate::resources::projects::api::ProjectSummary;
use crate::resources::shared::prelude::*;

use super::api::{ThemeMode, ToolbarMode};
use super::{Profile, User, UserFilter, UserPatch};

const ME: &str = "/api/users/@me/";
/// With more organizations than this, the response is rendered outside of the write transaction.
const MAX_INLINE_ORGANIZATIONS: u64 = 32;

/// Adds the routes of users.
pub fn routes(routes: &mut Routes) {
    routes.resource("users", "The account of the caller.");
    routes
        .get(ME, "users_retrieve", Requirements::scope("user:read"), retrieve)
        .summary("Retrieve your account, with your current organization and project.")
        .returns::<CurrentUser>(200);
    routes
        .patch(ME, "users_partial_update", Requirements::scope("user:write"), update)
        .summary("Update your account, and what `@current` refers to.")
        .body::<UserPatch>()
        .example(r#"{"first_name": "Ann", "set_current_team": 2}"#)
        .returns::<CurrentUser>(200);
}

impl PathParameter for UserFilter {
    const NAME: &'static str = "user__uuid";
    const DESCRIPTION: &'static str = "The user's UUID, or `@me` for yourself.";

    fn schema() -> RefOr<Schema> {
        let pattern = format!("^(@me|{UUID_PATTERN})$");
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }

    fn parse(text: &str) -> Result<Self> {
        match text {
            "@me" => Ok(Self::Caller),
            uuid => uuid.parse().map(Self::Uuid).map_err(|_| Error::not_found()),
        }
    }
}

async fn retrieve(at: ReadAccess<Global>) -> ApiResult {
    at.read(|tx, at| body(tx, &at.caller)).await.map(ApiResponse::Object)
}

async fn update(at: WriteAccess<Global>, JsonBody(sent): JsonBody) -> ApiResult {
    // An acceptance of an invite takes any role.
    let patch = ParsedWithKept::<UserPatch>::new(&sent, "role_at_organization");
    at.update_and_render::<User>(
        move |tx, caller, _: &Global, _, large| {
            let role = tx.get::<User>(&caller.user.id)?.fields.role_at_organization;
            let patch = patch.get(role.as_deref())?;
            let current = current_after(tx, caller, patch)?;
            super::update(tx, caller.user.id, patch, current)?;
            let is_large = is_expensive(tx, &reload_caller(tx, caller)?)?;
            large.require_reserved(is_large.then_some(0))?;
            Ok((caller.user.id, is_large))
        },
        |tx, caller, _| body(tx, &reload_caller(tx, caller)?),
    )
    .await
}

/// Returns the caller with the updated user.
fn reload_caller(tx: &dyn Raw, caller: &Caller) -> Result<Caller> {
    let user = tx.meta::<User>(&caller.user.id)?.ok_or_else(Error::not_found)?;
    Ok(Caller { user, key: Arc::clone(&caller.key) })
}

/// Returns whether rendering the caller takes long, so that it must happen outside of the write transaction.
fn is_expensive(tx: &dyn Raw, caller: &Caller) -> Result<bool> {
    if tx.count::<Membership>(&caller.user.id)? > MAX_INLINE_ORGANIZATIONS {
        return Ok(true);
    }
    let current = members::current_organization(tx, &caller.user)?;
    current.map_or(Ok(false), |id| organization_body::is_expensive(tx, id))
}

/// Returns what `@current` refers to after the update: the organization and project in the request, or else the stored
/// ones. Fails if the caller may not access them.
fn current_after(
    tx: &WriteTx<'_>,
    caller: &Caller,
    patch: &UserPatch,
) -> Result<(Option<OrganizationId>, Option<ProjectId>)> {
    let mut current = (caller.user.current_organization, caller.user.current_project);
    if let Patch::Value(id) = patch.set_current_organization {
        let id = OrganizationId(id);
        let member = caller.open_membership(tx, id)?;
        member.ok_or_else(|| does_not_exist("set_current_organization", id))?;
        current.0 = Some(id);
    }
    if let Patch::Value(id) = patch.set_current_team {
        let id = ProjectId(id);
        let refused = || does_not_exist("set_current_team", id);
        let project = projects::find_by_id(tx, id)?.ok_or_else(refused)?;
        let member = caller.open_membership(tx, project.organization)?.ok_or_else(refused)?;
        if !caller.key.reaches_project(id) || !projects::is_visible(tx, &member, &project)? {
            return Err(refused());
        }
        current = (Some(project.organization), Some(id));
    }
    Ok(current)
}

/// Returns the JSON of the caller, with the organizations and the project that the key can access.
fn body(tx: &dyn Raw, caller: &Caller) -> Result<Versioned> {
    let current = members::current_organization(tx, &caller.user)?;
    let member = current.map_or(Ok(None), |id| caller.open_membership(tx, id))?;
    let User { meta, fields } = tx.get(&caller.user.id)?;
    let Profile { fields: profile, .. } = tx.get(&caller.user.id)?;
    let body = CurrentUser {
        date_joined: meta.date_joined,
        uuid: fields.uuid,
        distinct_id: fields.distinct_id,
        first_name: fields.first_name,
        last_name: fields.last_name,
        email: fields.email,
        is_email_verified: fields.is_email_verified,
        notification_settings: profile.notification_settings,
        anonymize_data: profile.anonymize_data,
        toolbar_mode: profile.toolbar_mode,
        id: fields.id,
        events_column_config: profile.events_column_config,
        has_seen_product_intro_for: profile.has_seen_product_intro_for,
        theme_mode: profile.theme_mode,
        hedgehog_config: profile.hedgehog_config,
        role_at_organization: fields.role_at_organization,
        team: WrittenBy(&mut |out| write_team(tx, caller, member.as_ref(), out)),
        organization: WrittenBy(&mut |out| match &member {
            Some(member) => write_full(tx, member, &caller.key, MAX_PROJECTS, out).map(drop),
            None => JsonText::<Option<OrganizationBody<'_>>>::NULL.write_json(out),
        }),
        organizations: WrittenBy(&mut |out| write_basic_of(tx, caller, out)),
    };
    let json = body.to_json(4096)?;
    Ok(Versioned::new(tx.version::<User>(&caller.user.id)?, json))
}

fn write_team(
    tx: &dyn Raw,
    caller: &Caller,
    member: Option<&Membership>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let only = caller.key.scoped_projects();
    let project = projects::current_project(tx, &caller.user, member, only)?;
    let written = match project {
        Some(project) if caller.open_membership(tx, project.organization)?.is_some() => {
            tx.view::<projects::Project, _>(&(project.organization, project.id), |row| {
                ProjectSummary { own: row.json() }.write_json(out)
            })?
        }
        _ => None,
    };
    if written.is_none() {
        JsonText::<Option<ProjectSummary<'_>>>::NULL.write_json(out)?;
    }
    Ok(())
}

output! {
    /// The caller's account, with the organization and the project that `@current` refers to.
    struct CurrentUser<'a> {
        /// When the user was created.
        date_joined: Timestamp,
        /// The id of the user in paths.
        uuid: UserUuid,
        /// A random token that never changes.
        distinct_id: String,
        /// The given name.
        first_name: String,
        /// The family name.
        last_name: String,
        /// The address, with its domain in lower case. Read-only.
        #[schema(format = IdnEmail)]
        email: String,
        /// Always null: addresses do not change.
        pending_email: Option<String> = null,
        /// Whether the user proved the address.
        is_email_verified: bool,
        /// The notifications that the user wants.
        notification_settings: Map<String, Value>,
        /// Whether data about the user's own usage is anonymized.
        anonymize_data: bool,
        /// Whether the toolbar is shown.
        toolbar_mode: String as ToolbarMode,
        /// Always false: users authenticate with API keys.
        has_password: bool = false,
        /// The numeric id of the user.
        id: UserId,
        /// Always false.
        is_staff: bool = false,
        /// Always false.
        is_impersonated: bool = false,
        /// Always null.
        is_impersonated_until: Option<Timestamp> = null,
        /// Always null.
        sensitive_session_expires_at: Option<Timestamp> = null,
        /// The columns of the events table.
        events_column_config: Value,
        /// Always false.
        is_2fa_enabled: bool = false,
        /// Always false.
        has_social_auth: bool = false,
        /// Always false.
        has_sso_enforcement: bool = false,
        /// The product introductions that the user has seen.
        has_seen_product_intro_for: Option<Map<String, Value>>,
        /// Always empty.
        scene_personalisation: Vec<Value> = [],
        /// The theme: light, dark or the system's.
        theme_mode: Option<String> as Option<ThemeMode>,
        /// The user's hedgehog avatar.
        hedgehog_config: Option<Map<String, Value>>,
        /// The role of the user in the organization, such as `engineering`.
        role_at_organization: Option<String>,
        /// The project that `@current` refers to.
        team: WrittenBy<'a> as Option<ProjectSummary>,
        /// The organization that `@current` refers to.
        organization: WrittenBy<'a> as Option<OrganizationBody>,
        /// The organizations of the user that the API key can access, at most the 100 oldest.
        organizations: WrittenBy<'a> as Vec<BasicOrganization>,
    }
}
