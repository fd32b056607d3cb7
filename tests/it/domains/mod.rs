//! Tests of `/api/organizations/:organization_id/domains/`.

mod certificate;
mod lookup;
mod saml;
mod verification;

use steward::testing::ids::DomainId;
use steward::testing::resources::domains::{self, Domain};

use crate::support::prelude::*;

pub use crate::support::domains::add;

/// A workspace with one unverified domain, `corp.example`, and its DNS server.
struct Scene {
    dns: Dns,
    workspace: Workspace,
    domain: Value,
    path: String,
}

impl Scene {
    async fn new() -> Self {
        let dns = Dns::start().await;
        let config = dns.config();
        Self::with(dns, config).await
    }

    async fn with(dns: Dns, config: Config) -> Self {
        let workspace = Workspace::with(config).await;
        let (domain, path) = add(&workspace, "corp.example").await;
        Self { dns, workspace, domain, path }
    }

    fn challenge(&self) -> &str {
        self.domain["verification_challenge"].as_str().expect("a challenge")
    }
}

const TAKEN: &str = "domain with this domain already exists.";
const BAD_NAME: &str = "Please enter a valid domain or subdomain name.";
const UNVERIFIED: &str = "This attribute cannot be updated until the domain is verified.";

/// Marks a domain as verified without a DNS lookup. `verification` tests the lookup.
pub async fn prove(workspace: &Workspace, domain: &Value) {
    let organization = workspace.made.organization_id;
    let id: DomainId = serde_json::from_value(domain["id"].clone()).expect("an id");
    let then = Timestamp::from_micros(1_735_787_045_000_000);
    workspace.write(move |tx| domains::verify(tx, organization, id, then)).await;
}

