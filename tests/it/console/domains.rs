//! The domains of an organization: the wizard that verifies one, and how people sign in.

use crate::support::domains::add;
use crate::support::prelude::*;

/// A workspace with a DNS server, a domain and its page.
struct Scene {
    dns: Dns,
    workspace: Workspace,
    challenge: String,
    page: String,
    api: String,
}

impl Scene {
    async fn new() -> Self {
        let dns = Dns::start().await;
        let workspace = Workspace::with(dns.config()).await;
        let (domain, api) = add(&workspace, "corp.example").await;
        let challenge = domain["verification_challenge"].as_str().expect("a text").to_owned();
        let page = workspace.page(&format!("domains/{}/", domain["id"].as_str().expect("an id")));
        Self { dns, workspace, challenge, page, api }
    }

    fn answer(&self, records: &[&[&str]]) {
        self.dns.set("_posthog-challenge.corp.example.", Reply::texts(records));
    }
}

/// Returns what the page says about the DNS.
fn answer(page: &Page) -> &str {
    page.between("<div id=\"answer\"", "</div>").split("<p>").nth(1).expect("a text")
}

#[tokio::test]
async fn domain_is_added_and_errors_stand_beside_the_field() {
    let dns = Dns::start().await;
    let workspace = Workspace::with(dns.config()).await;
    let mut owner = Visitor::owner(&workspace).await;
    let list = workspace.page("domains/");
    let page = owner.open(&list, "Domains").await;
    page.assert_has(&["This organization has no domains."]);
    let wrong = owner.submit(&page.form("form").with("domain", "Corp.example")).await;
    wrong.assert_shows(400, "Domains");
    wrong.assert_field_error("domain", "Please enter a valid domain or subdomain name.");
    let made = owner.submit(&wrong.form("form").with("domain", "corp.example")).await;
    let domain = made.location().strip_suffix("?done=domain-added").expect("a notice").to_owned();
    owner.get(&domain).await.assert_shows(200, "<bdi>corp.example</bdi>");
    let page = owner.get(&list).await;
    page.assert_has(&[&format!("<a href=\"{domain}\"><bdi>corp.example</bdi></a>")]);
    page.assert_has(&["Not verified", "Any way"]);
}

#[tokio::test]
async fn wizard_says_what_the_dns_answers_until_the_domain_is_verified() {
    let scene = Scene::new().await;
    let ben = Visitor::member(&scene.workspace, "ben", Level::Member).await;
    let seen = ben.open(&scene.page, "<bdi>corp.example</bdi>").await;
    seen.assert_has(&["Admins and owners can verify the domain."]);
    seen.assert_lacks(&["id=\"form\"", "/delete/", "/verify/", "data-repeat", &scene.challenge]);
    assert!(scene.dns.asked().is_empty(), "no look-up for those who may not verify");
    let mut owner = Visitor::owner(&scene.workspace).await;
    let page = owner.get(&scene.page).await;
    let name = page.between("<output id=\"name\" aria-labelledby=\"name-label\">", "</output>");
    assert_eq!(name, "_posthog-challenge.corp.example");
    let value = page.between("<output id=\"value\" aria-labelledby=\"value-label\">", "</output>");
    assert_eq!(value, scene.challenge);
    assert!(answer(&page).starts_with("There is no such record yet."));
    page.assert_has(&["data-repeat=\"12\""]);
    assert!(!page.html.contains("/verify/\""), "there is nothing to verify yet");
    assert!(page.between("<code dir=\"ltr\">curl", "</code>").contains("/verify/&#39;"));
    scene.answer(&[&["<b>one</b>"]]);
    let page = owner.get(&scene.page).await;
    assert!(answer(&page).starts_with("There is 1 TXT record of this name, with another value."));
    page.assert_has(&["<code dir=\"auto\">&#60;b&#62;one&#60;/b&#62;</code>"]);
    scene.answer(&[&["one"], &["two"]]);
    let page = owner.get(&scene.page).await;
    assert!(answer(&page).starts_with("There are 2 TXT records of this name, and none has"));
    scene.dns.set("_posthog-challenge.corp.example.", Reply::Refused);
    let page = owner.get(&scene.page).await;
    assert!(answer(&page).starts_with("All name servers failed or refused to answer."));
    scene.answer(&[&["one"], &[&scene.challenge]]);
    let page = owner.get(&scene.page).await;
    assert!(answer(&page).starts_with("The record is there."));
    assert!(!page.html.contains("data-repeat"), "the page stops asking");
    let key = scene.workspace.key(OWNER, &["organization:read"]).await.key;
    let reader = Visitor::with_key(&scene.workspace, &key.expect("a key")).await;
    let read = reader.get(&scene.page).await;
    read.assert_has(&["This session may not verify the domain."]);
    read.assert_lacks(&["/verify/", "id=\"form\""]);
    let form = page.form_to("/verify/");
    // The record vanishes before the domain is verified.
    scene.answer(&[]);
    let early = owner.submit(&form).await.showing(400, "<bdi>corp.example</bdi>");
    assert!(early.between("role=\"alert\">", "</div>").contains("The record was not found"));
    scene.answer(&[&[&scene.challenge]]);
    let form = owner.get(&scene.page).await.form_to("/verify/");
    let done = format!("{}?done=domain-verified", scene.page);
    assert_eq!(owner.submit(&form).await.location(), done);
    assert_eq!(owner.submit(&form).await.location(), done, "the same form again");
    let page = owner.get(&scene.page).await;
    page.assert_has(&["<span class=\"tag good\">Verified</span>"]);
    page.assert_lacks(&[&scene.challenge, "/verify/"]);
    assert_eq!(scene.workspace.owner.get(&scene.api).await.ok()["is_verified"], true);
}

