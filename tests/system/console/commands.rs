//! The commands of forms, run by a shell.

use crate::prelude::*;
use crate::support::console::{FilledForm, Page};
use crate::support::crawler::{crawl, make_objects};

/// A text with every character that a shell could read differently.
const TEXT: &str = "It's \"$HOME\" `id` \\ !x; é 漢";

/// Runs a script of commands with the key in a variable, as a person does. Returns what the commands print.
pub fn run(site: &Site, script: &str) -> String {
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

/// Runs a command and returns the status of the response.
fn status(site: &Site, command: &str) -> String {
    run(site, &with_status(command, "")).trim().to_owned()
}

/// Runs the command of the form on a page, filled with these texts. Returns it, and the status of the response.
async fn run_form(
    site: &Site,
    owner: &mut Visitor,
    page: &str,
    fields: &[(&str, &str)],
) -> (String, String) {
    let form = owner.get(page).await.form("form");
    let form = fields.iter().fold(form, |form, (name, text)| form.with(name, text));
    let command = owner.submit(&form.with("_show", "command")).await.command();
    let status = status(site, &command);
    (command, status)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_sends_what_was_typed_and_is_done_once() {
    let site = Site::new().await;
    let mut owner = Visitor::owner(&site.workspace).await;
    let list = format!("/console/projects/{}/dashboards/", site.workspace.made.project_id);
    let read = async || site.workspace.owner.get(&site.workspace.dashboards("1/")).await.ok();
    let typed = [("name", TEXT), ("tags", "it's"), ("description", "one\r\n$(id) 'two'")];
    let new = format!("{list}new/?from=empty");
    let (create, created) = run_form(&site, &mut owner, &new, &typed).await;
    // The command has the key of the form, so that a second run creates nothing.
    assert_eq!([created, status(&site, &create)], ["201", "201"]);
    assert_eq!(site.workspace.owner.get(&site.workspace.dashboards("")).await.ok()["count"], 1);
    let board = read().await;
    assert_eq!([&board["name"], &board["description"]], [TEXT, "one\n$(id) 'two'"]);

    let changed = "\\'changed'\\ \"twice\"";
    let edit = format!("{list}1/edit/");
    let (edit, edited) = run_form(&site, &mut owner, &edit, &[("description", changed)]).await;
    assert_eq!([edited, status(&site, &edit)], ["200", "412"], "the version has moved");
    let text = [("tiles.0.text.body", "# It's\r\n\r\n`$HOME`")];
    let (_, added) = run_form(&site, &mut owner, &format!("{list}1/tiles/new/"), &text).await;
    let tag = [("action", "add_tag"), ("tag", "new $tag"), ("id", "1"), ("_show", "command")];
    let tag = owner.post(&list, &tag).await.command();
    assert_eq!([added, status(&site, &tag)], ["200", "200"]);
    let board = read().await;
    assert_eq!(board["description"], changed);
    assert_eq!(board["tiles"][0]["text"]["body"], "# It's\n\n`$HOME`");
    assert_eq!(board["tags"], json!(["it's", "new $tag"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buttons_show_their_command_before_they_act_if_that_is_switched_on() {
    let site = Site::new().await;
    let board = site.board("It's").await;
    let api = site.workspace.dashboards(&format!("{}/", board["id"]));
    let is_pinned = async || site.workspace.owner.get(&api).await.ok()["pinned"].clone();
    let browser = site.browser().await;
    site.visit(&browser, "projects/1/dashboards/").await;
    browser.click("footer.commands input").await;
    let status = "footer.commands [role=status]";
    assert!(browser.text(status).await.starts_with("Buttons show their command first."));
    site.visit(&browser, "projects/1/dashboards/").await;
    assert!(browser.text(status).await.starts_with("Buttons show their command first."));
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
    run(&site, &with_status(&browser.text("dialog.commands[open] pre").await, ""));
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
}