/// Returns the log entries about one item, oldest first: scope, item, activity, name, and the changes as `field:
/// [before, after]`.
pub fn entries_about(workspace: &Workspace, id: &Value) -> Vec<Value> {
    let mut entries: Vec<Entry> = workspace.records(&workspace.made.organization_id);
    entries.retain(|entry| *id == json!(entry.fields.item_id));
    let told = entries.into_iter().map(|entry| {
        let shown = entry.fields;
        let mut changes = json!({});
        for change in shown.detail.changes {
            assert_eq!((&change.r#type, change.action.as_str()), (&shown.scope, "changed"));
            changes[&change.field] = json!([change.before, change.after]);
        }
        json!([shown.scope, shown.item_id, shown.activity, shown.detail.name, changes])
    });
    told.collect()
}

/// Returns the path of the domains of an outsider's organization.
fn foreign_list(foreign: &Value) -> String {
    in_organization(foreign, "domains/")
}

/// Returns a new domain as the API shows it, apart from its challenge.
fn unverified(name: &str, challenge: &Value) -> Value {
    json!({
        "id": "[id]", "domain": name, "is_verified": false, "verified_at": null,
        "verification_challenge": challenge, "jit_provisioning_enabled": false,
        "sso_enforcement": "", "has_saml": false, "saml_entity_id": null, "saml_acs_url": null,
        "saml_x509_cert": null,
    })
}

#[tokio::test]
async fn domain_has_exactly_these_fields() {
    let (workspace, member) = Workspace::with_member("ann", Level::Member).await;
    let list = workspace.organization("domains/");
    let made = workspace.owner.post(&list, json!({ "domain": " the.posthog.com " })).await;
    let expected = unverified("the.posthog.com", &made.body["verification_challenge"]);
    assert_eq!((made.status, redacted(made.body.clone())), (201, expected.clone()));
    let order = |body: &Value| body.as_object().expect("an object").keys().cloned().collect();
    let (shown, documented): (Vec<_>, Vec<_>) = (order(&made.body), order(&expected));
    assert_eq!(shown, documented);
    let challenge = made.body["verification_challenge"].as_str().expect("a challenge");
    let urlsafe = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    assert!(challenge.len() == 43 && challenge.bytes().all(urlsafe), "{challenge}");

    let one = format!("{list}{}/", made.body["id"].as_str().expect("an id"));
    for caller in [&workspace.owner, &member] {
        caller.get(&one).await.assert_is(200, made.body.clone());
        caller.get(one.trim_end_matches('/')).await.assert_is(200, made.body.clone());
        let page = json!({ "count": 1, "next": null, "previous": null, "results": [made.body] });
        caller.get(&list).await.assert_is(200, page);
    }
    workspace.owner.patch(&one, json!({})).await.assert_is(200, made.body);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn every_domain_has_its_own_permanent_challenge() {
    let workspace = Workspace::new().await;
    let (one, path) = add(&workspace, "one.example").await;
    let (two, _) = add(&workspace, "two.example").await;
    assert_ne!(one["verification_challenge"], two["verification_challenge"]);
    let sent = json!({
        "verification_challenge": "mine", "verified_at": "2025-01-01", "is_verified": true,
        "id": UNKNOWN, "has_saml": true, "saml_entity_id": "idp",
    });
    let mut expected = one;
    expected["saml_entity_id"] = json!("idp");
    workspace.owner.patch(&path, sent).await.assert_is(200, expected);
}

#[tokio::test]
async fn fields_of_verified_domains_are_ignored_on_create() {
    let workspace = Workspace::new().await;
    for (number, (jit, sso)) in [
        (json!(true), json!("saml")),
        (json!("maybe"), json!("nobody")),
        (json!(null), json!(null)),
        (json!([1]), json!({})),
        (json!(2), json!("x".repeat(1000))),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("d{number}.example");
        let sent = json!({
            "domain": name, "jit_provisioning_enabled": jit, "sso_enforcement": sso, "id": UNKNOWN,
            "is_verified": true, "verified_at": "2025-01-01T00:00:00Z", "has_saml": true,
            "verification_challenge": "mine",
        });
        let made = workspace.owner.post(&workspace.organization("domains/"), sent).await;
        let expected = unverified(&name, &made.body["verification_challenge"]);
        assert_eq!((made.status, redacted(made.body.clone())), (201, expected));
        assert_ne!(made.body["verification_challenge"], "mine");
        assert_ne!(made.body["id"], UNKNOWN);
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_names_are_accepted_or_rejected_by_their_form() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("domains/");
    let bad = "test@posthog.com 💻.com --alpha.com https://corp.example corp.example. corp \
        CORP.EXAMPLE 127.0.0.1 corp.example\nother.example corp.exаmple";
    for name in bad.split(' ') {
        workspace.owner.post(&list, json!({ "domain": name })).await.assert_bad("domain", BAD_NAME);
    }
    assert_eq!(workspace.owner.get(&list).await.ok()["count"], 0);
    let longest = format!("{}.{}.com", "a".repeat(61), "b".repeat(62));
    assert_eq!(longest.len(), 128);
    for name in ["a.bc", "1.2.3.example", "a-b-c.d-e.museum", &longest] {
        add(&workspace, name).await;
    }
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_name_is_validated_for_type_then_length_then_format() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("domains/");
    let long = "Ensure this field has no more than 128 characters.";
    let longer = format!("{}.{}.coms", "a".repeat(61), "b".repeat(62));
    let nul = "Null characters are not allowed.";
    for (sent, code, detail) in [
        (json!({ "name": "corp.example" }), "required", "This field is required."),
        (json!({ "domain": null }), "null", "This field may not be null."),
        (json!({ "domain": " \n " }), "blank", "This field may not be blank."),
        (json!({ "domain": ["corp.example"] }), "invalid_input", "Not a valid string."),
        (json!({ "domain": 1.5 }), "invalid_input", BAD_NAME),
        (json!({ "domain": "corp\u{0}.example" }), "null_characters_not_allowed", nul),
        (json!({ "domain": longer }), "max_length", long),
        (json!({ "domain": "ä".repeat(129) }), "max_length", long),
    ] {
        workspace.owner.post(&list, sent).await.assert_invalid("domain", code, detail);
    }
}

#[tokio::test]
async fn domain_name_is_unique_across_organizations() {
    let (workspace, owner) = Workspace::owned().await;
    let (made, path) = add(&workspace, "corp.example").await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let own = workspace.organization("domains/");
    let sent = json!({ "domain": " corp.example\n" });
    for (caller, list) in [(&owner, own), (&eve, foreign_list(&foreign))] {
        caller.post(&list, sent.clone()).await.assert_invalid("domain", "unique", TAKEN);
    }
    // Callers that may not access the organization do not learn that the name is in use.
    let list = workspace.organization("domains/");
    eve.post(&list, sent.clone()).await.assert_denied(NOT_ALLOWED);
    workspace.member("ann", Level::Member).await.post(&list, sent).await.assert_denied(TOO_LOW);
    owner.post(&list, json!({ "domain": "CORP.example" })).await.assert_bad("domain", BAD_NAME);
    owner.get(&path).await.assert_is(200, made);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_name_errors_are_reported_before_saml_errors() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("domains/");
    add(&workspace, "corp.example").await;
    let long = "Ensure this field has no more than 128 characters.";
    for (domain, code, detail) in [
        (json!("corp.example"), "unique", TAKEN),
        (json!("corp"), "invalid_input", BAD_NAME),
        (json!("c".repeat(129)), "max_length", long),
        (json!(null), "null", "This field may not be null."),
    ] {
        let sent = json!({ "domain": domain, "saml_acs_url": "no url", "saml_entity_id": [] });
        workspace.owner.post(&list, sent).await.assert_invalid("domain", code, detail);
    }
    let sent = json!({ "domain": "new.example", "saml_acs_url": "no url", "saml_entity_id": [] });
    workspace.owner.post(&list, sent).await.assert_bad("saml_entity_id", "Not a valid string.");
    assert_eq!(column(&workspace.owner.get(&list).await.ok(), "domain"), ["corp.example"]);
}

#[tokio::test]
async fn concurrent_requests_for_a_domain_name_create_one() {
    let workspace = Workspace::new().await;
    let mut sites = vec![(workspace.owner.clone(), workspace.organization("domains/"))];
    for name in ["eve", "mallory", "trudy"] {
        let (caller, foreign) = workspace.outsider(name).await;
        sites.push((caller, foreign_list(&foreign)));
    }
    for round in 0..5 {
        let sent = json!({ "domain": format!("wanted{round}.example") });
        let all = sites.iter().chain(&sites).map(|(caller, list)| caller.post(list, sent.clone()));
        let answers = join_all(all).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1);
        for refused in answers.iter().filter(|answer| answer.status != 201) {
            refused.assert_invalid("domain", "unique", TAKEN);
        }
    }
    let mut count = 0;
    for (caller, list) in &sites {
        count += caller.get(list).await.ok()["count"].as_u64().expect("a count");
    }
    assert_eq!(count, 5);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_domain_frees_its_name() {
    let workspace = Workspace::new().await;
    let (made, path) = add(&workspace, "corp.example").await;
    workspace.member("ada", Level::Admin).await.delete(&path).await.assert_empty(204);
    assert_eq!(workspace.owner.get(&workspace.organization("domains/")).await.ok()["count"], 0);
    let (eve, foreign) = workspace.outsider("eve").await;
    let again = eve.post(&foreign_list(&foreign), json!({ "domain": "corp.example" })).await.ok();
    assert_ne!(
        (&again["id"], &again["verification_challenge"]),
        (&made["id"], &made["verification_challenge"])
    );
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn deleted_organization_frees_its_domain_names_at_once() {
    let workspace = Workspace::new().await;
    let (eve, foreign) = workspace.outsider("eve").await;
    let theirs: OrganizationId = serde_json::from_value(foreign["id"].clone()).expect("an id");
    for name in ["corp.example", "left.example"] {
        eve.post(&foreign_list(&foreign), json!({ "domain": name })).await.ok();
    }
    // Does not wake the background task, so the records still exist, as for a request in between.
    workspace.write(move |tx| cascade_delete::delete_organization(tx, theirs)).await;
    assert_eq!(workspace.records::<Domain>(&theirs).len(), 2);
    eve.get(&foreign_list(&foreign)).await.assert_not_found("Organization not found.");
    workspace.assert_file_valid().await;

    // A creation that fails changes nothing.
    let bad = json!({ "domain": "corp.example", "saml_acs_url": "no url" });
    let refused = workspace.owner.post(&workspace.organization("domains/"), bad).await;
    refused.assert_bad("saml_acs_url", "Enter a valid URL.");
    assert_eq!(workspace.records::<Domain>(&theirs).len(), 2);

    let (made, path) = add(&workspace, "corp.example").await;
    assert_eq!(workspace.records::<Domain>(&theirs).len(), 1);
    let told = json!(["OrganizationDomain", made["id"], "created", "corp.example", {}]);
    assert_eq!(entries_about(&workspace, &made["id"]), [told]);
    let entries: Vec<Entry> = workspace.records(&theirs);
    let of_domains = entries.iter().filter(|entry| entry.fields.scope == "OrganizationDomain");
    let told: Vec<_> = of_domains.map(|entry| &*entry.fields.activity).collect();
    assert_eq!(told, ["created", "created"]);
    workspace.assert_file_valid().await;

    workspace.app.wake_maintenance();
    workspace.completes_deletions().await;
    assert_eq!(workspace.records::<Domain>(&theirs), []);
    workspace.owner.get(&path).await.assert_is(200, made);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domain_name_is_immutable() {
    let workspace = Workspace::new().await;
    add(&workspace, "taken.example").await;
    let (made, path) = add(&workspace, "corp.example").await;
    for name in [json!("other.example"), json!("taken.example"), json!(null), json!([5])] {
        workspace.owner.patch(&path, json!({ "domain": name })).await.assert_is(200, made.clone());
    }
    assert_eq!(entries_about(&workspace, &made["id"]).len(), 1, "nothing was written");
    let sent = json!({ "domain": "other.example", "saml_entity_id": "idp" });
    let patched = workspace.owner.patch(&path, sent).await.ok();
    assert_eq!(patched["domain"], "corp.example");
    assert_eq!(patched["saml_entity_id"], "idp");
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn unverified_domain_cannot_configure_sign_on() {
    let (workspace, owner) = Workspace::owned().await;
    let (made, path) = add(&workspace, "corp.example").await;
    let (jit, sso) = ("jit_provisioning_enabled", "sso_enforcement");
    for (sent, field) in [
        (json!({ "jit_provisioning_enabled": true }), jit),
        (json!({ "sso_enforcement": "github" }), sso),
        (json!({ "sso_enforcement": "saml" }), sso),
        (json!({ "sso_enforcement": "github", "jit_provisioning_enabled": true }), jit),
        (json!({ "sso_enforcement": "github", "jit_provisioning_enabled": false }), sso),
        (json!({ "sso_enforcement": "", "jit_provisioning_enabled": true }), jit),
    ] {
        owner.patch(&path, sent).await.assert_invalid(field, "verification_required", UNVERIFIED);
        owner.get(&path).await.assert_is(200, made.clone());
    }
    // The types of all fields are checked before the verification.
    let choice = "\"okta\" is not a valid choice.";
    let boolean = "Must be a valid boolean.";
    let null = "This field may not be null.";
    let url = "Enter a valid URL.";
    for (sent, field, code, detail) in [
        (json!({ "jit_provisioning_enabled": "maybe" }), jit, "invalid_input", boolean),
        (json!({ "jit_provisioning_enabled": null }), jit, "null", null),
        (json!({ "sso_enforcement": "okta", jit: true }), sso, "invalid_choice", choice),
        (json!({ "sso_enforcement": null }), sso, "null", null),
        (json!({ jit: true, "saml_acs_url": "no url" }), "saml_acs_url", "invalid_input", url),
    ] {
        owner.patch(&path, sent).await.assert_invalid(field, code, detail);
    }
    assert_eq!(entries_about(&workspace, &made["id"]).len(), 1);
}

#[tokio::test]
async fn verified_domain_configures_sign_on() {
    let workspace = Workspace::new().await;
    let (made, path) = add(&workspace, "corp.example").await;
    prove(&workspace, &made).await;
    let mut expected = made;
    expected["is_verified"] = json!(true);
    expected["verified_at"] = json!("2025-01-02T03:04:05Z");
    for (field, sent, kept) in [
        ("jit_provisioning_enabled", json!(true), json!(true)),
        ("jit_provisioning_enabled", json!("off"), json!(false)),
        ("jit_provisioning_enabled", json!("True"), json!(true)),
        ("sso_enforcement", json!("google-oauth2"), json!("google-oauth2")),
        ("sso_enforcement", json!("gitlab"), json!("gitlab")),
        ("sso_enforcement", json!(""), json!("")),
    ] {
        expected[field] = kept;
        workspace.owner.patch(&path, json!({ field: sent })).await.assert_is(200, expected.clone());
        workspace.owner.get(&path).await.assert_is(200, expected.clone());
    }
    for (sent, detail) in [
        (json!("GitHub"), "\"GitHub\" is not a valid choice."),
        (json!(" github"), "\" github\" is not a valid choice."),
        (json!(["github"]), "\"[\"github\"]\" is not a valid choice."),
    ] {
        let refused = workspace.owner.patch(&path, json!({ "sso_enforcement": sent })).await;
        refused.assert_invalid("sso_enforcement", "invalid_choice", detail);
    }
    workspace.owner.get(&path).await.assert_is(200, expected);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn domains_are_listed_by_name_in_pages() {
    let workspace = Workspace::new().await;
    let list = workspace.organization("domains/");
    for name in ["b.example", "a.example", "a-b.example", "a.b.example", "10.example", "9.example"]
    {
        add(&workspace, name).await;
    }
    let (eve, foreign) = workspace.outsider("eve").await;
    eve.post(&foreign_list(&foreign), json!({ "domain": "aa.example" })).await.ok();
    let sorted =
        ["10.example", "9.example", "a-b.example", "a.b.example", "a.example", "b.example"];
    for (query, shown) in
        [("", &sorted[..]), ("?limit=4", &sorted[..4]), ("?offset=4", &sorted[4..])]
    {
        let page = workspace.owner.get(&format!("{list}{query}")).await.ok();
        assert_eq!(column(&page, "domain"), shown, "{query}");
        assert_eq!(page["count"], 6);
    }
}

#[tokio::test]
async fn every_change_of_a_domain_creates_one_log_entry() {
    let workspace = Workspace::new().await;
    let (made, path) = add(&workspace, "corp.example").await;
    let (owner, id) = (&workspace.owner, made["id"].clone());
    owner.patch(&path, json!({ "saml_entity_id": "idp", "saml_acs_url": "" })).await.ok();
    owner.patch(&path, json!({ "saml_entity_id": "idp" })).await.ok();
    let refused = owner.patch(&path, json!({ "sso_enforcement": "github" })).await;
    refused.assert_invalid("sso_enforcement", "verification_required", UNVERIFIED);
    owner.delete(&path).await.assert_empty(204);
    let changes = json!({ "saml_entity_id": [null, "idp"], "saml_acs_url": [null, ""] });
    assert_eq!(
        entries_about(&workspace, &id),
        [
            json!(["OrganizationDomain", id, "created", "corp.example", {}]),
            json!(["OrganizationDomain", id, "updated", "corp.example", changes]),
            json!(["OrganizationDomain", id, "deleted", "corp.example", {}]),
        ]
    );
    let entries: Vec<Entry> = workspace.records(&workspace.made.organization_id);
    let mine = entries.iter().filter(|entry| entry.fields.scope == "OrganizationDomain");
    assert!(mine.into_iter().all(|entry| entry.meta.user.is_some()));
}
