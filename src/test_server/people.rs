//! Organizations and keys that a test asks for: what only an operator creates, and what the API gives to nobody else.

use std::marker::PhantomData;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::OneOfBuilder;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::base::json::output;
use crate::base::patch::Patch;
use crate::base::secret::SeededRng;
use crate::base::time::Timestamp;
use crate::ids::{ApiKeyId, OrganizationId, ProjectId, UserId};
use crate::input::{
    Choice, Email, FieldType, Input, Integer, ListOf, Name, Nested, Nullable, Required, Schema,
    input, require_object,
};
use crate::operator::bootstrap::{self, InitialRecords};
use crate::resources::api_keys::api::{ExpiryField, OrganizationList, ProjectList, ScopeList};
use crate::resources::api_keys::{self, IssuedKey, KeyPermissions, Scopes};
use crate::resources::members::{self, Level, Membership};
use crate::resources::projects::{self, Fields, NewProject, Project};
use crate::resources::roles;
use crate::resources::users::{self, NewUser, User};
use crate::store::{Tx, WriteTx};

use super::Person;

/// The maximum number of projects and of members that one call creates.
const MOST: usize = 100;
const MAX_COUNT: i64 = 100;
const KEY_LABEL: &str = "Test";

/// A list of at least `MIN` items, or only how many items it has.
pub(super) struct CountOrListOf<K, const MIN: i64>(PhantomData<K>);

impl<K: FieldType, const MIN: i64> FieldType for CountOrListOf<K, MIN> {
    type Value = Vec<Option<K::Value>>;

    fn read(value: &Value) -> Result<Self::Value> {
        let items = match value.as_array() {
            Some(_) => ListOf::<K, MOST>::read(value)?.into_iter().map(Some).collect(),
            None => Vec::new(),
        };
        let count = if value.is_array() { &json!(items.len()) } else { value };
        let count = Integer::<MIN, MAX_COUNT>::read(count)?;
        Ok(if items.is_empty() { (0..count).map(|_| None).collect() } else { items })
    }

    fn schema() -> Schema {
        let count = Integer::<MIN, MAX_COUNT>::schema();
        OneOfBuilder::new().item(count).item(ListOf::<K, MOST>::schema()).into()
    }
}

input! {
    /// A member of an organization for a test.
    pub(super) struct TestMember {
        /// The address of the user. By default a new one.
        email: Email,
        /// The level. By default that of a member.
        level: Choice<Level>,
        /// The scopes of the key. By default all.
        scopes: ScopeList,
    }
}

input! {
    /// An organization for one test.
    pub(super) struct TestOrganization {
        /// The name.
        name: Name<64>,
        /// How many projects to create, or their names. By default one.
        projects: CountOrListOf<Name<200>, 1>,
        /// How many members to add besides the owner, or who. By default none.
        members: CountOrListOf<Nested<TestMember>, 0>,
    }
}

input! {
    /// A key of any user.
    pub(super) struct TestKey {
        /// The address of the user.
        email: Required<Email>,
        /// The scopes of the key.
        scopes: Required<ScopeList>,
        /// The projects that the key is limited to.
        scoped_teams: Nullable<ProjectList>,
        /// The organizations that the key is limited to.
        scoped_organizations: Nullable<OrganizationList>,
        /// When the key expires, which may be in the past.
        expires_at: Nullable<ExpiryField>,
    }
}

output! {
    /// An organization for one test, with a key of each user.
    pub(super) struct TestOrganizationBody {
        /// The id.
        organization_id: OrganizationId,
        /// The name.
        name: String,
        /// The projects.
        projects: Vec<TestProjectBody>,
        /// The owner, whose key has all scopes.
        owner: Person,
        /// The other members.
        members: Vec<TestMemberBody>,
    }
}

/// A project of an organization for a test.
#[derive(Serialize, ToSchema)]
pub(super) struct TestProjectBody {
    id: ProjectId,
    name: String,
    api_token: String,
}

/// A member of an organization for a test.
#[derive(Serialize, ToSchema)]
pub(super) struct TestMemberBody {
    #[serde(flatten)]
    person: Person,
    level: Level,
}

output! {
    /// A key of any user.
    pub(super) struct TestKeyBody {
        /// The id.
        id: ApiKeyId,
        /// The name.
        label: String,
        /// The value to send as `Authorization: Bearer`.
        value: String,
        /// The scopes.
        scopes: Scopes as Vec<String>,
    }
}

/// Creates an organization with an owner, members and projects, and a key for each of them.
///
/// # Errors
/// 400 if an address is named twice, or is that of the owner.
pub(super) async fn create_organization(
    app: &App,
    new: TestOrganization,
) -> Result<TestOrganizationBody> {
    let members = new.members.unwrap_or_default();
    let mut keys = Vec::with_capacity(members.len() + 1);
    for _ in 0..=members.len() {
        keys.push(app.issue_key(None, None).await?);
    }
    let names = new.projects.unwrap_or_else(|| vec![None]);
    let name = new.name.unwrap_or_else(|| "Test organization".to_owned());
    let seed = app.seed();
    let create = move |tx: &mut WriteTx<'_>, now| {
        let mut making = Making { tx, rng: seed.rng(), now };
        making.organization(&name, &names, &members, &keys)
    };
    app.operate(create).await
}

