//! Faults, mails and people.

use std::sync::Arc;

use askama::Template;
use serde_json::Value;

use crate::console::paging::{OFFSET, Paging};
use crate::console::registry::PageResult;
use crate::console::urls::Query;
use crate::console::visit::Visit;
use crate::ids::UserId;
use crate::resources::shared::reading::collect;
use crate::resources::users::User;
use crate::store::Tx;
use crate::test_server::mails::Mail;

use super::{Commands, FAULTS, MAILS, PAGE_SIZE, PEOPLE, control, page};

/// The rule of the command that sets faults when there are none.
const A_RULE: &str = r#"{"match": {"method": "POST"}, "times": 1, "effect": {"status": 503}}"#;

#[derive(Template)]
#[template(path = "test_server/http/inspector/faults.html")]
struct FaultsPage {
    rules: Vec<Value>,
    commands: Commands,
}

/// Returns a member of a rule as JSON, or an empty text.
fn member(rule: &Value, name: &str) -> String {
    rule.get(name).map_or_else(String::new, Value::to_string)
}

/// Shows the faults.
pub(super) async fn faults(visit: Visit) -> PageResult {
    let control = control(&visit)?;
    let rules = control.stage.environment().faults.shown();
    let rules = rules.as_array().cloned().unwrap_or_default();
    let sent = rules.iter().map(|rule| {
        let mut rule = rule.clone();
        if let Some(rule) = rule.as_object_mut() {
            rule.retain(|name, _| !["id", "seen", "applied"].contains(&name.as_str()));
        }
        rule.to_string()
    });
    let mut sent = sent.collect::<Vec<_>>().join(", ");
    if sent.is_empty() {
        A_RULE.clone_into(&mut sent);
    }
    let replace = control.call("PUT", "faults").with(format!(r#"{{"results": [{sent}]}}"#));
    let commands = vec![
        ("Replace all faults", replace.command()),
        ("End all faults", control.call("DELETE", "faults").command()),
    ];
    let content = FaultsPage { rules, commands: Commands::new("faults", commands) };
    Ok(page(control, "Faults", FAULTS, &content)?)
}

#[derive(Template)]
#[template(path = "test_server/http/inspector/mails.html")]
struct MailsPage {
    /// The address of the filter.
    to: String,
    mails: Vec<Arc<Mail>>,
    paging: Paging,
    commands: Commands,
}

/// Shows the mails, newest first.
pub(super) async fn mails(visit: Visit) -> PageResult {
    let control = control(&visit)?;
    let to = visit.query("to").trim().to_owned();
    control.stage.enter().await.app.settle_mails().await;
    let wanted = Some(to.as_str()).filter(|to| !to.is_empty());
    let mut mails = control.stage.environment().mails.list(wanted);
    mails.reverse();
    let query = Query::of([("to", to.as_str())]);
    let url = |offset| query.clone().at(offset).url(MAILS);
    let (shown, paging) = Paging::of_all(&mails, &visit, OFFSET, PAGE_SIZE, &url)?;
    let commands = vec![
        ("List these mails", control.call("GET", "mails").filtered(&query).command()),
        ("Forget these mails", control.call("DELETE", "mails").filtered(&query).command()),
    ];
    let commands = Commands::new("mails", commands);
    let content = MailsPage { to, mails: shown.to_vec(), paging, commands };
    Ok(page(control, "Mails", MAILS, &content)?)
}

/// A user.
struct Person<'p> {
    email: String,
    /// The key, if it is known.
    key: &'p str,
    /// The link that signs the user in.
    link: String,
}

#[derive(Template)]
#[template(path = "test_server/http/inspector/people.html")]
struct PeoplePage<'p> {
    people: Vec<Person<'p>>,
    paging: Paging,
    has_console: bool,
}

/// Shows the users, newest first, each with a link to the console.
pub(super) async fn people(visit: Visit) -> PageResult {
    let control = control(&visit)?;
    let app = control.stage.app().await;
    let tx = app.store().snapshot()?;
    let mut ids: Vec<UserId> = collect::<User, _, _>(&*tx, &(), |meta| Some(meta.id))?;
    ids.reverse();
    let url = |offset| Query::default().at(offset).url(PEOPLE);
    let (shown, paging) = Paging::of_all(&ids, &visit, OFFSET, PAGE_SIZE, &url)?;
    let mut people = Vec::with_capacity(shown.len());
    for id in shown {
        let email = tx.get::<User>(id)?.fields.email;
        let link = Query::of([("email", email.as_str())]).url("/_test/console/");
        let key = control.ready.key_of(&email).unwrap_or_default();
        people.push(Person { email, key, link });
    }
    let has_console = app.config().console.is_on();
    let content = PeoplePage { people, paging, has_console };
    Ok(page(control, "People", PEOPLE, &content)?)
}
