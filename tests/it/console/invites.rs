//! The page of invites: new ones, the state of their mails, links, and the same invite again.

use crate::support::prelude::*;

fn link(page: &Page) -> &str {
    page.between("<output id=\"link\">", "</output>")
}

#[tokio::test]
async fn invite_of_one_address_shows_its_link_once() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = workspace.page("invites/");
    let page = owner.open(&list, "Invites").await;
    page.assert_has(&["Nobody is invited."]);
    let form = page.form("form");
    assert_eq!(form.value("level"), "1");
    page.assert_has(&["The service has no mail server"]);
    page.assert_lacks(&["name=\"send_email\"", "name=\"message\""]);
    let sent = form
        .with("target_email", " ann@x.example  Ann Lee ")
        .with("level", "8")
        .with("message", "Welcome");
    let shown = owner.submit(&sent.clone().with("_show", "command")).await;
    let command = shown.command();
    assert!(command.contains("/invites/'") && command.contains("Idempotency-Key"), "{command}");
    assert_eq!(listed(&workspace, "target_email").await, [] as [&str; 0]);
    let made = owner.submit(&sent).await.showing(200, "Invites");
    let first = link(&made).to_owned();
    assert!(first.starts_with("http://127.0.0.1:8000/signup/"), "{first}");
    let stored = workspace.owner.get(&invites(&workspace, "")).await.ok()["results"][0].clone();
    let fields = ["target_email", "first_name", "level", "message", "send_email"];
    let of = fields.map(|name| stored[name].clone());
    assert_eq!(json!(of), json!(["ann@x.example", "Ann Lee", 8, "Welcome", true]));
    let expires =
        format!("<time datetime=\"{}\" data-ago>", stored["expires_at"].as_str().expect("a time"));
    made.part("<td data-label=\"Expires\">", "</td>").assert_has(&[&expires]);
    made.assert_has(&["<bdi>ann@x.example</bdi>", "Not mailed"]);
    // The same form again creates nothing, and the link is not shown again.
    assert_eq!(owner.submit(&sent).await.location(), format!("{list}?done=invite-created"));
    assert_eq!(listed(&workspace, "target_email").await, ["ann@x.example"]);
    assert!(!owner.get(&list).await.html.contains(&first));
}

#[tokio::test]
async fn up_to_twenty_people_are_invited_together_or_none() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let list = workspace.page("invites/");
    let form = owner.get(&list).await.form("form");
    let many: Vec<_> = (0..21).map(|number| format!("p{number}@x.example")).collect();
    for (typed, error) in [
        ("ann@x.example Ann\n\nnobody\nben@x.example", "nobody: Enter a valid email address."),
        ("ann@x.example\nowner@corp.example", "owner@corp.example: A user with this email address"),
        (&many.join("\n"), "Invite at most 20 people at once."),
        ("  ", "This field is required."),
    ] {
        let page = owner.submit(&form.clone().with("target_email", typed)).await;
        page.assert_shows(400, "Invites").assert_field_error("target_email", error);
    }
    assert_eq!(listed(&workspace, "target_email").await, [] as [&str; 0]);
    let form = form.with("target_email", "ann@x.example Ann\r\nben@x.example").with("level", "8");
    // Only the request for one address returns its link.
    let commands = owner.submit(&form.clone().with("_show", "command")).await.commands();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (command, address) in commands.iter().zip(["ann@x.example", "ben@x.example"]) {
        assert!(command.contains("/invites/'") && command.contains(address), "{command}");
    }
    let done = owner.submit(&form).await.showing(200, "Invites");
    assert_eq!(listed(&workspace, "first_name").await, ["", "Ann"]);
    assert_eq!(listed(&workspace, "level").await, [8, 8]);
    let ids = listed(&workspace, "id").await;
    for (address, output, id) in
        [("ann@x.example", "link", &ids[1]), ("ben@x.example", "link-2", &ids[0])]
    {
        let shown = done
            .between(&format!("<bdi>{address}</bdi></span><output id=\"{output}\">"), "</output>");
        assert!(shown.contains(id.as_str().expect("an id")), "{address}: {shown}");
        done.assert_has(&[&format!("data-copy=\"{output}\"")]);
    }
    // The same form again creates nothing, and the links are not shown again.
    assert_eq!(owner.submit(&form).await.location(), format!("{list}?done=invite-created&count=2"));
    assert_eq!(listed(&workspace, "id").await, ids);
    // A browser that goes back and changes the form sends the same key. What was typed is kept.
    let others = "cat@x.example\ndan@x.example";
    let page = owner.submit(&form.with("target_email", others)).await.showing(422, "Invites");
    let kept = page.form("form");
    assert_eq!(kept.value("target_email"), others);
    owner.submit(&kept).await.assert_shows(200, "Invites");
    assert_eq!(listed(&workspace, "id").await.len(), 4);
}

