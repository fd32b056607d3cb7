//! The page of a sign-in link. The code stands in the fragment of the link, so it is in no log and no `Referer`. Only the
//! second form uses it up, because programs that look for malware open links too.

use askama::Template;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;

use crate::console::assets::icon;
use crate::console::layout::card;
use crate::console::model::Person;
use crate::console::registry::{PageResult, Pages};
use crate::console::urls::Next;
use crate::console::visit::Visit;

use super::signed_in;

const ENTER: &str = "/console/enter/";
const CONFIRM: &str = "/console/enter/confirm/";

const TITLE: &str = "Sign in by link";

/// The text for every code that signs nobody in.
const INVALID_CODE: &str = "This link signs nobody in. It works once, within five minutes. Run the command steward console again.";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::GET, ENTER, page);
    pages.public(Method::POST, ENTER, ask);
    pages.public(Method::POST, CONFIRM, confirm);
}

#[derive(Template)]
#[template(path = "console/sign_in/enter.html")]
struct EnterPage {
    error: Option<&'static str>,
}

/// Names the user of a link and asks whether to sign in. Otherwise a link could sign a user in as somebody else.
#[derive(Template)]
#[template(path = "console/sign_in/confirm.html")]
struct ConfirmPage<'p> {
    code: &'p str,
    name: String,
    email: &'p str,
}

async fn page(_: Visit) -> PageResult {
    Ok(card(TITLE, &EnterPage { error: None })?.into_response())
}

async fn ask(visit: Visit) -> PageResult {
    let code = visit.form.value("code").trim();
    match visit.app.find_sign_in_link(code) {
        Ok(user) => {
            let (first_name, last_name) = (user.first_name, user.last_name);
            let person = Person { first_name, last_name, email: user.email };
            let page = ConfirmPage { code, name: person.name(), email: &person.email };
            Ok(card(TITLE, &page)?.into_response())
        }
        Err(error) if error.status() == 401 => invalid(&visit),
        Err(error) => Err(error.into()),
    }
}

async fn confirm(visit: Visit) -> PageResult {
    let (code, replaced) = (visit.form.value("code"), visit.session()?);
    match visit.app.sign_in_with_link(code, visit.browser(), replaced.as_ref()).await {
        Ok(text) => signed_in(&visit, &text, &Next::parse("")),
        Err(error) if error.status() == 401 => invalid(&visit),
        Err(error) => Err(error.into()),
    }
}

fn invalid(visit: &Visit) -> PageResult {
    visit.count_failed_sign_in()?;
    let page = card(TITLE, &EnterPage { error: Some(INVALID_CODE) })?;
    Ok((StatusCode::UNAUTHORIZED, page).into_response())
}
