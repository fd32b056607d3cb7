//! What an operator can do with a data file: the same code whether a command opened the file itself or
//! a running server does it for the command (decisions §5).

mod accounts;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::fair::Consumer;
use crate::ids::{ApiKeyId, InviteId, LetterId, OrganizationId, ProjectId};
use crate::input::{Email, Input, JsonObject, Kind};
use crate::mail::compose::Message;
use crate::resources::api_keys::{self, ApiKey, NewApiKey};
use crate::resources::checks;
use crate::resources::invites;
use crate::resources::members::{Level, Membership};
use crate::resources::organizations::{self, NewOrganization, Organization};
use crate::resources::projects::{self, NewProject};
use crate::resources::users::{self, NewUser, User};
use crate::secret::Seed;
use crate::state::App;
use crate::store::{Order, Progress, Snapshot, Tx, Window, WriteTx};
use crate::time::Timestamp;

/// One thing to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Operation {
    /// Makes an organization with its first project; makes its owner, where the address is new.
    OrganizationCreate {
        /// Its name.
        name: String,
        /// The owner's address.
        owner: String,
        /// Whether the owner may be a user whose account only a link made.
        existing: bool,
    },
    /// Lists every organization.
    OrganizationList,
    /// Makes a user, and a member of an organization where one is named.
    UserCreate {
        /// The address.
        email: String,
        /// Given name.
        first_name: String,
        /// Family name.
        last_name: String,
        /// The organization to join.
        organization: Option<OrganizationId>,
        /// At which level.
        level: Level,
        /// Whether the user may be there already.
        existing: bool,
    },
    /// Lists every user.
    UserList,
    /// Lets a user's keys open things, or no more.
    UserSetActive {
        /// The address.
        email: String,
        /// Which of the two.
        active: bool,
    },
    /// Makes a key for a user.
    KeyCreate {
        /// The user's address.
        email: String,
        /// What to call it.
        label: String,
        /// What it may do.
        scopes: Vec<String>,
        /// The organizations it is limited to.
        organizations: Vec<OrganizationId>,
        /// The projects it is limited to.
        projects: Vec<ProjectId>,
        /// After how many seconds it ends by itself.
        expires_in: Option<i64>,
        /// Whether the user's account may be one that only a link made.
        existing: bool,
    },
    /// Lists every key.
    KeyList,
    /// Ends a key.
    KeyRevoke {
        /// Its public id.
        id: ApiKeyId,
    },
    /// Tells the link by which an invite is accepted.
    InviteLink {
        /// Its id.
        id: InviteId,
    },
    /// Sends a test mail at once, past the outbox.
    MailTest {
        /// To whom.
        to: String,
    },
    /// Checks the data file.
    Check,
    /// Gives the data file's dead space back.
    Compact,
    /// Renews the signing secret, but for the tags of API keys.
    SecretsRotate,
    /// Puts the copy of a backup that lies ready beside the data file in its place.
    Restore,
}

/// Does it; answers what `--json` prints. `progress` hears how far what may take long is.
///
/// # Errors
/// What a rule refuses; 503 when the file cannot be read or written.
pub async fn perform(app: &App, operation: Operation, progress: Progress) -> Result<Value> {
    match operation {
        Operation::OrganizationCreate { name, owner, existing } => {
            create_organization(app, name, owner, existing).await
        }
        Operation::OrganizationList => {
            let quota = app.config().caps.organization_bytes;
            off_thread(app, move |tx| list_organizations(tx, quota)).await
        }
        Operation::UserCreate { email, first_name, last_name, organization, level, existing } => {
            let sent = json!({ "email": email, "first_name": first_name, "last_name": last_name });
            let new = NewUser::parse(&crate::input::object(sent)?)?;
            accounts::create_user(
                app,
                new,
                organization.map(|organization| (organization, level)),
                existing,
            )
            .await
        }
        Operation::UserList => off_thread(app, accounts::list_users).await,
        Operation::UserSetActive { email, active } => {
            accounts::set_active(app, email, active).await
        }
        Operation::KeyCreate {
            email,
            label,
            scopes,
            organizations,
            projects,
            expires_in,
            existing,
        } => {
            let wanted = Wanted { label, scopes, organizations, projects, expires_in };
            create_key(app, email, wanted, existing).await
        }
        Operation::KeyList => off_thread(app, list_keys).await,
        Operation::KeyRevoke { id } => {
            app.operate(move |tx, _| api_keys::remove(tx, id))
                .await
                .map_err(|error| if error.status() == 404 { missing("key", &id) } else { error })?;
            Ok(json!({ "id": id }))
        }
        Operation::InviteLink { id } => invite_link(app, id),
        Operation::MailTest { to } => test_mail(app, &to).await,
        Operation::Check => {
            let findings = app.store().check(checks(), progress).await?;
            serde_json::to_value(findings).map_err(Error::internal)
        }
        Operation::Compact => {
            serde_json::to_value(app.store().compact(&progress).await?).map_err(Error::internal)
        }
        Operation::SecretsRotate => {
            let renewed = ["invite links", "public pages", "live events tokens"];
            let pages = app.rotate_secrets().await?;
            Ok(json!({ "renewed": renewed, "public_pages": pages }))
        }
        Operation::Restore => {
            let restored = app.store().restore(app.now().stamp()).await?;
            app.begin_anew();
            serde_json::to_value(restored).map_err(Error::internal)
        }
    }
}

