//! The commands of forms, run by a shell: they do what the buttons do.

use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};
use steward::testing::time::Timestamp;

use super::{Site, assert_sound, go_to, keep_picture};
use crate::support::console::{FilledForm, Page, Visitor};
use crate::support::crawler::{crawl, make_objects};

/// A text with every character that a shell could read differently.
const TEXT: &str = "It's \"$HOME\" `id` \\ !x; é 漢";

/// Runs a script of commands with the key in a variable, as a person does. Returns what the commands print.
fn run(site: &Site, script: &str) -> String {
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).env("KEY", &site.workspace.made.api_key).stdin(Stdio::null());
    let output = shell.output().expect("bash and curl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Adds options to a command, so that it prints the status of the response alone.
fn with_status(command: &str, options: &str) -> String {
    let rest = command.strip_prefix("curl ").expect("a command");
    format!("curl -sS -o /dev/null -w '%{{http_code}}\\n' {options} {rest}\n")
}

/// What is typed into the fields that the API requires and that a page leaves empty.
const TYPED: [(&str, &str); 9] = [
    ("destination.config.aws_access_key_id", "id"),
    ("destination.config.aws_secret_access_key", "secret"),
    ("destination.config.bucket_name", "bucket"),
    ("destination.config.prefix", "events/"),
    ("destination.config.region", "eu-west-1"),
    ("domain", "new.example"),
    ("tag", "new"),
    ("target_email", "new@x.example"),
    ("tiles.0.text.body", "# Hello"),
];

/// Fills a form of a page as a person does.
fn fill(page: &Page, form: &FilledForm) -> FilledForm {
    let asked = page.html.split("Type <bdi>").nth(1).and_then(|rest| rest.split('<').next());
    let mut form = form.clone();
    let is_new_key = form.action == "/console/keys/new/";
    for (name, value) in form.fields.iter_mut().filter(|(_, value)| value.is_empty()) {
        let typed = TYPED.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
        let text = match name.as_str() {
            "name" => Some(asked.unwrap_or("New")),
            "label" => Some("New"),
            _ => typed,
        };
        text.unwrap_or_default().clone_into(value);
    }
    if is_new_key { form.and("scopes", "dashboard:read") } else { form }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn api_accepts_the_command_of_every_button() {
    let site = Site::new().await;
    make_objects(&site.workspace).await;
    let mut owner = Visitor::owner(&site.workspace).await;
    let found = crawl(&owner).await;
    let (mut script, mut names) = (String::new(), Vec::new());
    let mut without = Vec::new();
    for (name, (path, form)) in &found.buttons {
        if form.action == "/console/sign_out/" {
            continue;
        }
        let form = fill(&owner.get(path).await, form);
        let page = owner.submit(&form.with("_show", "command")).await;
        if !page.html.contains("id=\"commands\"") {
            without.push(format!("{name} on {path}: {}", page.status));
            continue;
        }
        for command in page.commands() {
            script += &with_status(&command, "-H 'Dry-Run: true'");
            names.push(format!("{name} on {path}: {command}"));
        }
    }
    assert!(names.len() > 60, "{names:#?}");
    let printed = run(&site, &script);
    assert_eq!(printed.lines().count(), names.len(), "{printed}");
    let refused = printed.lines().zip(&names).filter(|(status, _)| !status.starts_with('2'));
    let refused: Vec<_> = refused.map(|(status, name)| format!("{status} {name}")).collect();
    assert!(refused.is_empty() && without.is_empty(), "{refused:#?} {without:#?}");
}

/// Pairs of equal objects: a button changes one of them, and the command of the same button the other.
struct Twins<'s> {
    site: &'s Site,
    owner: Visitor,
}

impl Twins<'_> {
    /// Presses the button of one form, and runs the commands of the other form. Returns the commands.
    async fn press_and_run(&mut self, one: &FilledForm, other: &FilledForm) -> Vec<String> {
        let pressed = self.owner.submit(one).await;
        assert!(matches!(pressed.status, 200 | 303), "{}: {}", pressed.status, pressed.html);
        let commands = self.owner.submit(&other.clone().with("_show", "command")).await.commands();
        assert!(!commands.is_empty(), "{}", other.action);
        for command in &commands {
            let status = self.status(command);
            assert!(status.starts_with('2'), "{status}: {command}");
        }
        commands
    }

    /// Runs a command and returns the status of the response.
    fn status(&self, command: &str) -> String {
        run(self.site, &with_status(command, "")).trim().to_owned()
    }

    /// Does what [`press_and_run`](Self::press_and_run) does with the forms of two pages, each filled in the same way.
    async fn fill(
        &mut self,
        pages: [&str; 2],
        id: &str,
        fill: impl Fn(FilledForm) -> FilledForm,
    ) -> Vec<String> {
        let one = fill(self.owner.get(pages[0]).await.form(id));
        let other = fill(self.owner.get(pages[1]).await.form(id));
        self.press_and_run(&one, &other).await
    }

    /// Asserts that two objects of the API are equal, apart from what always differs.
    async fn assert_equal(&self, paths: [&str; 2]) -> Value {
        let one = comparable(self.site.workspace.owner.get(paths[0]).await.ok());
        let other = comparable(self.site.workspace.owner.get(paths[1]).await.ok());
        assert_eq!(one, other, "{paths:?}");
        one
    }

    /// Returns the objects of a list, sorted by a field, without what always differs.
    async fn listed(&self, path: &str) -> Vec<Value> {
        let found = self.site.workspace.owner.get(path).await.ok();
        let found = found.get("results").cloned().unwrap_or(found);
        found.as_array().expect("a list").clone()
    }
}

