//! Tests of the mails about invites and new members, with a mail server.

use crate::support::prelude::*;

pub fn with_server(mut config: Config, server: &MailServer) -> Config {
    config.mail.smtp_url = Some(server.url().parse().expect("a URL"));
    config.mail.smtp_from = Some("Steward <steward@corp.example>".to_owned());
    config.public_url = Some("https://admin.corp.example".to_owned());
    config
}

async fn workspace(server: &MailServer) -> Workspace {
    Workspace::with(with_server(Config::default(), server)).await
}

/// Returns the invite that the link in a mail opens.
fn offered(mail: &Mail) -> Offer {
    let (text, _) = mail.bodies();
    let link = text
        .lines()
        .find(|line| line.starts_with("https://admin.corp.example/signup/"))
        .expect("a link");
    let (path, token) = link.split_once("?token=").expect("a token");
    let id = path.rsplit('/').next().expect("an id");
    Offer { path: format!("/api/signup/{id}/"), token: token.to_owned() }
}

#[tokio::test]
async fn invite_mail_is_sent_and_its_token_proves_the_address() {
    let mut server = MailServer::start();
    let (config, _) = with_clock();
    let workspace = Workspace::with(with_server(config, &server)).await;
    let sent = json!({ "target_email": "Ann@x.example", "first_name": "Ann", "message": "See you\n  soon!" });
    let made = invite(&workspace.owner, &workspace, sent).await;
    assert_eq!((&made["emailing_attempt_made"], &made["accept_url"]), (&json!(true), &Value::Null));
    let mail = server.mail().await;
    assert_eq!(mail.from, "steward@corp.example");
    assert_eq!(mail.to, ["Ann@x.example"]);
    assert_eq!(mail.subject(), "Olga invites you to Corp");
    let (text, html) = mail.bodies();
    let offer = offered(&mail);
    let id = made["id"].as_str().expect("an id");
    assert_eq!(offer.path, format!("/api/signup/{id}/"));
    let link = format!("https://admin.corp.example/signup/{id}?token={}", offer.token);
    assert_eq!(
        text,
        format!(
            "Hello Ann,\n\nOlga invites you to join Corp.\n\nThey write:\n\nSee you\n  soon!\n\n\
             Accept the invite before 2023-11-17 22:13 UTC:\n\n{link}\n\n\
             Do not share this link. If you did not expect this mail, you can ignore it.",
        )
    );
    for part in [&*format!("<a href=\"{link}\""), "See you\n  soon!"] {
        assert!(html.contains(part), "{html}");
    }
    // The token in the mail differs from the one in the operator's link.
    let by_hand = Operation::InviteLink { id: id.parse().expect("an id") };
    assert_ne!(Offer::of(&workspace.run_operation(by_hand).await).token, offer.token);
    let body = offer.accept(&workspace.anonymous(), json!({ "first_name": "Ann" })).await.ok();
    assert_eq!(body["is_email_verified"], true);
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn user_text_in_mail_is_never_markup_or_a_header() {
    let mut server = MailServer::start();
    let workspace = workspace(&server).await;
    let injected = "x\r\nBcc: eve@evil.example\r\n\r\n<b>";
    let renamed = json!({ "name": "Corp\r\nBcc: eve@evil.example <i>" });
    workspace.owner.patch(&workspace.organization(""), renamed).await.ok();
    workspace.owner.patch(ME, json!({ "first_name": "Olga\nX: y" })).await.ok();
    let sent = json!({
        "target_email": "ann@bücher.example", "first_name": "<script>\r\nBcc: e@x\n\nGo",
        "message": format!("{injected}<img src=x onerror=alert(1)>\r\n.\r\nQUIT\r\n{{{{ it.url }}}}"),
    });
    invite(&workspace.owner, &workspace, sent).await;
    let mail = server.mail().await;
    assert_eq!(mail.to, ["ann@xn--bcher-kva.example"]);
    assert_eq!(mail.subject(), "Olga X: y invites you to Corp Bcc: eve@evil.example <i>");
    for header in mail.parsed().headers() {
        assert!(!["bcc", "x"].contains(&&*header.name().to_lowercase()), "{}", header.name());
    }
    let (text, html) = mail.bodies();
    assert!(text.contains("<img src=x onerror=alert(1)>\n.\nQUIT\n{{ it.url }}"), "{text}");
    assert!(text.starts_with("Hello <script> Bcc: e@x Go,\n"), "{text}");
    assert!(text.contains("Accept the invite before"), "the text after the dot is missing");
    for tag in ["<script", "<img", "<b>", "<i>"] {
        assert!(!html.contains(tag), "{tag} in {html}");
    }
    assert!(html.contains("&#60;img src=x onerror=alert(1)&#62;"), "{html}");
    server.has_no_more();
}

#[tokio::test]
async fn deleted_or_replaced_invite_is_no_longer_mailed() {
    let mut server = MailServer::start();
    let (config, clock) = with_clock();
    let workspace = Workspace::with(with_server(config, &server)).await;
    server.next([ServerBehavior::Later, ServerBehavior::Later]);
    let invited = async |email: &str| {
        invite(&workspace.owner, &workspace, json!({ "target_email": email })).await
    };
    let gone = invited("gone@x.example").await;
    server.mail().await;
    let old = invited("ann@x.example").await;
    server.mail().await;
    let path = invites(&workspace, &format!("{}/", gone["id"].as_str().expect("an id")));
    workspace.owner.delete(&path).await.assert_empty(204);
    let new = invited("ann@x.example").await;
    let mail = server.mail().await;
    let id = new["id"].as_str().expect("an id");
    assert_eq!(offered(&mail).path, format!("/api/signup/{id}/"));
    assert_ne!(old["id"], new["id"]);
    clock.advance(Duration::from_hours(2));
    // A mail that was still queued would arrive before this one.
    invited("last@x.example").await;
    assert_eq!(server.mail().await.to, ["last@x.example"]);
    server.has_no_more();
    workspace.assert_file_valid().await;
}

#[tokio::test]
async fn admins_are_notified_by_mail_of_new_members() {
    let mut server = MailServer::start();
    let workspace = workspace(&server).await;
    workspace.member("adam", Level::Admin).await;
    workspace.member("mia", Level::Member).await;
    workspace.member("off", Level::Owner).await;
    workspace.set_active("off@corp.example", false).await;
    let join = async |email: &str| {
        let sent = json!({ "target_email": email, "level": 8, "send_email": false });
        let offer = Offer::of(&invite(&workspace.owner, &workspace, sent).await);
        let fields = json!({ "first_name": "Ann", "last_name": "Lee" });
        offer.accept(&workspace.anonymous(), fields).await.ok();
    };
    join("ann@x.example").await;
    let (one, two) = (server.mail().await, server.mail().await);
    let mut to = [one.to[0].as_str(), two.to[0].as_str()];
    to.sort_unstable();
    assert_eq!(to, ["adam@corp.example", OWNER]);
    assert_eq!(one.subject(), "Ann Lee has joined Corp");
    let (text, html) = one.bodies();
    assert_eq!(
        text,
        "Hello,\n\nAnn Lee (ann@x.example) has joined Corp.\n\nYou receive this mail because you are an admin or owner \
         of Corp.\nTo disable these mails, set is_member_join_email_enabled of the organization to false."
    );
    let line = "<strong>Ann Lee</strong> (ann@x.example) has joined <strong>Corp</strong>.";
    assert!(html.contains(line), "{html}");

    let off = json!({ "is_member_join_email_enabled": false });
    workspace.owner.patch(&workspace.organization(""), off).await.ok();
    join("bob@x.example").await;
    invite(&workspace.owner, &workspace, json!({ "target_email": "last@x.example" })).await;
    assert_eq!(server.mail().await.to, ["last@x.example"]);
    server.has_no_more();
    workspace.assert_file_valid().await;
}
