//! Tests of the SAML fields of domains, and of enforcing SAML.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};

use crate::domains::add;
use crate::support::prelude::*;

const BAD_CERTIFICATE: &str = "Enter one valid X.509 certificate, as PEM or as its base64.";
const INCOMPLETE: &str =
    "SAML can be enforced only with saml_entity_id, saml_acs_url and saml_x509_cert set.";
const IN_USE: &str = "This attribute cannot be cleared while SAML is enforced.";
const URL: &str = "https://idp.example/acs";

/// A certificate of an identity provider, with its private key.
struct Issued {
    pem: String,
    der: Vec<u8>,
    key: KeyPair,
}

impl Issued {
    fn new() -> Self {
        Self::until(2100)
    }

    /// Creates a certificate that expires at the beginning of this year.
    fn until(year: i32) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params =
            CertificateParams::new(vec!["idp.example".to_owned()]).expect("a valid name");
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let made = params.self_signed(&key).expect("a certificate");
        Self { pem: made.pem().trim().to_owned(), der: made.der().to_vec(), key }
    }

    fn base64(&self) -> String {
        STANDARD.encode(&self.der)
    }
}

/// A workspace with one domain, `corp.example`.
struct Scene {
    workspace: Workspace,
    domain: Value,
    path: String,
}

impl Scene {
    async fn new() -> Self {
        let workspace = Workspace::new().await;
        let (domain, path) = add(&workspace, "corp.example").await;
        Self { workspace, domain, path }
    }

    /// Creates the workspace and verifies the domain.
    async fn verified() -> Self {
        let mut scene = Self::new().await;
        prove(&scene.workspace, &scene.domain).await;
        scene.domain = scene.workspace.owner.get(&scene.path).await.ok();
        scene
    }

    /// Sends a PATCH and asserts that it changes exactly these fields.
    async fn changes(&mut self, sent: Value, changes: Value) {
        for (field, value) in changes.as_object().expect("fields") {
            self.domain[field] = value.clone();
        }
        self.workspace.owner.patch(&self.path, sent).await.assert_is(200, self.domain.clone());
        self.workspace.owner.get(&self.path).await.assert_is(200, self.domain.clone());
    }

    /// Sends a PATCH and asserts that it fails and changes nothing.
    async fn refuses(&self, sent: Value, attr: &str, code: &str, detail: &str) {
        self.workspace.owner.patch(&self.path, sent).await.assert_invalid(attr, code, detail);
        self.workspace.owner.get(&self.path).await.assert_is(200, self.domain.clone());
    }
}

/// Returns all fields of SAML.
fn complete(pem: &str) -> Value {
    json!({ "saml_entity_id": "urn:idp", "saml_acs_url": URL, "saml_x509_cert": pem })
}

