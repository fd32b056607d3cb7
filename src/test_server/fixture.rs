//! The workspace with which a test run starts. Its ids and keys are the same in each run, so a test can know them beforehand.

use serde_json::json;
use uuid::Uuid;

use crate::base::error::{Error, Result};
use crate::base::secret::{Purpose, Seed, SeededRng, SigningSecret};
use crate::base::time::Timestamp;
use crate::ids::ApiKeyId;
use crate::input::{Input, require_object};
use crate::operator::bootstrap::{self, InitialRecords};
use crate::resources::api_keys::{self, IssuedKey, KeyPermissions, TagKey};
use crate::resources::members::{self, Level, Membership};
use crate::resources::users::{self, NewUser};
use crate::resources::{activity, roles};
use crate::store::WriteTx;

use super::{Person, Workspace};

/// The signing secret of this workspace. Its keys are known to everybody, and valid only where this secret is: no other command
/// creates a workspace with it.
const SECRET: [u8; 32] = *b"everybody knows it: steward test";
/// What ids and tokens of this workspace are drawn from.
const SEED: [u8; 32] = *b"the first records: steward test.";
/// The timestamp in the ids of this workspace: 2026-01-01T00:00:00Z.
const TIME_OF_IDS: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

const MEMBER_EMAIL: &str = "member@example.com";
const KEY_LABEL: &str = "Test";

/// The secret part of the owner's key. It has too little entropy for a scanner to take it for a real one.
const OWNER_KEY: &str = "StewardTestOwnerKey0000000000000000000000000";
/// The secret part of the member's key.
const MEMBER_KEY: &str = "StewardTestMemberKey000000000000000000000000";

/// Writes the workspace into an empty file.
pub(super) fn write(tx: &mut WriteTx<'_>, now: Timestamp) -> Result<Workspace> {
    let secret = SigningSecret::from_parts(SECRET, None);
    tx.put_secret(&secret);
    let tags = TagKey::new(&secret.subkey(Purpose::KeyTag)?)?;
    let rng = &mut Seed::from(SEED).rng_at(TIME_OF_IDS);
    let first = InitialRecords::default();
    let (organization_id, project_id, owner) = bootstrap::add_organization(tx, &first, rng, now)?;
    let new = NewUser::parse(&require_object(json!({ "email": MEMBER_EMAIL }))?)?;
    let member = users::create(tx, &new, rng, now)?.meta;
    let membership = members::create(tx, organization_id, member.id, Level::Member, rng, now)?;
    tx.log_about::<Membership>(&(organization_id, member.id));
    roles::give_default(tx, &membership, rng, now)?;
    let key = |tx: &mut WriteTx<'_>, number, user, secret: &str, rng: &mut SeededRng| {
        let id = ApiKeyId(Uuid::from_u128(number));
        let issued = IssuedKey::with_secret(&tags, id, secret.to_owned(), rng)?;
        let permissions = KeyPermissions::all_of(user)?;
        api_keys::create(tx, &issued, KEY_LABEL, permissions, now)?;
        Ok::<_, Error>(issued.value)
    };
    let api_key = key(tx, 1, owner.id, OWNER_KEY, rng)?;
    let user = Person { email: first.email, uuid: owner.uuid, api_key };
    let api_key = key(tx, 2, member.id, MEMBER_KEY, rng)?;
    let member = Person { email: MEMBER_EMAIL.to_owned(), uuid: member.uuid, api_key };
    activity::record(tx, None, rng, now)?;
    Ok(Workspace { organization_id, project_id, user, member: Some(member) })
}
