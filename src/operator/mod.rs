//! The operator's operations on a data file. The code is the same whether a command opens the file itself or asks the
//! running server.

mod accounts;
pub mod bootstrap;
mod options;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::tasks::run_blocking;
use crate::base::time::Timestamp;
use crate::ids::{ApiKeyId, InviteId, OutboxMessageId};
use crate::input::{Email, FieldType, Input, JsonObject};
use crate::leases;
use crate::mail::compose::{MailContent, MailKind};
use crate::resources::api_keys::{self, ApiKey, KeyPermissions, Scopes};
use crate::resources::members::Membership;
use crate::resources::organizations::{self, NewOrganization, Organization};
use crate::resources::projects::{self, NewProject};
use crate::resources::users::{self, NewUser, User};
use crate::resources::{invites, record_registry};
use crate::store::{Order, Progress, Record, Snapshot, Tx, Window, WriteTx};

pub use options::{KeyOptions, OrganizationOptions, UserOptions};

/// One operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Operation {
    /// Creates an organization with its first project, and its owner if no user has the address.
    OrganizationCreate(OrganizationOptions),
    /// Lists all organizations.
    OrganizationList,
    /// Creates a user, and its membership if an organization is given.
    UserCreate(UserOptions),
    /// Lists all users.
    UserList,
    /// Enables or disables a user. The keys of a disabled user are invalid.
    UserSetActive {
        /// The user's email address.
        email: String,
        /// Whether the user is enabled.
        active: bool,
    },
    /// Creates an API key for a user.
    KeyCreate(KeyOptions),
    /// Lists all API keys.
    KeyList,
    /// Revokes an API key.
    KeyRevoke {
        /// The key's public id.
        id: ApiKeyId,
    },
    /// Returns the link that accepts an invite.
    InviteLink {
        /// The invite's id.
        id: InviteId,
    },
    /// Creates a link that signs a user in to the console once.
    ConsoleLink {
        /// The user's email address. May be left out if there is only one active user.
        email: Option<String>,
        /// Whether the session may see the pages for the operator.
        is_operator: bool,
        /// Accepts a user whose address is unverified: an invite's link created the account.
        existing: bool,
    },
    /// Sends a test mail at once, without the outbox.
    MailTest {
        /// The recipient's address.
        to: String,
    },
    /// Lists the nodes of a shared database.
    NodeList,
    /// Checks the data file for damage.
    Check,
    /// Returns the unused space of the data file to the file system.
    Compact,
    /// Rotates the signing secret. The tags of API keys keep the old one, so that the keys stay valid.
    SecretsRotate,
    /// Replaces the data file with the copy of a backup that is prepared beside it.
    Restore,
}

impl Operation {
    /// Whether the operation leaves the data as it is.
    pub const fn only_reads(&self) -> bool {
        matches!(
            self,
            Self::OrganizationList
                | Self::UserList
                | Self::KeyList
                | Self::InviteLink { .. }
                | Self::MailTest { .. }
                | Self::NodeList
                | Self::Check
        )
    }
}