#[tokio::test]
async fn several_people_are_invited_by_mail_in_one_request() {
    let workspace = Workspace::with(with_mail()).await;
    let mut owner = Visitor::owner(&workspace).await;
    let list = workspace.page("invites/");
    let form = owner.get(&list).await.form("form");
    assert_eq!(form.value("send_email"), "true");
    let form = form.with("target_email", "ann@x.example Ann\r\nben@x.example");
    let shown = owner.submit(&form.clone().with("_show", "command")).await;
    assert!(shown.command().contains("/invites/bulk/'"), "{}", shown.html);
    let done = owner.submit(&form).await;
    assert_eq!(done.location(), format!("{list}?done=invite-created&count=2"));
    assert!(owner.get(done.location()).await.html.contains("<p>2 invites created.</p>"));
    // Without a mail, the page shows the links.
    let without = form.with("target_email", "cat@x.example\r\ndan@x.example").without("send_email");
    let done = owner.submit(&without.with("_once", "another")).await.showing(200, "Invites");
    done.assert_has(&["<output id=\"link-2\">"]);
    // The second invite replaces the first one of the address, whose link is of no use any more.
    let form = owner.get(&list).await.form("form").without("send_email");
    let done = owner.submit(&form.with("target_email", "eve@x.example\r\nEVE@x.example")).await;
    done.assert_has(&["<bdi>EVE@x.example</bdi></span><output id=\"link\">"]);
    done.assert_lacks(&["<output id=\"link-2\">"]);
}

#[tokio::test]
async fn pages_say_that_links_work_on_this_machine_only() {
    for (public_url, is_local) in [
        (None, true),
        (Some("http://steward.localhost:8000"), true),
        (Some("https://admin.example"), false),
    ] {
        let workspace =
            Workspace::configured(|config| config.public_url = public_url.map(str::to_owned)).await;
        workspace.owner.post(&workspace.dashboards(""), json!({ "name": "Growth" })).await.ok();
        let insights = workspace.project("insights/");
        let insight = workspace.owner.post(&insights, json!({ "name": "Visitors" })).await.ok();
        let owner = Visitor::owner(&workspace).await;
        for path in [
            workspace.page("invites/"),
            "/console/projects/1/dashboards/1/sharing/".to_owned(),
            format!("/console/projects/1/insights/{}/sharing/", insight["id"]),
        ] {
            let page = owner.get(&path).await;
            assert_eq!(page.status, 200, "{path}");
            let note = "which works on this machine only";
            assert_eq!(page.html.contains(note), is_local, "{public_url:?} {path}");
            assert!(!is_local || page.html.contains("<code>--public-url</code>"), "{path}");
        }
    }
}