/// Lists may be long: they are read off the threads that serve requests.
async fn off_thread(
    app: &App,
    list: impl FnOnce(&Snapshot) -> Result<Value> + Send + 'static,
) -> Result<Value> {
    let tx = app.store().snapshot()?;
    tokio::task::spawn_blocking(move || list(&tx)).await.map_err(Error::internal)?
}

fn missing(what: &str, which: &dyn std::fmt::Display) -> Error {
    Error::not_found_as(format!("There is no {what} {which}."))
}

fn get_user(tx: &impl Tx, email: &str) -> Result<User> {
    users::find_by_email(tx, email)?.ok_or_else(|| missing("user", &email))
}

async fn create_organization(
    app: &App,
    name: String,
    owner: String,
    existing: bool,
) -> Result<Value> {
    let named = JsonObject::from_iter([("name".to_owned(), Value::from(name))]);
    let new = NewOrganization::parse(&named)?;
    let owner = NewUser::parse(&crate::input::object(json!({ "email": owner }))?)?;
    let seed = Seed::take();
    app.operate(move |tx, now| {
        let mut draw = seed.draw();
        let id = organizations::create(tx, &new, &mut draw, now)?;
        let user = match users::find_by_email(tx, &owner.email)? {
            Some(user) => {
                accounts::require_known(tx, "owner", &user, existing)?;
                user
            }
            None => users::create(tx, &owner, &mut draw, now)?,
        };
        let first = NewProject::of(&JsonObject::new());
        let (_, project) = projects::create_first(tx, id, user.head.id, &first, &mut draw, now)?;
        Ok(json!({ "id": id, "name": new.name, "project_id": project }))
    })
    .await
}

fn list_organizations(tx: &Snapshot, quota: usize) -> Result<Value> {
    let mut results = Vec::new();
    tx.scan::<Organization, _>(&(), EVERYTHING, |row| {
        let shown = row.into_record()?.shown;
        results.push(json!({
            "id": shown.id,
            "name": shown.name,
            "members": tx.count::<Membership>(&shown.id)?,
            "projects": tx.count::<projects::Project>(&shown.id)?,
            "bytes": shown.id.owner().stored_bytes(tx)?,
            "quota": quota,
            "created_at": shown.created_at,
        }));
        Ok(())
    })?;
    Ok(json!({ "results": results }))
}

const EVERYTHING: Window = Window::all(Order::Ascending);

/// What a key shall be.
#[derive(Clone)]
struct Wanted {
    label: String,
    scopes: Vec<String>,
    organizations: Vec<OrganizationId>,
    projects: Vec<ProjectId>,
    expires_in: Option<i64>,
}

async fn create_key(app: &App, email: String, wanted: Wanted, existing: bool) -> Result<Value> {
    let made = app.new_key(Consumer::OPERATOR, None, |_| Ok(())).await?;
    let rule = move |tx: &mut WriteTx<'_>, now: Timestamp| {
        let Wanted { label, scopes, organizations, projects, expires_in } = wanted.clone();
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let user = get_user(tx, &email)?;
        accounts::require_known(tx, "email", &user, existing)?;
        let expires_at = expires_in.map(|seconds| now.plus_seconds(seconds));
        let unlimited = made.of(user.head.id, &label, &scopes);
        api_keys::create(tx, NewApiKey { organizations, projects, expires_at, ..unlimited }, now)?;
        Ok(made.shown(&label, &scopes))
    };
    app.operate(rule).await
}

fn list_keys(tx: &Snapshot) -> Result<Value> {
    let mut results = Vec::new();
    tx.scan::<ApiKey, _>(&(), EVERYTHING, |row| {
        let ApiKey { head, shown } = row.into_record()?;
        results.push(json!({
            "id": head.id,
            "label": shown.label,
            "mask": shown.mask_value,
            "email": tx.get::<User>(&head.user)?.shown.email,
            "scopes": head.scopes,
            "organizations": head.organizations,
            "projects": head.projects,
            "created_at": shown.created_at,
            "expires_at": head.expires_at,
            "last_used_at": api_keys::last_used_at(tx, head.id)?,
        }));
        Ok(())
    })?;
    Ok(json!({ "results": results }))
}

fn invite_link(app: &App, id: InviteId) -> Result<Value> {
    let invite = invites::find_by_id(&*app.store().snapshot()?, id)?;
    let invite = invite.ok_or_else(|| missing("invite", &id))?;
    Ok(json!({
        "id": id,
        "target_email": invite.shown.target_email,
        "accept_url": app.links().to_hand_over(id),
    }))
}

/// Sends with the configuration of this process: a server's, where one does it for a command.
async fn test_mail(app: &App, to: &str) -> Result<Value> {
    let to = Email::read(&to.into())?;
    let mailer = app.mailer().ok_or_else(|| {
        let text = "no mail server is configured; set --smtp-url and --smtp-from (STEWARD_SMTP_URL and \
                    STEWARD_SMTP_FROM) for the server, or here where none runs";
        Error::invalid("not_configured", text)
    })?;
    let now = app.now();
    let id = LetterId(Seed::take().draw().uuid(now));
    let text = "This is a test mail from Steward. Mail is set up as it should be.";
    let message = Message {
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