/// Performs the operation and returns the JSON that `--json` prints. Long operations report to `progress`.
///
/// # Errors
/// The error of a rule, or 503 if the file cannot be read or written.
pub async fn perform(app: &App, operation: Operation, progress: Progress) -> Result<Value> {
    // The list of nodes tells why a node does not serve.
    if !matches!(operation, Operation::NodeList) {
        app.store().refresh().await?;
    }
    match operation {
        Operation::OrganizationCreate(options) => create_organization(app, options).await,
        Operation::OrganizationList => {
            let quota = app.config().caps.organization_quota;
            read_blocking(app, move |tx| list_organizations(tx, quota)).await
        }
        Operation::UserCreate(options) => accounts::create_user(app, options).await,
        Operation::UserList => read_blocking(app, accounts::list_users).await,
        Operation::UserSetActive { email, active } => {
            accounts::set_active(app, email, active).await
        }
        Operation::KeyCreate(options) => create_key(app, options).await,
        Operation::KeyList => read_blocking(app, list_keys).await,
        Operation::KeyRevoke { id } => {
            app.operate(move |tx, _| api_keys::remove(tx, id)).await.map_err(|error| {
                if error.status() == 404 { not_found("key", &id) } else { error }
            })?;
            Ok(json!({ "id": id }))
        }
        Operation::InviteLink { id } => invite_link(app, id),
        Operation::ConsoleLink { email, is_operator, existing } => {
            accounts::create_link(app, email.as_deref(), is_operator, existing).await
        }
        Operation::MailTest { to } => test_mail(app, &to).await,
        Operation::NodeList => list_nodes(app).await,
        Operation::Check => {
            app.require_room_for_copy()?;
            let findings = app.store().check(record_registry(), progress).await?;
            serde_json::to_value(findings).map_err(Error::internal)
        }
        Operation::Compact => {
            serde_json::to_value(app.store().compact(&progress).await?).map_err(Error::internal)
        }
        Operation::SecretsRotate => {
            let renewed =
                ["invite links", "public pages", "live events tokens", "console sessions"];
            let pages = app.rotate_secrets().await?;
            Ok(json!({ "renewed": renewed, "public_pages": pages }))
        }
        Operation::Restore => {
            let restored = app.store().restore(app.now().to_file_stamp()).await?;
            app.resume_after_restore();
            serde_json::to_value(restored).map_err(Error::internal)
        }
    }
}

/// Runs `list` off the request threads, because a list may be long.
async fn read_blocking(
    app: &App,
    list: impl FnOnce(&Snapshot) -> Result<Value> + Send + 'static,
) -> Result<Value> {
    let tx = app.store().snapshot()?;
    run_blocking(move || list(&tx)).await?
}

fn not_found(what: &str, which: &dyn std::fmt::Display) -> Error {
    Error::not_found_as(format!("There is no {what} {which}."))
}

/// Returns the user with this address, whose domain may be in any spelling.
fn get_user(tx: &impl Tx, email: &str) -> Result<User> {
    let normalized = Email::read(&email.into()).unwrap_or_else(|_| email.to_owned());
    users::find_by_email(tx, &normalized)?.ok_or_else(|| not_found("user", &email))
}

async fn create_organization(app: &App, options: OrganizationOptions) -> Result<Value> {
    let OrganizationOptions { name, owner, existing } = options;
    let named = JsonObject::from_iter([("name".to_owned(), Value::from(name))]);
    let new = NewOrganization::parse(&named)?;
    let owner = NewUser::parse(&crate::input::require_object(json!({ "email": owner }))?)?;
    let seed = app.seed();
    app.operate(move |tx, now| {
        let mut rng = seed.rng();
        let id = organizations::create(tx, &new, &mut rng, now)?;
        let user = match users::find_by_email(tx, &owner.email)? {
            Some(user) => {
                accounts::require_known(tx, "owner", &user, existing)?;
                user
            }
            None => users::create(tx, &owner, &mut rng, now)?,
        };
        let first = NewProject::of(&JsonObject::new());
        let (_, project) = projects::create_first(tx, id, user.meta.id, &first, &mut rng, now)?;
        Ok(json!({ "id": id, "name": new.name, "project_id": project }))
    })
    .await
}

/// Returns all records of a type, each as `show` describes it.
fn list<R: Record>(tx: &Snapshot, show: impl Fn(R) -> Result<Value>) -> Result<Value> {
    let mut results = Vec::new();
    tx.scan::<R, _>(&(), Window::all(Order::Ascending), |row| {
        results.push(show(row.into_record()?)?);
        Ok(())
    })?;
    Ok(json!({ "results": results }))
}

fn list_organizations(tx: &Snapshot, quota: usize) -> Result<Value> {
    list(tx, |Organization { fields, .. }| {
        Ok(json!({
            "id": fields.id,
            "name": fields.name,
            "members": tx.count::<Membership>(&fields.id)?,
            "projects": tx.count::<projects::Project>(&fields.id)?,
            "bytes": fields.id.owner().stored_bytes(tx)?,
            "quota": quota,
            "created_at": fields.created_at,
        }))
    })
}