#[tokio::test]
async fn form_offers_levels_and_private_projects_that_the_session_may_give() {
    let (workspace, mut owner) = Visitor::in_new_workspace().await;
    let path = workspace.project("");
    let member = workspace.member("ben", Level::Member).await.key.expect("a key");
    let list = workspace.page("invites/");
    let levels = |page: &Page| -> Vec<String> {
        let options = page.between("name=\"level\"", "</select>").split("<option value=\"").skip(1);
        options.map(|option| option.split('"').next().unwrap().to_owned()).collect()
    };
    let page = owner.get(&list).await;
    assert_eq!(levels(&page), ["1", "8", "15"]);
    assert!(!page.html.contains("private_project_access"), "no project is private");
    workspace.owner.patch(&path, json!({ "access_control": true })).await.ok();
    let page = owner.get(&list).await;
    let access = r#"{"id":1,"level":"member"}"#;
    let group = page.between("<bdi class=\"group\" aria-hidden=\"true\">Web</bdi>", "</div>");
    assert!(group.contains("<bdi>member</bdi>") && group.contains("<bdi>admin</bdi>"), "{group}");
    let form = page.form("form").with("target_email", "ann@x.example");
    owner.submit(&form.with("private_project_access", access)).await.assert_shows(200, "Invites");
    let granted = listed(&workspace, "private_project_access").await;
    assert_eq!(granted, [json!([{ "id": 1, "level": "member" }])]);
    assert!(owner.get(&list).await.html.contains("<bdi>Web: member</bdi></span>"));
    let ben = Visitor::with_key(&workspace, &member).await;
    let page = ben.get(&list).await;
    assert_eq!(levels(&page), ["1"]);
    assert!(!page.html.contains("Web"), "the project is hidden from the member");
    let settings = json!({ "members_can_invite": false });
    workspace.owner.patch(&workspace.organization(""), settings).await.ok();
    let page = ben.open(&list, "Invites").await;
    page.assert_has(&["This session may not invite."]).assert_lacks(&["id=\"form\"", "/again/"]);
    let reader =
        Visitor::with_scopes(&workspace, "ben@corp.example", &["organization_member:read"]).await;
    reader.get(&list).await.assert_has(&["ann@x.example"]).assert_lacks(&["/delete/"]);
}

#[tokio::test]
async fn invite_is_created_again() {
    let workspace = Workspace::new().await;
    let sent = json!({ "target_email": "ann@x.example", "first_name": "Ann", "level": 15, "message": "Hi" });
    workspace.owner.post(&invites(&workspace, ""), sent).await.ok();
    let mut owner = Visitor::owner(&workspace).await;
    let list = workspace.page("invites/");
    let page = owner.get(&list).await;
    page.assert_has(&["New link<span class=\"vh\"> for ann@x.example</span>"]);
    let first = link(&owner.submit(&page.form_to("/again/")).await).to_owned();
    let ids = listed(&workspace, "id").await;
    assert!(first.contains(ids[0].as_str().expect("an id")), "the link is that of the new invite");
    assert_eq!(listed(&workspace, "message").await, ["Hi"]);
    // An admin may not give level 15.
    let mut admin = Visitor::member(&workspace, "amy", Level::Admin).await;
    admin.get(&list).await.assert_has(&["ann@x.example"]).assert_lacks(&["/again/"]);
    let again = owner.get(&list).await.form_to("/again/");
    let page = admin.submit(&again).await.showing(403, "Invites");
    assert!(page.between("role=\"alert\">", "</div>").contains("higher permission level"));
    assert_eq!(owner.post(&format!("{list}again/"), &[("invite", "{x")]).await.status, 400);
}

#[tokio::test]
async fn list_shows_the_state_of_each_mail() {
    let mut server = MailServer::start();
    let workspace = Workspace::with(with_server(Config::default(), &server)).await;
    server.next([ServerBehavior::Hold]);
    for sent in [
        json!({ "target_email": "ann@x.example" }),
        json!({ "target_email": "ben@x.example", "send_email": false }),
    ] {
        workspace.owner.post(&invites(&workspace, ""), sent).await.ok();
    }
    server.mail().await;
    let owner = Visitor::owner(&workspace).await;
    let page = owner.get(&workspace.page("invites/")).await;
    let mut rows = page.html.split("<tr>").skip(2);
    let (ben, ann) = (rows.next().expect("a row"), rows.next().expect("a row"));
    for text in ["ben@x.example", "Not mailed", "New link"] {
        assert!(ben.contains(text), "{ben}");
    }
    assert!(ann.contains("Being sent") && ann.contains("Send again"), "{ann}");
    server.release();
    eventually_async("the mail is sent", async || {
        owner.get(&workspace.page("invites/")).await.html.contains(">Sent<").then_some(())
    })
    .await;
}