/// Creates a key of any user.
///
/// # Errors
/// 400 if there is no user with the address, or the user is no member of what limits the key.
pub(super) async fn create_key(app: &App, new: TestKey) -> Result<TestKeyBody> {
    let issued = app.issue_key(None, None).await?;
    app.operate(move |tx, now| {
        let user = users::find_by_email(tx, &new.email)?.ok_or_else(|| {
            let detail = "There is no user with this address.";
            Error::field("email", "does_not_exist", detail)
        })?;
        let (user, scopes) = (user.meta.id, new.scopes.clone());
        let permissions = KeyPermissions {
            user,
            scopes: scopes.clone(),
            organizations: sent(&new.scoped_organizations).unwrap_or_default(),
            projects: sent(&new.scoped_teams).unwrap_or_default(),
            expires_at: sent(&new.expires_at),
        };
        api_keys::create(tx, &issued, KEY_LABEL, permissions, now)?;
        let (label, value) = (KEY_LABEL.to_owned(), issued.value.clone());
        Ok(TestKeyBody { id: issued.id, label, value, scopes })
    })
    .await
}

fn sent<T: Clone>(field: &Patch<T>) -> Option<T> {
    match field {
        Patch::Value(value) => Some(value.clone()),
        Patch::Absent | Patch::Null => None,
    }
}

/// A write that creates an organization.
struct Making<'w, 't> {
    tx: &'w mut WriteTx<'t>,
    rng: SeededRng,
    now: Timestamp,
}

impl Making<'_, '_> {
    fn organization(
        &mut self,
        name: &str,
        names: &[Option<String>],
        members: &[Option<TestMember>],
        keys: &[IssuedKey],
    ) -> Result<TestOrganizationBody> {
        let tag = self.rng.short_id().to_lowercase();
        let mut names = names.iter().map(Option::as_deref);
        let mut first = InitialRecords {
            email: format!("owner-{tag}@example.com"),
            organization: name.to_owned(),
            ..InitialRecords::default()
        };
        if let Some(Some(name)) = names.next() {
            name.clone_into(&mut first.project);
        }
        let (rng, now) = (&mut self.rng, self.now);
        let (id, project, owner) = bootstrap::add_organization(self.tx, &first, rng, now)?;
        let owning = self.tx.get::<Membership>(&(id, owner.id))?;
        let mut projects = vec![self.project_body(id, project)?];
        for (name, number) in names.zip(2..) {
            let name = name.map_or_else(|| format!("Project {number}"), str::to_owned);
            let new = NewProject::of(&require_object(json!({ "name": name }))?);
            let project = projects::create(self.tx, &owning, &new, &mut self.rng, now)?;
            projects.push(self.project_body(id, project)?);
        }
        let mut keys = keys.iter();
        let owner = self.person(owner.id, None, keys.next())?;
        let mut others = Vec::with_capacity(members.len());
        for (number, member) in (1..).zip(members) {
            let member = member.as_ref();
            let email = member.and_then(|member| member.email.clone());
            let email = email.unwrap_or_else(|| format!("member-{number}-{tag}@example.com"));
            let level = member.and_then(|member| member.level).unwrap_or_default();
            let user = self.join(id, &email, level)?;
            let scopes = member.and_then(|member| member.scopes.clone());
            others.push(TestMemberBody { person: self.person(user, scopes, keys.next())?, level });
        }
        let (organization_id, name) = (id, name.to_owned());
        Ok(TestOrganizationBody { organization_id, name, projects, owner, members: others })
    }

    fn project_body(&self, organization: OrganizationId, id: ProjectId) -> Result<TestProjectBody> {
        let Fields { name, api_token, .. } = self.tx.get::<Project>(&(organization, id))?.fields;
        Ok(TestProjectBody { id, name, api_token })
    }

    /// Adds a user, who may be new, to an organization.
    fn join(&mut self, id: OrganizationId, email: &str, level: Level) -> Result<UserId> {
        let known = users::find_by_email(self.tx, email)?;
        let user = if let Some(user) = known {
            user
        } else {
            let new = NewUser::parse(&require_object(json!({ "email": email }))?)?;
            users::create(self.tx, &new, &mut self.rng, self.now)?
        };
        let user = user.meta.id;
        let member = members::create(self.tx, id, user, level, &mut self.rng, self.now)?;
        self.tx.log_about::<Membership>(&(id, user));
        roles::give_default(self.tx, &member, &mut self.rng, self.now)?;
        Ok(user)
    }

    /// Gives a user a key, by default with all scopes.
    fn person(
        &mut self,
        user: UserId,
        scopes: Option<Scopes>,
        key: Option<&IssuedKey>,
    ) -> Result<Person> {
        let key = key.ok_or_else(|| Error::internal("a person has no key"))?;
        let mut permissions = KeyPermissions::all_of(user)?;
        permissions.scopes = scopes.unwrap_or(permissions.scopes);
        api_keys::create(self.tx, key, KEY_LABEL, permissions, self.now)?;
        let User { meta, fields } = self.tx.get::<User>(&user)?;
        Ok(Person { email: fields.email, uuid: meta.uuid, api_key: key.value.clone() })
    }
}