async fn create_key(app: &App, options: KeyOptions) -> Result<Value> {
    let issued = app.issue_key(None, None).await?;
    let rule = move |tx: &mut WriteTx<'_>, now: Timestamp| {
        let KeyOptions { email, label, scopes, organizations, projects, expires_in, existing } =
            options.clone();
        let user = get_user(tx, &email)?;
        accounts::require_known(tx, "email", &user, existing)?;
        let permissions = KeyPermissions {
            user: user.meta.id,
            scopes: Scopes::new(scopes.clone())?,
            organizations,
            projects,
            expires_at: expires_in.map(|seconds| now.plus_seconds(seconds)),
        };
        api_keys::create(tx, &issued, &label, permissions, now)?;
        Ok(json!({ "id": issued.id, "value": issued.value, "label": label, "scopes": scopes }))
    };
    app.operate(rule).await
}

fn list_keys(tx: &Snapshot) -> Result<Value> {
    list(tx, |ApiKey { meta, fields }| {
        Ok(json!({
            "id": meta.id,
            "label": fields.label,
            "mask": fields.mask_value,
            "email": tx.get::<User>(&meta.user)?.fields.email,
            "scopes": meta.scopes,
            "organizations": meta.organizations,
            "projects": meta.projects,
            "created_at": fields.created_at,
            "expires_at": meta.expires_at,
            "last_used_at": api_keys::last_used_at(tx, meta.id)?,
        }))
    })
}

fn invite_link(app: &App, id: InviteId) -> Result<Value> {
    let invite = invites::find_by_id(&*app.store().snapshot()?, id)?;
    let invite = invite.ok_or_else(|| not_found("invite", &id))?;
    Ok(json!({
        "id": id,
        "target_email": invite.fields.target_email,
        "accept_url": app.links().shared_link(id),
    }))
}

/// Sends with the configuration of the process that runs the operation: the server's, if the server runs it.
async fn test_mail(app: &App, to: &str) -> Result<Value> {
    let to = Email::read(&to.into())?;
    let mailer = app.mailer().ok_or_else(|| {
        let text = "no mail server is configured; set --smtp-url and --smtp-from (STEWARD_SMTP_URL and \
                    STEWARD_SMTP_FROM) for the server, or for this command if no server runs";
        Error::invalid("not_configured", text)
    })?;
    let now = app.now();
    let id = OutboxMessageId(app.seed().rng().uuid(now));
    let text = "This is a test mail from Steward. Your mail configuration works.";
    let message = MailContent {
        kind: MailKind::Test,
        link: None,
        subject: "Test mail from Steward".to_owned(),
        text: format!("{text}\n"),
        html: format!("<p>{text}</p>\n"),
    };
    let reply = mailer.send(id, &to, &message, now).await;
    let reply = reply.map_err(|failure| {
        Error::invalid("not_sent", format!("the mail was not sent: {failure}"))
    })?;
    Ok(json!({ "to": to, "server": mailer.server(), "reply": reply }))
}

/// Lists the nodes of the shared database, with the leases that each holds.
///
/// # Errors
/// 400 `no_nodes` for a data file, 503 when the database does not answer.
async fn list_nodes(app: &App) -> Result<Value> {
    let nodes = app.store().nodes().await?.ok_or_else(|| {
        let text =
            "a data file has no nodes: only a shared database has them (--data postgres://...)";
        Error::invalid("no_nodes", text)
    })?;
    // A node whose copy cannot be read knows no leases.
    let leases = app.store().snapshot().and_then(|tx| leases::list(&*tx)).unwrap_or_default();
    let now = app.now();
    let held_by = |name: &str| -> Vec<&str> {
        let is_held = |lease: &&leases::Lease| lease.holder.node == name && lease.is_valid(now);
        leases.iter().filter(is_held).map(|lease| lease.duty.as_str()).collect()
    };
    let results: Vec<_> = nodes
        .iter()
        .map(|node| {
            json!({
                "name": node.name,
                "release": node.release,
                "position": node.position,
                "behind": node.behind,
                "seen_at": node.seen_at,
                "leases": held_by(&node.name),
                "problem": node.problem,
            })
        })
        .collect();
    Ok(json!({ "results": results }))
}