#[tokio::test]
async fn saml_fields_can_be_set_at_any_time() {
    let pem = Issued::new().pem;
    let mut scene = Scene::new().await;
    let field = |name: &str, value: Value, has: bool| {
        let mut changes = json!({ "has_saml": has });
        changes[name] = value;
        changes
    };
    for (name, sent, kept, has) in [
        ("saml_x509_cert", json!(format!("\n{pem}\n ")), json!(pem), false),
        ("saml_entity_id", json!("  urn:idp  "), json!("urn:idp"), false),
        ("saml_acs_url", json!(URL), json!(URL), true),
        ("saml_entity_id", json!(""), json!(""), false),
        ("saml_entity_id", json!(5), json!("5"), true),
        ("saml_acs_url", json!(null), json!(null), false),
        ("saml_acs_url", json!(URL), json!(URL), true),
        ("saml_x509_cert", json!(" \n "), json!(""), false),
        ("saml_x509_cert", json!(null), json!(null), false),
    ] {
        scene.changes(json!({ name: sent }), field(name, kept, has)).await;
    }
    scene.workspace.assert_file_valid().await;

    let mut all = complete(&pem);
    all["domain"] = json!("whole.example");
    let list = scene.workspace.organization("domains/");
    let made = scene.workspace.owner.post(&list, all.clone()).await;
    assert_eq!((made.status, &made.body["has_saml"]), (201, &json!(true)));
    for (name, value) in all.as_object().expect("fields") {
        assert_eq!(made.body[name], *value);
    }
    let none = json!({
        "domain": "none.example", "saml_entity_id": null, "saml_acs_url": "", "saml_x509_cert": "",
    });
    let made = scene.workspace.owner.post(&list, none).await;
    assert_eq!((made.status, &made.body["has_saml"]), (201, &json!(false)));
    let fields = ["saml_entity_id", "saml_acs_url", "saml_x509_cert"].map(|name| &made.body[name]);
    assert_eq!(json!(fields), json!([null, "", ""]));
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn saml_fields_are_validated_on_create_and_update() {
    let scene = Scene::new().await;
    let list = scene.workspace.organization("domains/");
    let long = "Ensure this field has no more than 512 characters.";
    let (text, url) = ("Not a valid string.", "Enter a valid URL.");
    let nul = "Null characters are not allowed.";
    for (field, value, code, detail) in [
        ("saml_entity_id", json!(true), "invalid_input", text),
        ("saml_entity_id", json!("a\u{0}"), "null_characters_not_allowed", nul),
        ("saml_entity_id", json!("ä".repeat(513)), "max_length", long),
        ("saml_acs_url", json!({}), "invalid_input", text),
        ("saml_acs_url", json!("/acs"), "invalid_input", url),
        ("saml_acs_url", json!("javascript:alert(1)"), "invalid_input", url),
        ("saml_acs_url", json!("https://user:secret@idp.example/"), "invalid_input", url),
        ("saml_acs_url", json!(format!("https://{}", "a".repeat(505))), "max_length", long),
        ("saml_x509_cert", json!(false), "invalid_input", text),
        ("saml_x509_cert", json!(5), "invalid_input", BAD_CERTIFICATE),
        ("saml_x509_cert", json!("a\u{0}"), "null_characters_not_allowed", nul),
    ] {
        scene.refuses(json!({ field: value }), field, code, detail).await;
        let sent = json!({ "domain": "new.example", field: value });
        scene.workspace.owner.post(&list, sent).await.assert_invalid(field, code, detail);
    }
    // The error is about the first invalid field in PostHog's order.
    let sent = json!({ "saml_x509_cert": "x", "saml_acs_url": "x", "saml_entity_id": [] });
    scene.refuses(sent, "saml_entity_id", "invalid_input", text).await;
    let sent = json!({ "saml_x509_cert": "x", "saml_acs_url": "x" });
    scene.refuses(sent, "saml_acs_url", "invalid_input", url).await;
    assert_eq!(scene.workspace.owner.get(&list).await.ok()["count"], 1);
}

#[tokio::test]
async fn saml_fields_of_maximum_length_are_accepted() {
    let mut scene = Scene::new().await;
    let entity = "ä".repeat(512);
    scene.changes(json!({ "saml_entity_id": entity }), json!({ "saml_entity_id": entity })).await;
    let url = format!("https://idp.example/{}", "a".repeat(492));
    scene.changes(json!({ "saml_acs_url": url }), json!({ "saml_acs_url": url })).await;
    // White space in the base64 counts towards the length, because it is stored.
    let base64 = Issued::new().base64();
    let (head, tail) = base64.split_at(64);
    let wide = format!("{head}{}{tail}", " ".repeat(16_384 - base64.len()));
    let changes = json!({ "saml_x509_cert": wide, "has_saml": true });
    scene.changes(json!({ "saml_x509_cert": wide }), changes).await;
    let wider = format!("{wide}\n{tail}");
    let detail = "Ensure this field has no more than 16384 characters.";
    scene.refuses(json!({ "saml_x509_cert": wider }), "saml_x509_cert", "max_length", detail).await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn certificate_is_accepted_in_every_common_format_and_stored_unchanged() {
    let mut scene = Scene::new().await;
    let (issued, expired) = (Issued::new(), Issued::until(2001));
    let base64 = issued.base64();
    let lines = base64.as_bytes().chunks(64).fold(String::new(), |mut lines, line| {
        writeln!(lines, "{}", String::from_utf8_lossy(line)).expect("text");
        lines
    });
    for certificate in [
        issued.pem.clone(),
        issued.pem.replace('\n', "\r\n"),
        issued.pem.replace('\n', ""),
        issued.pem.replace('\n', " "),
        base64.clone(),
        lines.trim().to_owned(),
        lines.trim().replace('\n', "\r\n  "),
        expired.pem,
        format!(
            "Bag Attributes\n    localKeyID: 01 \nsubject=CN = idp\n\nissuer=CN = idp\n\n{}",
            issued.pem
        ),
        format!("subject=idp\r\n{}\r\nwords behind it", issued.pem.replace('\n', "\r\n")),
        format!("\u{feff}{}", issued.pem),
        format!("idp:\n  cert: |\n    {}", issued.pem.trim().replace('\n', "\n    ")),
    ] {
        let changes = json!({ "saml_x509_cert": certificate });
        scene.changes(json!({ "saml_x509_cert": certificate }), changes).await;
    }
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn anything_but_exactly_one_certificate_is_rejected() {
    let scene = Scene::new().await;
    let (issued, other) = (Issued::new(), Issued::new());
    let (pem, base64) = (issued.pem.as_str(), issued.base64());
    let key = issued.key.serialize_pem();
    let encoded = |der: &[u8]| STANDARD.encode(der);
    let der = &issued.der;
    let mut flipped = der.clone();
    flipped[0] ^= 1;
    let relabelled = |label: &str| pem.replace("CERTIFICATE", label);
    for (case, certificate) in [
        ("nothing between the marks", pem.lines().next().expect("a mark").to_owned()),
        ("marks only", "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----".to_owned()),
        ("no end", pem.replace("-----END CERTIFICATE-----", "")),
        ("no beginning", pem.replace("-----BEGIN CERTIFICATE-----", "")),
        ("too much padding", format!("{base64}=")),
        ("one byte more", encoded(&[der, &[0][..]].concat())),
        ("two in one", encoded(&[&der[..], &other.der].concat())),
        ("of another type", encoded(&flipped)),
        ("two certificates", format!("{pem}\n{}", other.pem)),
        ("the same one twice", format!("{pem}\n{pem}")),
        ("two as base64", format!("{base64}\n{}", other.base64())),
        ("its chain after base64", format!("{base64}\n{pem}")),
        ("words in its line", format!("subject=idp {pem}")),
        ("a request before it", format!("{}\n{pem}", relabelled("CERTIFICATE REQUEST"))),
        ("in lower case", pem.to_lowercase()),
        ("a private key", key.clone()),
        ("a private key beside it", format!("{pem}\n{key}")),
        ("a private key before it", format!("{key}\n{pem}")),
        ("a private key without marks", encoded(issued.key.serialized_der())),
        ("a private key within the marks", key.replace("PRIVATE KEY", "CERTIFICATE")),
        ("a public key", issued.key.public_key_pem()),
        ("another label", relabelled("TRUSTED CERTIFICATE")),
        ("a request's label", relabelled("CERTIFICATE REQUEST")),
        ("the base64 of URLs", format!("{base64}-_-_")),
    ] {
        let sent = json!({ "saml_x509_cert": certificate });
        let refused = scene.workspace.owner.patch(&scene.path, sent).await;
        assert_eq!(refused.status, 400, "{case}");
        refused.assert_bad("saml_x509_cert", BAD_CERTIFICATE);
    }
    scene.workspace.owner.get(&scene.path).await.assert_is(200, scene.domain.clone());
}

#[tokio::test]
async fn saml_enforcement_requires_all_saml_fields() {
    let whole = complete(&Issued::new().pem);
    let enforced = |mut fields: Value| {
        fields["sso_enforcement"] = json!("saml");
        fields
    };
    let mut scene = Scene::verified().await;
    // Each field in turn is missing, blank or null.
    scene.refuses(enforced(json!({})), "sso_enforcement", "invalid_input", INCOMPLETE).await;
    for missing in ["saml_entity_id", "saml_acs_url", "saml_x509_cert"] {
        for value in [None, Some(json!("")), Some(json!(" ")), Some(json!(null))] {
            let mut sent = enforced(whole.clone());
            match value {
                Some(value) => sent[missing] = value,
                None => drop(sent.as_object_mut().expect("fields").remove(missing)),
            }
            scene.refuses(sent, "sso_enforcement", "invalid_input", INCOMPLETE).await;
        }
    }
    // All fields in one request.
    let mut changes = enforced(whole.clone());
    changes["has_saml"] = json!(true);
    scene.changes(enforced(whole.clone()), changes.clone()).await;
    // Fields that are already stored count.
    scene.changes(json!({ "sso_enforcement": "" }), json!({ "sso_enforcement": "" })).await;
    scene.changes(enforced(json!({})), enforced(json!({}))).await;
    let other = json!({ "saml_entity_id": "a" });
    scene.changes(enforced(other.clone()), other).await;
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn required_saml_fields_cannot_be_cleared_while_saml_is_enforced() {
    let pem = Issued::new().pem;
    let mut scene = Scene::verified().await;
    let mut whole = complete(&pem);
    whole["sso_enforcement"] = json!("saml");
    let mut changes = whole.clone();
    changes["has_saml"] = json!(true);
    scene.changes(whole, changes).await;
    for (sent, attr) in [
        (json!({ "saml_entity_id": "" }), "saml_entity_id"),
        (json!({ "saml_entity_id": null }), "saml_entity_id"),
        (json!({ "saml_acs_url": " " }), "saml_acs_url"),
        (json!({ "saml_x509_cert": null }), "saml_x509_cert"),
        (json!({ "saml_x509_cert": "", "saml_acs_url": null }), "saml_acs_url"),
        (json!({ "saml_x509_cert": "", "saml_acs_url": URL }), "saml_x509_cert"),
        (json!({ "saml_entity_id": "", "jit_provisioning_enabled": true }), "saml_entity_id"),
    ] {
        scene.refuses(sent, attr, "invalid_input", IN_USE).await;
    }
    let kept = json!({ "saml_entity_id": "", "sso_enforcement": "saml" });
    scene.refuses(kept, "sso_enforcement", "invalid_input", INCOMPLETE).await;
    // A field can be replaced while SAML is enforced.
    let other = Issued::new().pem;
    scene.changes(json!({ "saml_x509_cert": other }), json!({ "saml_x509_cert": other })).await;
    // A field can be cleared in the request that stops enforcing SAML.
    let sent = json!({ "sso_enforcement": "github", "saml_entity_id": null });
    let mut changes = sent.clone();
    changes["has_saml"] = json!(false);
    scene.changes(sent, changes).await;
    // When SAML is not enforced, the other fields can be cleared too.
    let cleared = json!({ "saml_acs_url": "", "saml_x509_cert": null });
    scene.changes(cleared.clone(), cleared).await;
    scene.workspace.assert_file_valid().await;
}
