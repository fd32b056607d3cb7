//! Signing in by mail: the form, the mail, and the code in the browser that asked.

use steward::InitialRecords;
use steward::testing::resources::sessions::SignInRequest;

use crate::support::prelude::*;
use crate::support::{domains, log};

const ASK: &str = "/console/sign_in/mail/";
const CODE: &str = "/console/sign_in/code/";
const SESSIONS: &str = "/console/sessions/";
const INVALID_CODE: &str =
    "This code signs nobody in. It may be mistyped, expired or used, or there is a newer mail.";
const OTHER_BROWSER: &str = "This browser did not ask for a mail within the last ten minutes.";

/// A workspace whose users can sign in by mail, its mail server and its clock.
struct Scene {
    workspace: Workspace,
    server: MailServer,
    clock: ManualClock,
}

/// Returns a configuration with sign-in by mail. A trusted proxy names the addresses of browsers.
fn config(server: &MailServer) -> (Config, ManualClock) {
    let (config, clock) = with_clock();
    let mut config = with_server(config, server);
    config.console_mail_login = true;
    config.metrics = Metrics::enabled();
    config.trusted_proxies = vec!["127.0.0.0/8".parse().expect("a network")];
    (config, clock)
}

impl Scene {
    async fn new() -> Self {
        let server = MailServer::start();
        let (config, clock) = config(&server);
        Self { workspace: Workspace::with(config).await, server, clock }
    }

    /// Returns a browser at this address.
    fn browser(&self, address: &str) -> Visitor {
        let mut browser = Visitor::new(&self.workspace);
        browser.address = Some(address.to_owned());
        browser
    }

    /// Asks for a mail to the owner. Returns the browser and the mail.
    async fn asked(&mut self) -> (Visitor, Mail) {
        let mut browser = self.browser("192.0.2.7");
        assert_eq!(browser.post(ASK, &[("email", OWNER)]).await.location(), CODE);
        (browser, self.server.mail().await)
    }

    fn metric(&self, name: &str) -> f64 {
        Numbers::at_once(&self.workspace.app).value(name, &[])
    }

    /// Waits until this number of attempts has failed, and advances the clock to the next one. An attempt and the beginning
    /// of the wait after it are one step of this thread.
    async fn failed(&self, attempts: u32) {
        let failed = || is(self.metric("steward_mails_failed_total"), attempts).then_some(());
        eventually("an attempt fails", failed).await;
        self.clock.advance(Duration::from_secs(10));
    }

    fn requests(&self) -> Vec<SignInRequest> {
        self.workspace.records(&())
    }

    /// Waits until this number of requests is stored. Returns how many of them have a user.
    async fn stored(&self, count: usize) -> usize {
        eventually("requests are stored", || (self.requests().len() == count).then_some(())).await;
        self.requests().iter().filter(|request| request.user.is_some()).count()
    }
}

fn code(mail: &Mail) -> String {
    let (text, _) = mail.bodies();
    let is_code = |line: &&str| line.len() == 9 && line.as_bytes()[4] == b'-';
    text.lines().find(is_code).expect("a code").to_owned()
}

/// Returns another code.
fn wrong(code: &str) -> String {
    let first = if code.starts_with('0') { "1" } else { "0" };
    format!("{first}{}", &code[1..])
}

#[track_caller]
fn assert_refused(page: &Page, why: &str) {
    page.assert_shows(401, "Sign in by mail").assert_has(&[why]);
    assert!(!page.headers.contains_key("set-cookie"));
}

async fn assert_signed_out(browser: &Visitor) {
    assert!(browser.get(SESSIONS).await.location().starts_with("/console/sign_in/"));
}

