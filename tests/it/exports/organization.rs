//! `export --organization` and `import --organization`: one organization moves to another workspace in use.

use std::io::Cursor;

use steward::testing::bootstrap::InitialRecords;
use steward::testing::resources::api_keys::ApiKey;
use steward::testing::resources::cascade_delete::delete_batch;
use steward::testing::resources::relocation::{Batches, Plan, select};
use steward::testing::resources::roles::continue_listing;
use steward::testing::resources::shared::{Attempt, ImportMark};
use steward::testing::secret::Seed;
use steward::testing::state::ImportedOrganization;
use steward::testing::store::{Cell, ExportOptions, OpenError, SelectOrganization, StagedExport};

use super::{Everything, answers, export, how, import, lines};
use crate::support::exports::{first_of, sealed};
use crate::support::prelude::*;

async fn try_export(
    store: &Store,
    id: OrganizationId,
    secrets: bool,
) -> Result<Vec<u8>, OpenError> {
    let organization = Some(SelectOrganization { id: id.0, select });
    let export = store.export(ExportOptions { organization, ..how(secrets) }).await?;
    let mut bytes = Vec::new();
    export.write_to(&mut bytes).expect("written");
    Ok(bytes)
}

/// Returns the export of one organization.
pub async fn export_one(store: &Store, id: OrganizationId, secrets: bool) -> Vec<u8> {
    try_export(store, id, secrets).await.expect("an export")
}

/// Imports the export of one organization.
pub async fn import_one(
    workspace: &Workspace,
    bytes: &[u8],
) -> Result<ImportedOrganization, String> {
    let from = Cursor::new(bytes.to_vec());
    let imported = workspace.app.import_organization(from, false, Progress::silent()).await;
    imported.map_err(|error| error.to_string())
}

/// Returns the complete content of a workspace.
async fn content(workspace: &Workspace) -> BTreeSet<Vec<u8>> {
    records(&export(workspace.app.store(), true).await)
}

/// Returns the records of an export without sequences, in which numbers of failed attempts are not used again, and without
/// the last uses of keys, which are written a moment later.
fn records(export: &[u8]) -> BTreeSet<Vec<u8>> {
    let left_out = ["sequences", "api_key_uses"].map(|table| format!("{{\"table\":\"{table}\""));
    let is_left_out = |line: &Vec<u8>| left_out.iter().any(|one| line.starts_with(one.as_bytes()));
    lines(export).into_iter().skip(1).filter(|line| !is_left_out(line)).collect()
}

/// A workspace with an organization of everything, whose background work is done.
async fn source() -> Everything {
    let source = Everything::new().await;
    settle(&source.workspace).await;
    source
}

async fn settle(workspace: &Workspace) {
    while workspace.app.store().write(delete_batch).await.expect("deleted") {}
    while workspace.app.store().write(continue_listing).await.expect("listed") {}
}

fn founding(cell: u64) -> InitialRecords {
    let cell = Cell::new(cell).expect("a cell");
    let [email, organization] = ["there@other.example", "Elsewhere"].map(str::to_owned);
    InitialRecords { email, organization, cell, ..InitialRecords::default() }
}

/// Returns a workspace in which API keys of another one are valid.
async fn sister(of: &Workspace, cell: u64) -> Workspace {
    let secret = Some(of.app.store().signing_secret().expect("a secret"));
    Workspace::founded(InitialRecords { secret, ..founding(cell) }, Config::default()).await
}

/// Returns the responses below the organization, its project, and its public page.
async fn shown(caller: &TestClient, of: &Everything) -> Vec<(String, u16, Vec<u8>, String)> {
    let mails = of.workspace.organization("invites/mail/");
    let is_inside = |path: &str| {
        let id = of.workspace.made.organization_id.to_string();
        // A mail that waits stays behind.
        (path.contains(&id) || path.starts_with("/api/projects/") || path.starts_with("/shared/"))
            && path != mails
    };
    let answers = answers(caller, of).await.into_iter().filter(|(path, ..)| is_inside(path));
    let answers: Vec<_> = answers.collect();
    assert!(answers.iter().filter(|(_, status, ..)| *status == 200).count() > 20, "{answers:?}");
    answers
}