#[tokio::test]
async fn sign_in_of_a_verified_domain_is_changed() {
    let scene = Scene::new().await;
    let mut owner = Visitor::owner(&scene.workspace).await;
    let page = owner.get(&scene.page).await;
    assert!(!page.html.contains("sso_enforcement"), "only a verified domain has it");
    let form = page.form("form").with("saml_entity_id", "idp").with("saml_acs_url", "nowhere");
    let refused = owner.submit(&form).await.showing(400, "<bdi>corp.example</bdi>");
    refused.assert_has(&["id=\"form-saml_acs_url-error\""]);
    assert_eq!(refused.form("form").value("saml_entity_id"), "idp");
    scene.answer(&[&[&scene.challenge]]);
    let verify = owner.get(&scene.page).await.form_to("/verify/");
    owner.submit(&verify).await.location();
    let form = owner.get(&scene.page).await.form("form");
    assert_eq!(form.value("sso_enforcement"), "");
    let refused = owner.submit(&form.clone().with("sso_enforcement", "saml")).await;
    refused.assert_field_error("sso_enforcement", "SAML can be enforced only with");
    let wrong = owner.submit(&form.clone().with("saml_x509_cert", "x")).await;
    wrong.assert_field_error("saml_x509_cert", "Enter one valid X.509 certificate");
    let form = form.with("sso_enforcement", "github").with("jit_provisioning_enabled", "true");
    let saved = owner.submit(&form.with("saml_acs_url", "https://idp.example/acs")).await;
    assert_eq!(saved.location(), format!("{}?done=domain-saved", scene.page));
    let stored = scene.workspace.owner.get(&scene.api).await.ok();
    let fields = ["sso_enforcement", "jit_provisioning_enabled", "saml_acs_url", "saml_entity_id"];
    let stored = fields.map(|name| stored[name].clone());
    let expected = [json!("github"), json!(true), json!("https://idp.example/acs"), json!(null)];
    assert_eq!(stored, expected);
    owner.get(&scene.workspace.page("domains/")).await.assert_has(&["GitHub", "New users join"]);
    let form = owner.get(&scene.page).await.form("form").without("jit_provisioning_enabled");
    owner.submit(&form).await.location();
    assert_eq!(scene.workspace.owner.get(&scene.api).await.ok()["jit_provisioning_enabled"], false);
}

#[tokio::test]
async fn certificate_is_shown_in_words_and_an_expired_one_is_marked() {
    let scene = Scene::new().await;
    let owner = Visitor::owner(&scene.workspace).await;
    assert!(!owner.get(&scene.page).await.html.contains("id=\"certificate\""));
    for (year, expired) in [(2020, true), (2100, false)] {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "<b>Corp</b>");
        params.not_before = rcgen::date_time_ymd(2000, 2, 3);
        params.not_after = rcgen::date_time_ymd(year, 2, 3);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        scene.workspace.owner.patch(&scene.api, json!({ "saml_x509_cert": pem.trim() })).await.ok();
        let page = owner.get(&scene.page).await;
        let card = page.between("id=\"certificate\">", "</section>");
        let subject = "<bdi>CN=rcgen self signed cert, O=&#60;b&#62;Corp&#60;/b&#62;";
        assert!(card.contains(&format!("<dt>Subject</dt><dd>{subject}")), "{card}");
        assert!(card.contains("The same: the certificate is self-signed"), "{card}");
        assert!(card.contains("<dt>Valid from</dt><dd>2000-02-03</dd>"), "{card}");
        let end = if expired { "Expired" } else { "Expires" };
        assert!(card.contains(&format!("<dt>{end}</dt><dd>{year}-02-03 (<time")), "{card}");
        assert_eq!(card.contains("The certificate has expired."), expired, "{card}");
    }
}