#[tokio::test]
async fn mail_signs_in_once_the_browser_that_asked() {
    let mut scene = Scene::new().await;
    let page = scene.browser("192.0.2.7").get("/console/sign_in/").await;
    page.assert_has(&["<form method=\"post\" action=\"/console/sign_in/mail/\">"]);
    let (mut browser, mail) = scene.asked().await;
    assert_eq!([mail.to.join(" "), mail.subject()], [OWNER, "Sign in to Steward"]);
    let (text, html) = mail.bodies();
    let code = code(&mail);
    let link = format!("https://admin.corp.example/console/sign_in/code/#{code}");
    assert_eq!(
        text,
        format!(
            "Hello,\n\nSomebody asked to sign in to Steward at https://admin.corp.example with this address. \
             The request came from 192.0.2.7.\n\n\
             Open this link before 2023-11-14 22:23 UTC, in the browser that asked:\n\n{link}\n\n\
             If the link opens in another browser, enter this code in the browser that asked:\n\n{code}\n\n\
             The link and the code work once. Do not share them. If you did not ask for this mail, you can ignore it."
        )
    );
    assert!(html.contains(&format!("<a href=\"{link}\"")) && html.contains(&code), "{html}");
    assert!(!html.contains("src=") && !html.contains("url("), "nothing remote: {html}");

    let page = browser.post(CODE, &[("code", &code), ("next", SESSIONS)]).await;
    assert_eq!(page.location(), SESSIONS);
    assert!(browser.cookie.is_some() && browser.mail_cookie.is_none());
    let removed = page.headers.get_all("set-cookie").iter().next_back().expect("a cookie");
    assert_eq!(removed, "steward-mail=; HttpOnly; SameSite=Strict; Path=/console/; Max-Age=0");
    let page = browser.open(SESSIONS, "Sessions").await;
    page.assert_has(&["<td data-label=\"Signed in with\">A mail</td>"]);
    assert_eq!(scene.stored(0).await, 0);
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn session_by_mail_does_what_its_user_may_and_creates_a_key() {
    let mut scene = Scene::new().await;
    let (mut browser, mail) = scene.asked().await;
    browser.post(CODE, &[("code", &code(&mail))]).await;
    let cookie = browser.cookie.expect("a cookie");
    let text = cookie.split_once('=').expect("a value").1;
    let session = scene.workspace.app.verify_session(text).expect("a session");
    assert!(!session.is_operator);
    let client = scene.workspace.in_session(session);
    let listed = client.get("/api/users/@me/sessions/").await.ok();
    let (source, key, address) =
        (&listed[0]["source"], &listed[0]["key"], &listed[0]["ip_address"]);
    assert_eq!((source, key, address), (&json!("mail"), &Value::Null, &json!("192.0.2.7")));
    let made =
        client.post("/api/personal_api_keys/", json!({ "label": "new", "scopes": ["*"] })).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let key = scene.workspace.with_key(made.body["value"].as_str().expect("a key"));
    assert_eq!(key.get(ME).await.ok()["email"], OWNER);
}

#[tokio::test]
async fn link_opened_elsewhere_signs_nobody_in_and_uses_nothing_up() {
    let mut scene = Scene::new().await;
    let (mut browser, mail) = scene.asked().await;
    let code = code(&mail);
    // A program that looks for malware opens the link, and sends its form.
    let mut other = scene.browser("198.51.100.1");
    for _ in 0..10 {
        other.get(CODE).await.assert_shows(200, "Sign in by mail");
        assert_refused(&other.post(CODE, &[("code", &code)]).await, OTHER_BROWSER);
    }
    // A browser that asked for another mail has another nonce.
    other.post(ASK, &[("email", "nobody@x.example")]).await;
    assert_eq!(scene.stored(2).await, 1);
    assert_refused(&other.post(CODE, &[("code", &code)]).await, INVALID_CODE);
    for forged in
        ["steward-mail=", "steward-mail=AAAA", "steward-mail=\"", "steward-mail=a; steward-mail=b"]
    {
        other.mail_cookie = Some(forged.to_owned());
        assert_eq!(other.post(CODE, &[("code", &code)]).await.status, 401);
    }
    assert_signed_out(&other).await;
    assert_eq!(browser.post(CODE, &[("code", &code)]).await.location(), "/console/");
}

#[tokio::test]
async fn nonces_that_others_set_beside_that_of_the_browser_do_not_matter() {
    let mut scene = Scene::new().await;
    let planted = format!("steward-mail={}", "A".repeat(43));
    for order in 0..3 {
        let (mut browser, mail) = scene.asked().await;
        let own = browser.mail_cookie.clone().expect("a cookie");
        browser.mail_cookie = Some(match order {
            0 => format!("{own}; {planted}"),
            1 => format!("{planted}; {own}"),
            _ => format!("{own}; {own}"),
        });
        let page = browser.post(CODE, &[("code", &code(&mail))]).await;
        assert_eq!(page.location(), "/console/", "{order}");
    }
    // Mails that were used count too.
    scene.clock.advance(Duration::from_mins(20));
    let (mut browser, mail) = scene.asked().await;
    browser.mail_cookie = Some(format!("{planted}; steward-mail={}", "B".repeat(43)));
    assert_refused(&browser.post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);
}

#[tokio::test]
async fn code_signs_in_once_and_within_ten_minutes() {
    let mut scene = Scene::new().await;
    let (mut browser, mail) = scene.asked().await;
    let used = browser.clone();
    assert_eq!(browser.post(CODE, &[("code", &code(&mail))]).await.location(), "/console/");
    assert_refused(&used.clone().post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);

    let (mut browser, mail) = scene.asked().await;
    let mut late = browser.clone();
    scene.clock.advance(Duration::from_secs(599));
    assert_eq!(browser.post(CODE, &[("code", &code(&mail))]).await.location(), "/console/");
    let (browser, mail) = scene.asked().await;
    late.mail_cookie = browser.mail_cookie;
    scene.clock.advance(Duration::from_mins(10));
    assert_refused(&late.post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_uses_of_a_code_create_one_session() {
    let mut scene = Scene::new().await;
    let (browser, mail) = scene.asked().await;
    let code = code(&mail);
    let uses = (0..8).map(|_| {
        let (mut browser, code) = (browser.clone(), code.clone());
        tokio::spawn(async move { browser.post(CODE, &[("code", &code)]).await.status == 303 })
    });
    let done = join_all(uses).await;
    assert_eq!(done.into_iter().filter(|used| *used.as_ref().expect("no panic")).count(), 1);
    let listed = scene.workspace.owner.get("/api/users/@me/sessions/").await.ok();
    assert_eq!(listed.as_array().expect("a list").len(), 1);
}

#[tokio::test]
async fn fifth_wrong_code_closes_the_request() {
    let mut scene = Scene::new().await;
    for (wrong_codes, status) in [(4, 303), (5, 401)] {
        let (mut browser, mail) = scene.asked().await;
        let code = code(&mail);
        for _ in 0..wrong_codes {
            assert_refused(&browser.post(CODE, &[("code", &wrong(&code))]).await, INVALID_CODE);
        }
        // A text that is no code is no attempt.
        for text in ["", "x", &code[1..]] {
            assert_refused(&browser.post(CODE, &[("code", text)]).await, INVALID_CODE);
        }
        assert_eq!(browser.post(CODE, &[("code", &code)]).await.status, status);
    }
}

#[tokio::test]
async fn code_of_an_older_mail_does_not_sign_in_the_browser() {
    let mut scene = Scene::new().await;
    let (mut browser, first) = scene.asked().await;
    browser.post(ASK, &[("email", OWNER)]).await;
    let second = scene.server.mail().await;
    assert_refused(&browser.post(CODE, &[("code", &code(&first))]).await, INVALID_CODE);
    assert_eq!(browser.post(CODE, &[("code", &code(&second))]).await.location(), "/console/");
}

/// Creates one account for each reason for which an address gets no mail.
async fn add_ineligible(workspace: &Workspace) -> [String; 4] {
    let sent = json!({ "target_email": "link@x.example", "send_email": false });
    let made = invite(&workspace.owner, workspace, sent).await;
    let id = made["id"].as_str().expect("an id").parse().expect("an id");
    let link = workspace.run_operation(Operation::InviteLink { id }).await;
    Offer::of(&link).accept(&workspace.anonymous(), json!({ "first_name": "Lin" })).await.ok();

    workspace.member("gone", Level::Member).await;
    workspace.set_active("gone@corp.example", false).await;

    let (domain, path) = domains::add(workspace, "sso.example").await;
    prove(workspace, &domain).await;
    workspace.owner.patch(&path, json!({ "sso_enforcement": "google-oauth2" })).await.ok();
    for email in ["ann@sso.example", "bob@sub.sso.example"] {
        workspace.run_operation(Operation::UserCreate(new_user(email, None))).await;
    }
    ["link@x.example", "gone@corp.example", "ann@sso.example", "bob@sub.sso.example"]
        .map(str::to_owned)
}

/// Returns what a browser observes that asks for a mail and enters six wrong codes.
async fn observed(scene: &Scene, email: &str, address: &str) -> Vec<String> {
    let mut browser = scene.browser(address);
    let seen = |page: &Page| {
        let mut headers: Vec<_> = page
            .headers
            .iter()
            .filter(|(name, _)| *name != "x-request-id")
            .map(|(name, value)| (name.to_string(), value.len()))
            .collect();
        headers.sort();
        format!("{} {headers:?} {}", page.status, page.html)
    };
    let before = scene.requests().len();
    let mut pages = vec![seen(&browser.post(ASK, &[("email", email)]).await)];
    scene.stored(before + 1).await;
    for _ in 0..6 {
        pages.push(seen(&browser.post(CODE, &[("code", "0000-0000")]).await));
    }
    pages
}

#[tokio::test]
async fn response_does_not_depend_on_the_account() {
    let mut scene = Scene::new().await;
    let ineligible = add_ineligible(&scene.workspace).await;
    assert_eq!(scene.server.mail().await.subject(), "Lin has joined Corp");
    let mails = scene.server.connections();
    let known = observed(&scene, OWNER, "192.0.2.1").await;
    assert_eq!(scene.server.mail().await.to, [OWNER]);
    for (email, address) in
        ineligible.iter().map(String::as_str).chain(["nobody@x.example"]).zip(2..)
    {
        assert_eq!(observed(&scene, email, &format!("192.0.2.{address}")).await, known, "{email}");
    }
    // The addresses of all others are known to nobody, and get no mail.
    assert_eq!(scene.stored(6).await, 1);
    assert_eq!(scene.server.connections(), mails + 1);
    scene.server.has_no_more();
    scene.workspace.assert_file_valid().await;
}

#[tokio::test]
async fn code_signs_nobody_in_after_a_deactivation_a_rotation_or_enforced_single_sign_on() {
    let mut scene = Scene::new().await;
    scene.workspace.member("ann", Level::Member).await;
    let mut browser = scene.browser("192.0.2.7");
    browser.post(ASK, &[("email", ANN)]).await;
    let mail = scene.server.mail().await;
    for active in [false, true] {
        scene.workspace.set_active(ANN, active).await;
        assert_refused(&browser.post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);
    }
    assert_eq!(scene.stored(0).await, 0);

    let (mut browser, mail) = scene.asked().await;
    scene.workspace.run_operation(Operation::SecretsRotate).await;
    assert_eq!(scene.stored(0).await, 0);
    assert_refused(&browser.post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);

    let (mut browser, mail) = scene.asked().await;
    let (domain, path) = domains::add(&scene.workspace, "corp.example").await;
    prove(&scene.workspace, &domain).await;
    scene.workspace.owner.patch(&path, json!({ "sso_enforcement": "github" })).await.ok();
    assert_refused(&browser.post(CODE, &[("code", &code(&mail))]).await, INVALID_CODE);
    assert_signed_out(&browser).await;
}

#[tokio::test]
async fn sign_in_by_mail_ends_the_session_that_the_browser_has() {
    let mut scene = Scene::new().await;
    let (mut browser, mail) = scene.asked().await;
    browser.post("/console/sign_in/", &[("key", &scene.workspace.made.api_key)]).await;
    let before = browser.clone();
    assert_refused(&browser.post(CODE, &[("code", &wrong(&code(&mail)))]).await, INVALID_CODE);
    assert_eq!(before.get(SESSIONS).await.status, 200);
    assert_eq!(browser.post(CODE, &[("code", &code(&mail))]).await.location(), "/console/");
    assert_eq!(browser.get(SESSIONS).await.status, 200);
    assert_signed_out(&before).await;
}

#[tokio::test]
async fn network_asks_for_ten_mails_an_hour_whoever_they_are_for() {
    let scene = Scene::new().await;
    let mut browser = scene.browser("2001:db8::1");
    for at in 0..10 {
        let email = if at % 2 == 0 { OWNER.to_owned() } else { format!("nobody{at}@x.example") };
        assert_eq!(browser.post(ASK, &[("email", &email)]).await.location(), CODE);
    }
    let mut neighbour = scene.browser("2001:db8::2");
    for email in [OWNER, "nobody@x.example"] {
        let page = neighbour.post(ASK, &[("email", email), ("next", SESSIONS)]).await;
        page.assert_shows(429, "Sign in to Steward");
        assert_eq!(page.headers["retry-after"], "360");
        page.assert_has(&["Expected available in 360 seconds.", &format!("value=\"{email}\"")]);
        page.assert_has(&[SESSIONS]);
        assert!(!page.headers.contains_key("set-cookie"));
    }
    let mut other = scene.browser("2001:db8:0:1::1");
    assert_eq!(other.post(ASK, &[("email", OWNER)]).await.location(), CODE);
    scene.clock.advance(Duration::from_mins(6));
    assert_eq!(neighbour.post(ASK, &[("email", OWNER)]).await.location(), CODE);
}

/// Asks for mails to the owner from each browser in turn. Asserts how many of them each gets. Returns the number of mails.
async fn assert_mails(scene: &Scene, asks: &[(&Visitor, usize, usize)]) -> usize {
    let known = scene.requests();
    let has_mail = known.iter().filter(|request| request.user.is_some()).count();
    let (mut asked, mut mails) = (known.len(), has_mail);
    for (at, (browser, asks, of_browser)) in asks.iter().enumerate() {
        for nth in 0..*asks {
            // A copy, so that the browser keeps no nonce.
            (*browser).clone().post(ASK, &[("email", OWNER)]).await.assert_leads_to(CODE);
            (asked, mails) = (asked + 1, mails + usize::from(nth < *of_browser));
            assert_eq!(scene.stored(asked).await, mails, "{at} {nth}");
        }
    }
    mails - has_mail
}

/// Returns browsers in which the owner has signed in and out, all at one address.
async fn known_browsers<const N: usize>(scene: &Scene) -> [Visitor; N] {
    let browsers = [(); N].map(|()| async {
        let mut browser = scene.browser("192.0.2.7");
        let key = scene.workspace.made.api_key.clone();
        assert_eq!(browser.post("/console/sign_in/", &[("key", &key)]).await.status, 303);
        browser.post("/console/sign_out/", &[]).await;
        assert!(browser.cookie.is_none() && browser.known_cookie.is_some());
        browser
    });
    join_all(browsers).await.try_into().ok().expect("all")
}

#[tokio::test]
async fn mails_an_hour_are_three_to_a_site_and_nine_to_strangers() {
    let mut scene = Scene::new().await;
    let [one, same_site, third, fourth, fifth, last] = [
        "2001:db8:1:1::1",
        "2001:db8:1:2::1",
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.3",
        "2001:db8:2::1",
    ]
    .map(|address| scene.browser(address));
    let asks = [
        (&one, 2, 2),
        (&same_site, 2, 1),
        (&third, 4, 3),
        (&fourth, 4, 3),
        (&fifth, 1, 0),
        (&last, 1, 0),
    ];
    assert_eq!(assert_mails(&scene, &asks).await, 9);
    for _ in 0..9 {
        scene.server.mail().await;
    }
    scene.clock.advance(Duration::from_hours(1));
    let mut browser = scene.browser("192.0.2.1");
    browser.post(ASK, &[("email", OWNER)]).await;
    assert_eq!(scene.server.mail().await.to, [OWNER]);
    scene.server.has_no_more();
}

#[tokio::test]
async fn strangers_keep_no_mail_from_a_browser_in_which_the_user_signed_in() {
    let scene = Scene::new().await;
    let [one, other] = known_browsers(&scene).await;
    let strangers = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.7"];
    let [a, b, c, same_site] = strangers.map(|address| scene.browser(address));
    // Three networks use up what strangers get.
    let asks = [(&a, 3, 3), (&b, 3, 3), (&c, 3, 3), (&same_site, 1, 0)];
    assert_eq!(assert_mails(&scene, &asks).await, 9);
    // Known browsers at one site get three mails, and all together nine.
    let [travelled, second, last] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|address| {
        let mut browser = other.clone();
        browser.address = Some(address.to_owned());
        browser
    });
    let asks = [(&one, 2, 2), (&other, 2, 1), (&travelled, 4, 3), (&second, 4, 3), (&last, 1, 0)];
    assert_eq!(assert_mails(&scene, &asks).await, 9);
    scene.clock.advance(Duration::from_hours(1));
    scene.stored(0).await;
    // Known browsers use up nothing of what others get.
    let asks = [(&one, 3, 3), (&travelled, 3, 3), (&same_site, 3, 3), (&a, 3, 3), (&b, 3, 3)];
    assert_eq!(assert_mails(&scene, &asks).await, 15);
}

#[tokio::test]
async fn only_the_proof_for_this_user_and_service_makes_a_browser_known() {
    let scene = Scene::new().await;
    scene.workspace.member("ann", Level::Member).await;
    let of_ann = scene.workspace.key(ANN, &["*"]).await;
    let [known] = known_browsers(&scene).await;
    let proof = known.known_cookie.clone().expect("a cookie");
    assert_eq!((proof.len(), &proof[..14]), (14 + 43, "steward-known="));
    let mut other = scene.browser("192.0.2.8");
    other.post("/console/sign_in/", &[("key", of_ann.key.as_deref().expect("a key"))]).await;
    let mut changed = proof.clone();
    let of_another = other.known_cookie.clone().expect("a cookie");
    changed.replace_range(20..21, if &proof[20..21] == "A" { "B" } else { "A" });
    let forged = [
        "steward-known=".to_owned(),
        "steward-known=x".to_owned(),
        changed,
        other.known_cookie.expect("a cookie"),
    ];
    // Only a browser in which the owner has signed in gets a mail that strangers have used up.
    let [a, b, c] = ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map(|address| scene.browser(address));
    assert_eq!(assert_mails(&scene, &[(&a, 3, 3), (&b, 3, 3), (&c, 3, 3)]).await, 9);
    for (at, cookie) in forged.into_iter().enumerate() {
        let mut browser = scene.browser(&format!("192.0.2.{}", at + 20));
        browser.known_cookie = Some(cookie);
        assert_eq!(assert_mails(&scene, &[(&browser, 1, 0)]).await, 0);
    }
    // A cookie that another host has set does not matter.
    let mut beside = known.clone();
    beside.known_cookie = Some(format!("steward-known=x; {of_another}; {proof}"));
    assert_eq!(assert_mails(&scene, &[(&beside, 1, 1)]).await, 1);
    // The proof signs nobody in, and a rotation of the secrets ends it.
    assert_signed_out(&known).await;
    scene.workspace.run_operation(Operation::SecretsRotate).await;
    scene.stored(0).await;
    assert_eq!(assert_mails(&scene, &[(&known, 1, 0)]).await, 0);
}

#[tokio::test]
async fn proof_is_kept_in_a_strict_cookie_for_400_days_if_mails_sign_users_in() {
    let scene = Scene::new().await;
    let key = scene.workspace.made.api_key.clone();
    let page = scene.browser("192.0.2.7").post("/console/sign_in/", &[("key", &key)]).await;
    let cookies: Vec<_> = page.headers.get_all("set-cookie").iter().collect();
    let [_, known] = cookies[..] else { panic!("{cookies:?}") };
    let (_, attributes) = known.to_str().expect("text").split_once("; ").expect("attributes");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Path=/console/; Max-Age=34560000");
    let without = Workspace::new().await;
    let key = without.made.api_key.clone();
    let page = Visitor::new(&without).post("/console/sign_in/", &[("key", &key)]).await;
    assert_eq!(page.headers.get_all("set-cookie").iter().count(), 1);
}

#[tokio::test]
async fn text_that_is_no_address_is_refused_beside_its_field() {
    let mut scene = Scene::new().await;
    for (email, detail) in [
        ("", "This field may not be blank."),
        ("x", "Enter a valid email address."),
        ("owner@corp.example\r\nBcc: eve@evil.example", "Enter a valid email address."),
        ("owner@corp.example,eve@evil.example", "Enter a valid email address."),
        ("Olga <owner@corp.example>", "Enter a valid email address."),
        ("\"owner\"@corp.example", "Enter a valid email address."),
        ("owner@corp.example>\"<b>", "Enter a valid email address."),
    ] {
        let page = scene.browser("192.0.2.7").post(ASK, &[("email", email)]).await;
        page.assert_shows(400, "Sign in to Steward");
        let shown = page.between("id=\"email-error\">", "</p>");
        assert!(shown.ends_with(&format!("<span>{detail}</span>")), "{email}: {shown}");
        page.assert_has(&["aria-describedby=\"email-error email-hint\""]);
        assert!(!page.html.contains("<b>") && !page.headers.contains_key("set-cookie"));
    }
    // An address in any case is found, and the mail goes to the stored one.
    let email = format!(" {} ", OWNER.to_uppercase());
    scene.browser("192.0.2.7").post(ASK, &[("email", &email)]).await;
    assert_eq!(scene.server.mail().await.to, [OWNER]);
    assert_eq!(scene.stored(1).await, 1);
    scene.server.has_no_more();
}

#[tokio::test]
async fn links_in_mails_never_follow_the_host_of_a_request() {
    let mut scene = Scene::new().await;
    let browser = scene.browser("192.0.2.7");
    let form = format!("email={OWNER}");
    for (host, forwarded) in [("evil.localhost", "evil.localhost"), ("127.0.0.1:99", "localhost:1")]
    {
        let headers = [
            &FORM[..],
            &[("host", host), ("x-forwarded-host", forwarded), ("origin", "https://evil.example")],
        ]
        .concat();
        browser.fetch(Method::POST, ASK, &headers, &form).await.assert_leads_to(CODE);
        let (text, html) = scene.server.mail().await.bodies();
        for body in [text, html] {
            assert!(body.contains("https://admin.corp.example/console/sign_in/code/#"), "{body}");
            for text in ["evil", "localhost", "127.0.0.1"] {
                assert!(!body.contains(text), "{body}");
            }
        }
    }
    let headers = [&FORM[..], &[("host", "evil.example")]].concat();
    assert_eq!(browser.fetch(Method::POST, ASK, &headers, &form).await.status, 421);
    scene.server.has_no_more();
}

#[tokio::test]
async fn secrets_and_addresses_are_in_no_log_line_and_not_in_the_file() {
    log::capture();
    let mut scene = Scene::new().await;
    scene.workspace.member("quiet.letters", Level::Member).await;
    let email = "quiet.letters@corp.example";
    let mut browser = scene.browser("192.0.2.7");
    scene.server.next([ServerBehavior::RefuseSender]);
    browser.post(ASK, &[("email", email)]).await;
    scene.failed(1).await;
    let code = code(&scene.server.mail().await);
    let nonce = browser.mail_cookie.clone().expect("a cookie");
    let nonce = nonce.split_once('=').expect("a value").1.to_owned();
    let compact = code.replace('-', "");
    for secret in [email, code.as_str(), compact.as_str(), nonce.as_str()] {
        assert_eq!(log::lines_about(secret), Vec::<Value>::new());
    }
    let bytes = std::fs::read(scene.workspace.path()).expect("the data file");
    for secret in [code.as_bytes(), compact.as_bytes(), nonce.as_bytes()] {
        assert!(!bytes.windows(secret.len()).any(|window| window == secret));
    }
    assert_eq!(browser.post(CODE, &[("code", &code)]).await.location(), "/console/");
}

#[tokio::test]
async fn failing_mail_server_changes_no_response_and_shows_in_the_metrics() {
    use ServerBehavior::{CutBeforeReply, Later, RefuseSender};
    let scene = Scene::new().await;
    scene.server.next([RefuseSender, Later, CutBeforeReply]);
    let mut browser = scene.browser("192.0.2.7");
    assert_eq!(browser.post(ASK, &[("email", OWNER)]).await.location(), CODE);
    for attempts in 1..=3 {
        scene.failed(attempts).await;
    }
    let value = |name: &str| scene.metric(name);
    assert!(is(value("steward_mails_abandoned_total"), 1));
    assert!(is(value("steward_mails_sent_total"), 0));
    assert_eq!(scene.server.connections(), 3);
    assert_eq!(browser.post(ASK, &[("email", OWNER)]).await.location(), CODE);
    eventually("a mail is sent", || is(value("steward_mails_sent_total"), 1).then_some(())).await;
}

#[tokio::test]
async fn ten_thousand_requests_are_stored_and_further_ones_are_dropped() {
    let mut scene = Scene::new().await;
    let now = scene.workspace.app.now();
    let request = move |number: u32| {
        let mut browser = vec![0; 28];
        browser.extend(number.to_be_bytes());
        let request = json!({
            "browser": browser, "code": vec![0; 32], "user": null, "created_at": now,
            "wrong_codes": 0,
        });
        serde_json::from_value::<SignInRequest>(request).expect("a request")
    };
    let fill = move |tx: &mut WriteTx<'_>, _| (0..10_000).try_for_each(|at| tx.put(&request(at)));
    scene.workspace.app.operate(fill).await.expect("stored");
    log::capture();
    let mut browser = scene.browser("192.0.2.7");
    assert_eq!(browser.post(ASK, &[("email", OWNER)]).await.location(), CODE);
    let reason = "could not store a request for a sign-in mail";
    eventually("it is logged", || (!log::lines_about(reason).is_empty()).then_some(())).await;
    assert_refused(&browser.post(CODE, &[("code", "0000-0000")]).await, INVALID_CODE);
    assert_eq!(scene.requests().len(), 10_000);
    // Nobody keeps a browser from a mail in which the user has signed in.
    let [mut known] = known_browsers(&scene).await;
    known.post(ASK, &[("email", OWNER)]).await;
    assert_eq!(scene.server.mail().await.to, [OWNER]);
    assert_eq!(scene.requests().len(), 10_001);
    scene.clock.advance(Duration::from_hours(1));
    assert_eq!(scene.stored(0).await, 0);
    assert_eq!(scene.asked().await.1.to, [OWNER]);
    scene.server.has_no_more();
}

#[tokio::test]
async fn requests_beyond_those_that_may_wait_are_dropped_with_the_same_response() {
    let mut scene = Scene::new().await;
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let writer = Mutex::new((Some(begun), released));
    let app = scene.workspace.app.clone();
    let held = tokio::spawn(async move {
        let hold = move |_: &mut WriteTx<'_>, _| {
            let mut writer = writer.lock().expect("no panic");
            if let Some(begun) = writer.0.take() {
                begun.send(()).expect("a test");
                writer.1.recv().expect("a test");
            }
            Ok(())
        };
        app.operate(hold).await
    });
    has_begun.await.expect("the writer is held");
    let mut queued = 0;
    for number in 0..1000_u32 {
        let mut browser = scene.browser(&format!("198.51.100.{}", number / 10));
        let page = browser.post(ASK, &[("email", &format!("nobody{number}@x.example"))]).await;
        // Two networks can share a limit.
        if page.status != 429 {
            assert_eq!(page.location(), CODE);
            queued += 1;
        }
        if queued == 300 {
            break;
        }
    }
    assert_eq!(queued, 300);
    release.send(()).expect("the writer waits");
    held.await.expect("no panic").expect("committed");
    // 256 requests wait, and one more if the task took the first before the queue was full.
    let waited = || (scene.requests().len() >= 256).then_some(());
    eventually("the requests that waited are stored", waited).await;
    assert_eq!(scene.asked().await.1.to, [OWNER]);
    assert!((257..=258).contains(&scene.requests().len()), "{}", scene.requests().len());
}

#[tokio::test]
async fn mails_beyond_one_hundred_that_wait_are_dropped() {
    let mut scene = Scene::new().await;
    for user in 0..12 {
        scene.workspace.member(&format!("user{user}"), Level::Member).await;
    }
    scene.server.next([ServerBehavior::Hold; 4]);
    for user in 0..12 {
        for network in 0..3 {
            let mut browser = scene.browser(&format!("192.0.{network}.{user}"));
            for _ in 0..3 {
                let email = format!("user{user}@corp.example");
                assert_eq!(browser.post(ASK, &[("email", &email)]).await.location(), CODE);
            }
        }
    }
    assert_eq!(scene.stored(108).await, 108);
    let dropped = |scene: &Scene| is(scene.metric("steward_mails_abandoned_total"), 8);
    eventually("eight mails are dropped", || dropped(&scene).then_some(())).await;
    eventually("four are sent at once", || (scene.server.connections() == 4).then_some(())).await;
    for released in 1..=4 {
        scene.server.mail().await;
        scene.server.release();
        let sent = || scene.metric("steward_mails_sent_total") >= f64::from(released);
        eventually("a mail is sent", || sent().then_some(())).await;
    }
    for _ in 4..100 {
        scene.server.mail().await;
    }
    let sent = || is(scene.metric("steward_mails_sent_total"), 100).then_some(());
    eventually("all others are sent", sent).await;
    assert!(dropped(&scene));
}

#[tokio::test]
async fn failed_codes_are_limited_by_address() {
    let server = MailServer::start();
    let (mut config, clock) = config(&server);
    config.rate_limits = vec!["2/h".parse().expect("a rate")];
    let mut scene = Scene { workspace: Workspace::with(config).await, server, clock };
    let (mut browser, mail) = scene.asked().await;
    for _ in 0..2 {
        assert_refused(&browser.post(CODE, &[("code", &wrong(&code(&mail)))]).await, INVALID_CODE);
    }
    let page = browser.post(CODE, &[("code", &wrong(&code(&mail)))]).await;
    page.assert_shows(429, "Too many requests");
}

#[tokio::test]
async fn sign_in_by_mail_is_off_by_default_and_needs_a_mail_server_a_public_url_and_the_console() {
    let server = MailServer::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("steward.redb");
    let complete = config(&server).0;
    let [mut mailless, mut nameless, mut closed] = [(); 3].map(|()| complete.clone());
    mailless.mail.smtp_url = None;
    nameless.public_url = None;
    closed.console = Switch::Off;
    for (config, flag) in
        [(mailless, "--smtp-url"), (nameless, "--public-url"), (closed, "--console on")]
    {
        let refused =
            steward::create(&file, config, &InitialRecords::default()).err().expect("an error");
        assert_eq!(refused.to_string(), format!("--console-mail-login needs {flag}"));
        assert!(!file.exists());
    }
    let (app, _) = steward::create(&file, complete, &InitialRecords::default()).expect("a service");
    app.close().await;
    let workspace = Workspace::new().await;
    let mut browser = Visitor::new(&workspace);
    browser.open("/console/sign_in/", "Sign in to Steward").await.assert_lacks(&["email"]);
    browser.get(CODE).await.assert_shows(404, "Not found");
    browser.post(ASK, &[("email", OWNER)]).await.assert_shows(404, "Not found");
    browser.post(CODE, &[("code", "0000-0000")]).await.assert_shows(404, "Not found");
}