#[tokio::test]
async fn organization_is_the_same_in_another_workspace_and_leaves_others_alone() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let limits = json!({ "organizations": [id] });
    let key = source.workspace.limited_key(OWNER, &["*"], limits).await.key.expect("a key");
    let before = shown(&source.workspace.with_key(&key), &source).await;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let target = sister(&source.workspace, 1).await;
    target.outsider("neighbour").await;
    let others = content(&target).await;

    let imported = import_one(&target, &bytes).await.expect("imported");
    assert_eq!((imported.id, imported.name.as_str()), (id, "Corp"));
    assert_eq!((imported.accounts_created, imported.accounts_kept), (3, 0));
    assert_eq!(imported.keys_left_out, 0);
    target.assert_file_valid().await;
    let moved = records(&bytes);
    let sharing = |line: &&Vec<u8>| !line.starts_with(b"{\"table\":\"sharing\"");
    let now = content(&target).await;
    assert!(now.is_superset(&others), "a record of another organization changed");
    let new: BTreeSet<_> = now.difference(&others).filter(sharing).collect();
    assert!(new == moved.iter().filter(sharing).collect(), "not exactly the export was added");
    let again = export_one(target.app.store(), id, true).await;
    assert!(lines(&again)[1..] == lines(&bytes)[1..], "the export of the copy differs");

    for (was, is) in before.iter().zip(&shown(&target.with_key(&key), &source).await) {
        assert_eq!((&was.0, was.1, &was.3), (&is.0, is.1, &is.3));
        assert!(was.2 == is.2, "{}", was.0);
    }
    // New ids are those of the other cell.
    let caller = target.with_key(&key);
    let made = caller.post(&source.workspace.dashboards(""), json!({ "name": "new" })).await.ok();
    assert_eq!(made["id"], 100_000_001);
    // The only member of no other organization keeps a key without limits.
    assert_eq!(target.records::<ApiKey>(&()).len(), imported.keys + 2);
}

#[tokio::test]
async fn export_tells_nothing_of_other_organizations() {
    let source = source().await;
    let made = &source.workspace.made;
    let (outsider, other) = source.workspace.outsider("stranger").await;
    let foreign = other["id"].as_str().expect("an id");
    outsider.get(ME).await.ok();
    let owner = &source.workspace.owner;
    owner.patch(ME, json!({ "notification_settings": { "SECRET-PROJECT": true } })).await.ok();
    // The owner looks at another organization, and has keys for both, for the other and for everything.
    let mut elsewhere = owner.get("/api/organizations/").await.ok();
    let elsewhere = elsewhere["results"].as_array_mut().expect("a list");
    elsewhere.retain(|one| one["id"] != json!(made.organization_id));
    let elsewhere = elsewhere[0]["id"].clone();
    owner.patch(ME, json!({ "set_current_organization": elsewhere })).await.ok();
    for organizations in [json!([elsewhere]), json!([elsewhere, made.organization_id]), json!([])] {
        let limits = json!({ "organizations": organizations });
        source.workspace.limited_key(OWNER, &["*"], limits).await;
    }
    let bytes = export_one(source.workspace.app.store(), made.organization_id, true).await;
    let text = String::from_utf8(bytes).expect("text");
    let whole = export(source.workspace.app.store(), true).await;
    let whole = String::from_utf8(whole).expect("text");
    let elsewhere = elsewhere.as_str().expect("an id");
    for secret in [foreign, elsewhere, "stranger", "objects", "other.example", "SECRET-PROJECT"] {
        assert!(whole.contains(secret), "the search for {secret} would find nothing");
        assert!(!text.contains(secret), "{secret}");
    }
    for table in ["sequences", "meta", "idempotency", "outbox", "mail_paces", "sweeps", "imports"] {
        assert!(!text.contains(&format!("{{\"table\":\"{table}\"")), "{table}");
    }
    let keys = lines(text.as_bytes());
    let keys = keys.iter().filter(|line| line.starts_with(b"{\"table\":\"api_keys\""));
    // Those of Ann and of Lin, who are members of this organization alone.
    assert_eq!(keys.count(), 2);
    let open = export_one(source.workspace.app.store(), made.organization_id, false).await;
    let open = String::from_utf8(open).expect("text");
    for kind in ["phx_", "phc_", "argon2", "SECRET", "\"table\":\"api_keys\""] {
        assert!(!open.contains(kind), "{kind}");
    }
}