/// Replaces what differs between two equal objects: ids, times and random values.
fn comparable(value: Value) -> Value {
    const DIFFERENT: [&str; 6] =
        ["id", "resource_id", "short_id", "access_token", "mask_value", "target_email"];
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let is_different = DIFFERENT.contains(&name.as_str());
                (name, if is_different { Value::Null } else { comparable(value) })
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(comparable).collect(),
        Value::String(text) if Timestamp::parse(&text).is_some() => json!("[time]"),
        other => other,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_does_with_dashboards_what_its_button_does() {
    let site = Site::new().await;
    let mut twins = Twins { owner: Visitor::owner(&site.workspace).await, site: &site };
    let list = format!("/console/projects/{}/dashboards/", site.workspace.made.project_id);
    let new = format!("{list}new/?from=empty");
    let create = twins.fill([&new, &new], "form", |form| {
        let form = form.with("name", TEXT).with("tags", "weekly\nit's");
        form.with("description", "one\r\n$(id) 'two'")
    });
    let create = create.await;
    // The command has the key of the form, so that a second run creates nothing.
    assert_eq!(twins.status(&create[0]), "201");
    let boards = twins.listed(&site.workspace.dashboards("")).await;
    let ids: Vec<_> = boards.iter().map(|board| board["id"].to_string()).collect();
    let [one, other] = ids.as_slice() else { panic!("{boards:?}") };
    let api = [one, other].map(|id| site.workspace.dashboards(&format!("{id}/")));
    let api = [api[0].as_str(), &api[1]];
    let created = twins.assert_equal(api).await;
    assert_eq!(created["name"], TEXT);
    assert_eq!(created["description"], "one\n$(id) 'two'");

    let page = |rest: &str| [one, other].map(|id| format!("{list}{id}/{rest}"));
    let edit = page("edit/");
    let change = |form: FilledForm| form.with("description", "\\'changed'\\ \"twice\"");
    let edited = twins.fill([&edit[0], &edit[1]], "form", change).await;
    assert_eq!(twins.assert_equal(api).await["description"], "\\'changed'\\ \"twice\"");
    assert_eq!(twins.status(&edited[0]), "412", "the version has moved");

    let text = page("tiles/new/");
    let fill = |form: FilledForm| form.with("tiles.0.text.body", "# It's\r\n\r\n`$HOME`");
    twins.fill([&text[0], &text[1]], "form", fill).await;
    let shown = twins.assert_equal(api).await;
    assert_eq!(shown["tiles"][0]["text"]["body"], "# It's\n\n`$HOME`");

    for (action, field, value) in [
        ("add_tag", "tags", json!(["it's", "new $tag", "weekly"])),
        ("restrict", "restriction_level", json!(37)),
        ("pin", "pinned", json!(true)),
    ] {
        let press = |id: &str| {
            FilledForm::of(&list, &[("action", action), ("tag", "new $tag"), ("id", id)])
        };
        twins.press_and_run(&press(one), &press(other)).await;
        assert_eq!(twins.assert_equal(api).await[field], value, "{action}");
    }
    let sharing = page("sharing/");
    for (action, is_enabled) in [("enable", true), ("rotate", true), ("disable", false)] {
        let press = |page: &str| {
            FilledForm::of(page, &[("action", action), ("_once", &format!("{page}{action}"))])
        };
        twins.press_and_run(&press(&sharing[0]), &press(&sharing[1])).await;
        let paths = api.map(|path| format!("{path}sharing/"));
        let shown = twins.assert_equal([&paths[0], &paths[1]]).await;
        assert_eq!(shown["enabled"], is_enabled, "{action}");
    }
    let access = page("access/");
    let rule =
        |page: &str| FilledForm::of(&format!("{page}?form=rule"), &[("access_level", "viewer")]);
    twins.press_and_run(&rule(&access[0]), &rule(&access[1])).await;
    let rules = api.map(|path| format!("{path}access_controls/"));
    let shown = twins.assert_equal([&rules[0], &rules[1]]).await;
    assert_eq!(shown["access_controls"][0]["access_level"], "viewer");

    let delete = |id: &str| FilledForm::of(&list, &[("only", &format!("delete {id}"))]);
    twins.press_and_run(&delete(one), &delete(other)).await;
    for path in api {
        assert_eq!(site.workspace.owner.get(path).await.status, 404);
    }
    let restore = |id: &str| FilledForm::of(&list, &[("action", "restore"), ("id", id)]);
    twins.press_and_run(&restore(one), &restore(other)).await;
    twins.assert_equal(api).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buttons_show_their_command_before_they_act_if_that_is_switched_on() {
    let site = Site::new().await;
    let board = site.board("It's").await;
    let api = site.workspace.dashboards(&format!("{}/", board["id"]));
    let is_pinned = async || site.workspace.owner.get(&api).await.ok()["pinned"].clone();
    let browser = site.browser().await;
    let list = format!("projects/{}/dashboards/", site.workspace.made.project_id);
    site.visit(&browser, &list).await;
    browser.click("footer.commands input").await;
    let status = "footer.commands [role=status]";
    assert!(browser.text(status).await.starts_with("Buttons show their command first."));
    site.visit(&browser, &list).await;
    assert!(browser.text(status).await.starts_with("Buttons show their command first."));
    keep_picture(&browser, "console-switch-of-commands.png").await;
    assert_sound(&browser, "the switch").await;

    let ask = async || {
        browser.click(".end button[popovertarget]").await;
        browser.click(".menu button[name=only]").await;
        browser.text("dialog.commands[open] pre").await
    };
    let command = ask().await;
    assert!(command.contains(r#"'{"pinned":true}'"#), "{command}");
    for (width, scheme) in [(1280, "dark"), (320, "light")] {
        browser.look(width, scheme).await;
        keep_picture(&browser, &format!("console-command-of-a-button-{width}-{scheme}.png")).await;
        assert_sound(&browser, "the command of a button").await;
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert_eq!(wide, width, "the dialog scrolls sideways");
    }
    browser.look(1280, "light").await;
    browser.press(fantoccini::key::Key::Escape).await;
    let focused = "document.activeElement.matches('.end button[popovertarget]')";
    browser.wait_until("the menu's button has the focus", focused).await;
    assert_eq!(is_pinned().await, false);

    ask().await;
    browser.click("dialog.commands button[value=send]").await;
    assert_eq!(browser.text("[data-notice] p").await, "Dashboard saved.");
    assert_eq!(is_pinned().await, true);

    ask().await;
    let shown_command = browser.text("dialog.commands[open] pre").await;
    run(&site, &with_status(&shown_command, ""));
    assert_eq!(is_pinned().await, false, "the shown command does what its button does");
    browser.click("dialog.commands .bar button:last-child").await;

    site.visit(&browser, "profile/").await;
    browser.fill("#form-notification_settings", "{").await;
    browser.click("#form button.go").await;
    let error = browser.text("dialog.commands[open] .error").await;
    assert!(error.starts_with("This is not valid JSON"), "{error}");
    browser.click("dialog.commands .bar button:last-child").await;
    browser.click("footer.commands input").await;
    browser.click("#form button.go").await;
    browser.text("#form-notification_settings-error").await;
    browser.click("footer.commands input").await;
    browser.click("header .who button").await;
    go_to(&browser, "#you form button", "Sign in").await;
    assert_sound(&browser, "the sign-in page").await;
    browser.close().await;
}
