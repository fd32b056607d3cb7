//! Tests of `GET /api/organizations/:organization_id/domains/:id/certificate/`.

use rcgen::{CertificateParams, DnType, Issuer, KeyPair, date_time_ymd};

use crate::domains::add;
use crate::support::prelude::*;

/// Creates a certificate that an authority with this name issued, valid for the years from 2000 to `until`.
fn issued(authority: &str, holder: &str, until: i32) -> String {
    let params = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::OrganizationName, "Corp");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        params
    };
    let key = KeyPair::generate().expect("a key");
    let issuer = Issuer::new(params(authority), KeyPair::generate().expect("a key"));
    params(holder).signed_by(&key, &issuer).expect("a certificate").pem().trim().to_owned()
}

#[tokio::test]
async fn certificate_is_described_with_its_holder_issuer_and_end() {
    let (workspace, clock) = Workspace::timed().await;
    let (_, path) = add(&workspace, "corp.example").await;
    let path = format!("{path}certificate/");
    let owner = &workspace.owner;
    let member = workspace.member("mia", Level::Member).await;
    let nothing = json!({
        "subject": null, "issuer": null, "not_before": null, "not_after": null, "is_expired": null,
    });
    let answer = owner.get(&path).await;
    answer.assert_is(200, nothing.clone());
    assert!(!answer.headers.contains_key("etag"), "{:?}", answer.headers);
    let store = async |text: Value| {
        let domain = path.trim_end_matches("certificate/");
        owner.patch(domain, json!({ "saml_x509_cert": text })).await.ok();
    };
    store(json!("")).await;
    member.get(&path).await.assert_is(200, nothing);
    store(issued("Authority", "idp.example", 2024).into()).await;
    let mut expected = json!({
        "subject": "CN=idp.example, O=Corp", "issuer": "CN=Authority, O=Corp",
        "not_before": "2000-01-01T00:00:00Z", "not_after": "2024-01-01T00:00:00Z", "is_expired": false,
    });
    owner.get(&path).await.assert_is(200, expected.clone());
    clock.advance(Duration::from_hours(24 * 60));
    expected["is_expired"] = true.into();
    owner.get(&path).await.assert_is(200, expected);
    store(issued("Authority", &format!("idp\u{7}{}", "x".repeat(2_000)), 2024).into()).await;
    let subject = owner.get(&path).await.ok()["subject"].as_str().expect("a name").to_owned();
    assert_eq!(subject.chars().count(), 1_000);
    assert!(subject.starts_with("CN=idp\u{fffd}xxx"), "{subject}");
}