/// Replaces a user by their account in another workspace, wherever a response embeds them or names their number behind
/// another id.
fn mapped(body: &mut Value, from: &Value, to: &Value) {
    match body {
        Value::Object(members) if members.get("uuid") == Some(&from["uuid"]) => {
            for (name, value) in members {
                if let Some(here) = to.get(name) {
                    value.clone_from(here);
                }
            }
        }
        Value::Object(members) => members.values_mut().for_each(|one| mapped(one, from, to)),
        Value::Array(items) => items.iter_mut().for_each(|one| mapped(one, from, to)),
        Value::String(text) if from["uuid"] == text.as_str() => {
            to["uuid"].as_str().expect("a UUID").clone_into(text);
        }
        Value::String(text) => {
            if let Some(rest) = text.strip_suffix(&format!(":{}", from["id"])) {
                *text = format!("{rest}:{}", to["id"]);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn user_with_an_account_in_the_other_workspace_keeps_it() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let store = source.workspace.app.store();
    let target = Workspace::founded(founding(2), Config::default()).await;
    // The same people with other spellings, and with roles of their own.
    let (ann, _) = target.outsider("neighbour").await;
    target.member("ann", Level::Member).await;
    let ann_there = target.uuid(ANN).await;
    let other = new_user(&OWNER.to_uppercase(), None);
    let other = UserOptions { first_name: "Other".to_owned(), ..other };
    target.run_operation(Operation::UserCreate(other)).await;
    let here = source.workspace.limited_key(OWNER, &["*"], json!({ "organizations": [id] })).await;
    let before = shown(&here, &source).await;
    let imported = import_one(&target, &export_one(store, id, true).await).await.expect("imported");
    assert_eq!((imported.accounts_created, imported.accounts_kept), (1, 2));
    assert_eq!(imported.keys, 0, "the workspaces have different secrets");
    target.assert_file_valid().await;
    // A key for this organization alone would add an entry to its log.
    let caller = target.key(&OWNER.to_uppercase(), &["*"]).await;
    let members = source.workspace.organization("members/");
    let [from, to] = [here.get(&members).await.ok(), caller.get(&members).await.ok()];
    let (from, to) = (column(&from, "user"), column(&to, "user"));
    assert!(to.iter().any(|user| user["uuid"] == ann_there.as_str()));
    assert!(from.iter().zip(&to).filter(|(was, is)| was == is).count() == 1, "Lin is new");
    let mut compared = 0;
    for (path, status, body, _) in before {
        // The tokens of events and of pages are signed by each workspace for itself.
        let is_signed = path.ends_with("/sharing/") || path.starts_with("/shared/");
        if status != 200 || is_signed {
            continue;
        }
        let mut was: Value = serde_json::from_slice(&body).expect("JSON");
        let mut is = caller.get(&path).await.ok();
        for (from, to) in from.iter().zip(&to) {
            mapped(&mut was, from, to);
        }
        for body in [&mut was, &mut is] {
            if let Some(token) = body.get_mut("live_events_token") {
                *token = Value::Null;
            }
        }
        assert_eq!(was, is, "{path}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
    // No record of the organization names a number of the source.
    let again = export_one(target.app.store(), id, true).await;
    let again = String::from_utf8(again).expect("text");
    for old in from.iter().zip(&to).filter(|(was, is)| was != is).map(|(was, _)| was) {
        assert!(!again.contains(old["uuid"].as_str().expect("a UUID")), "{old}");
        for member in ["user", "created_by", "last_modified_by", "removed_by", "invited_by"] {
            let named = format!("\"{member}\":{},", old["id"]);
            assert!(!again.contains(&named), "{named}");
        }
    }
    ann.get(ME).await.ok();
}

#[tokio::test]
async fn organization_moves_away_and_back() {
    let source = source().await;
    let (workspace, id) = (&source.workspace, source.workspace.made.organization_id);
    let limits = json!({ "organizations": [id] });
    let key = workspace.limited_key(OWNER, &["*"], limits).await.key.expect("a key");
    let target = sister(workspace, 3).await;
    let away = export_one(workspace.app.store(), id, true).await;
    import_one(&target, &away).await.expect("imported");
    let caller = target.with_key(&key);
    let dashboards = workspace.dashboards("");
    let there = caller.post(&dashboards, json!({ "name": "made there" })).await.ok();
    let refused = import_one(workspace, &away).await.expect_err("a refusal");
    assert_eq!(refused, format!("the organization {id} exists here already"));
    workspace.owner.delete(&workspace.organization("")).await.assert_empty(204);
    settle(workspace).await;
    let back = export_one(target.app.store(), id, true).await;
    let imported = import_one(workspace, &back).await.expect("imported");
    assert_eq!((imported.accounts_created, imported.accounts_kept), (0, 3));
    workspace.assert_file_valid().await;
    let one = format!("{dashboards}{}/", there["id"]);
    assert_eq!(workspace.owner.get(&one).await.ok()["name"], "made there");
    // The sequence of this workspace goes on, and passes over no id of the other.
    let here = workspace.owner.post(&dashboards, json!({ "name": "here" })).await.ok();
    assert!(here["id"].as_u64().expect("an id") < 100_000_000);
}

#[tokio::test]
async fn organization_whose_slug_is_in_use_gets_another() {
    let source = source().await;
    let (workspace, id) = (&source.workspace, source.workspace.made.organization_id);
    let here = workspace.limited_key(OWNER, &["*"], json!({ "organizations": [id] })).await;
    let before = shown(&here, &source).await;
    let target = sister(workspace, 1).await;
    let one = workspace.organization("");
    let shown_here = workspace.owner.get(&one).await.ok();
    let (name, slug) = (&shown_here["name"], shown_here["slug"].as_str().expect("a slug"));
    let other = target.owner.post("/api/organizations/", json!({ "name": name })).await.ok();
    assert_eq!(other["slug"], slug);
    let bytes = export_one(workspace.app.store(), id, true).await;
    let imported = import_one(&target, &bytes).await.expect("imported");
    let text = id.to_string();
    let expected = format!("{slug}-{}", &text[text.len() - 8..]);
    assert_eq!(imported.slug, expected);
    target.assert_file_valid().await;
    let there = target.with_key(here.key.as_deref().expect("a key"));
    assert_eq!(there.get(&one).await.ok()["slug"], expected.as_str());
    let after = shown(&there, &source).await;
    assert_eq!(before.len(), after.len());
    for ((path, status, body, _), (other, answered, is, _)) in before.iter().zip(after) {
        let body = String::from_utf8(body.clone()).expect("text");
        let is = String::from_utf8(is).expect("text");
        let renamed =
            body.replace(&format!("\"slug\":\"{slug}\""), &format!("\"slug\":\"{expected}\""));
        assert_eq!((path, status, renamed), (&other, &answered, is));
    }
    // The slug stays with the organization.
    let away = export_one(target.app.store(), id, true).await;
    let back = sister(workspace, 2).await;
    assert_eq!(import_one(&back, &away).await.expect("imported").slug, expected);
}

#[tokio::test]
async fn conflict_refuses_the_import_and_leaves_nothing() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let target = Workspace::founded(founding(1), Config::default()).await;
    let domains = target.organization("domains/");
    let made = target.owner.post(&domains, json!({ "domain": "corp.example" })).await.ok();
    let before = content(&target).await;
    let refused = import_one(&target, &bytes).await.expect_err("a refusal");
    assert_eq!(refused, "domains \"corp.example\": its key in domains_by_name is taken here");
    assert!(content(&target).await == before);
    target.owner.delete(&format!("{domains}{}/", made["id"].as_str().expect("an id"))).await;
    import_one(&target, &bytes).await.expect("imported");
    // An account that a link created may belong to someone else.
    let other = Workspace::founded(founding(1), Config::default()).await;
    let invites = other.organization("invites/");
    let by_link = json!({ "target_email": OWNER, "send_email": false });
    let offer = Offer::of(&other.owner.post(&invites, by_link).await.ok());
    offer.accept(&other.anonymous(), json!({ "first_name": "Eve" })).await.ok();
    let before = content(&other).await;
    let refused = import_one(&other, &bytes).await.expect_err("a refusal");
    assert!(refused.contains(OWNER) && refused.contains("--existing"), "{refused}");
    assert!(content(&other).await == before);
    // Two installations that create the same ids.
    let twin = Workspace::founded(founding(0), Config::default()).await;
    let refused = import_one(&twin, &bytes).await.expect_err("a refusal");
    assert!(refused.contains("another installation that is cell 0 too"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflict_that_arises_during_an_import_refuses_it_and_leaves_nothing() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let domain = "domains \"corp.example\": its key in domains_by_name is taken here";
    let user = "users \"ann@corp.example\": its key in users_by_email is taken here";
    for (path, sent, refusal) in [
        ("domains/", json!({ "domain": "corp.example" }), domain),
        ("invites/", json!({ "target_email": ANN, "send_email": false }), user),
    ] {
        let target = Arc::new(Workspace::founded(founding(1), Config::default()).await);
        let (writer, runtime) = (Arc::clone(&target), tokio::runtime::Handle::current());
        // The first report of this stage comes after the comparison and before the first record.
        let progress = Progress::new(move |stage| {
            if stage.doing == "adding" && stage.done == 0 {
                let write = async {
                    let path = writer.organization(path);
                    let made = writer.owner.post(&path, sent.clone()).await.ok();
                    if path.ends_with("/invites/") {
                        let offer = Offer::of(&made);
                        let eve = json!({ "first_name": "Eve" });
                        offer.accept(&writer.anonymous(), eve).await.ok();
                    }
                };
                tokio::task::block_in_place(|| runtime.block_on(write));
            }
        });
        let from = Cursor::new(bytes.clone());
        let refused = target.app.import_organization(from, true, progress).await;
        assert_eq!(refused.expect_err("a refusal").to_string(), refusal);
        let left = export(target.app.store(), true).await;
        assert!(!String::from_utf8(left).expect("text").contains(&id.to_string()), "{path}");
        assert_eq!(target.records::<ImportMark>(&()).len(), 0, "{path}");
        target.assert_file_valid().await;
    }
}

#[tokio::test]
async fn damaged_or_foreign_export_is_refused_with_its_line() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let whole = export(source.workspace.app.store(), true).await;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let target = sister(&source.workspace, 1).await;
    let before = content(&target).await;
    let refused = async |bytes: &[u8]| {
        let refused = import_one(&target, bytes).await.expect_err("a refusal");
        assert!(!refused.contains('\n'), "{refused}");
        refused
    };
    let lines = lines(&bytes);
    for at in (1..lines.len() - 1).step_by(29) {
        let half = &lines[at][..lines[at].len() / 2];
        let said = refused(&[lines[..at].concat(), half.to_vec()].concat()).await;
        assert!(said.contains(&format!("line {}: the line is cut off", at + 1)), "{said}");
        refused(&lines[..at].concat()).await;
        let mut swapped = lines.clone();
        swapped.swap(at, at + 1);
        let said = refused(&sealed(&swapped)).await;
        assert!(said.contains(&format!("line {}: the line is not in order", at + 2)), "{said}");
        let mut flipped = bytes.clone();
        let byte = lines[..at].concat().len() + lines[at].len() / 2;
        flipped[byte] ^= 1;
        refused(&flipped).await;
    }
    // A record of another organization, and an account that nothing in this one names.
    let all = super::lines(&whole);
    for (table, said) in [("activity", "the line does not belong"), ("users", "the line does not")]
    {
        let begins = format!("{{\"table\":\"{table}\",");
        let is_foreign = |line: &&Vec<u8>| {
            line.starts_with(begins.as_bytes())
                && !String::from_utf8_lossy(line).contains(&id.to_string())
                && !lines.contains(line)
        };
        let foreign = all.iter().rfind(is_foreign).expect("a foreign record").clone();
        let mut with = lines.clone();
        let at = lines.iter().rposition(|line| line.starts_with(begins.as_bytes()));
        let at = at.expect("a record") + 1;
        // In the order of keys, if the record has a higher one.
        with.insert(at, foreign.clone());
        let mut text = refused(&sealed(&with)).await;
        if text.contains("is not in order") {
            with.swap(at, first_of(&lines, table));
            with = lines.clone();
            with.insert(first_of(&lines, table), foreign);
            text = refused(&sealed(&with)).await;
        }
        assert!(text.contains("line ") && text.contains(said), "{table}: {text}");
    }
    let mut with = lines.clone();
    with.insert(1, all[1].clone());
    let said = refused(&sealed(&with)).await;
    assert!(said.contains("line 2: table belongs to no organization"), "{said}");
    let said = refused(&whole).await;
    assert!(said.contains("it has a whole workspace"), "{said}");
    let folder = tempfile::tempdir().expect("a folder");
    let said = import(&bytes, &folder.path().join("new.redb")).expect_err("a refusal").to_string();
    assert!(said.contains("it has one organization only"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    assert!(content(&target).await == before);
    target.assert_file_valid().await;
}

#[tokio::test]
async fn organization_with_unfinished_deletions_is_not_exported() {
    let source = Everything::new().await;
    let (store, id) = (source.workspace.app.store(), source.workspace.made.organization_id);
    let refused = try_export(store, id, true).await.map(drop).expect_err("a refusal").to_string();
    assert!(refused.contains("still deleting records of the organization"), "{refused}");
    settle(&source.workspace).await;
    export_one(store, id, true).await;
    let nobody = OrganizationId(Uuid::nil());
    let refused = try_export(store, nobody, true).await.map(drop).expect_err("a refusal");
    assert!(refused.to_string().contains("There is no organization"), "{refused}");
}

/// Begins an import and adds its first batch, as a process that dies after that.
async fn begin_import(workspace: &Workspace, bytes: &[u8]) {
    let store = workspace.app.store();
    let secret = store.signing_secret().expect("a secret");
    let folder = std::env::temp_dir();
    let read = (&record_registry(), select as _);
    let from = Cursor::new(bytes.to_vec());
    let draw = (secret, Seed::generate().rng());
    let staged = StagedExport::read(from, &folder, read, draw, &Progress::silent());
    let staged = staged.map_err(|error| error.to_string()).expect("an export");
    let here = store.snapshot().expect("a state");
    let records = staged.records().expect("records");
    let plan = Arc::new(Plan::new(&staged, &records, &here, false).expect("a plan"));
    let attempt = Attempt { organization: plan.organization, id: Uuid::from_u128(1) };
    let mut batches = Batches::new(plan, records);
    let now = workspace.app.now();
    store.write(move |tx| attempt.begin(tx, now)).await.expect("begun");
    let first = batches.read_next().expect("read").expect("a batch");
    assert!(first.len() > 100, "the batch has more than accounts");
    store.write(move |tx| first.add(tx, attempt, now)).await.expect("added");
}

#[tokio::test]
async fn import_that_dies_shows_nothing_and_is_cleaned_up() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let (config, clock) = with_clock_at(1_800_000_000_000_000);
    let target = Workspace::founded(founding(1), config.clone()).await;
    let before = content(&target).await;
    begin_import(&target, &bytes).await;
    let target = target.reopened(config).await;
    let marks = || target.records::<ImportMark>(&()).len();
    assert_eq!(marks(), 4);
    target.assert_file_valid().await;
    let organizations = target.run_operation(Operation::OrganizationList).await;
    assert_eq!(column(&organizations, "name"), ["Elsewhere"]);
    assert_eq!(target.owner.get(&source.workspace.project("")).await.status, 404);
    let refused = import_one(&target, &bytes).await.expect_err("a refusal");
    assert!(refused.contains("is being deleted or imported here"), "{refused}");
    clock.advance(Duration::from_secs(61));
    eventually("the rest of the import is deleted", || (marks() == 0).then_some(())).await;
    settle(&target).await;
    target.assert_file_valid().await;
    assert!(content(&target).await == before, "something is left");
    import_one(&target, &bytes).await.expect("imported");
}

#[tokio::test]
async fn import_that_loses_its_turn_is_undone() {
    let source = source().await;
    let id = source.workspace.made.organization_id;
    let bytes = export_one(source.workspace.app.store(), id, true).await;
    let target = Workspace::founded(founding(1), Config::default()).await;
    begin_import(&target, &bytes).await;
    let other = Attempt { organization: id, id: Uuid::from_u128(2) };
    let store = target.app.store();
    let now = target.app.now();
    let renewed = store.write(move |tx| other.renew(tx, now)).await;
    for refused in [renewed, store.write(move |tx| other.complete(tx)).await] {
        let refused = refused.expect_err("a refusal").to_string();
        assert!(refused.contains("was given up"), "{refused}");
    }
}
