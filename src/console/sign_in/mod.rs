//! Signing in, with an API key, a link of `steward console` or a mail, and signing out.

mod link;
mod mail;

use askama::Template;
use axum::http::header::SET_COOKIE;
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse};

use crate::error::Result;
use crate::resources::sessions::SessionText;

use super::assets::icon;
use super::failure::{Entrance, SIGN_IN};
use super::headers::see_other;
use super::layout::card;
use super::registry::{PageResult, Pages};
use super::urls::Next;
use super::visit::Visit;

const SIGN_OUT: &str = "/console/sign_out/";

/// The text for every key that signs nobody in.
const INVALID_KEY: &str =
    "This key signs nobody in. It may be mistyped, revoked, replaced or expired.";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::GET, SIGN_IN, page);
    pages.public(Method::POST, SIGN_IN, sign_in);
    pages.public(Method::POST, SIGN_OUT, sign_out);
    link::routes(pages);
    mail::routes(pages);
}

#[derive(Template)]
#[template(path = "console/sign_in/page.html")]
struct SignInPage<'p> {
    next: &'p Next,
    /// The error of the key.
    error: Option<&'static str>,
    /// The form that asks for a mail. `None` if no mail can sign users in.
    mail: Option<MailForm<'p>>,
    /// The name of the session's cookie, if the browser sends several of that name.
    ambiguous_cookie: Option<String>,
}

/// The form that asks for a sign-in mail.
#[derive(Default)]
struct MailForm<'p> {
    /// The address that was entered.
    email: &'p str,
    /// The error of the address.
    error: Option<&'p str>,
}

impl<'p> SignInPage<'p> {
    fn of(visit: &Visit, next: &'p Next) -> Self {
        let mail = visit.app.offers_mail_sign_in().then(MailForm::default);
        Self { next, error: None, mail, ambiguous_cookie: visit.ambiguous_cookie() }
    }

    fn html(&self) -> Result<Html<String>> {
        card("Sign in", self)
    }
}

async fn page(visit: Visit) -> PageResult {
    let next = Next::parse(visit.query("next"));
    if visit.session()?.is_some() {
        return Ok(see_other(next.as_str())?);
    }
    if let Some(page) = Entrance::of(&visit).refresh()? {
        return Ok(page);
    }
    Ok(SignInPage::of(&visit, &next).html()?.into_response())
}

async fn sign_in(visit: Visit) -> PageResult {
    let next = Next::parse(visit.form.value("next"));
    let (key, replaced) = (visit.form.value("key").trim(), visit.session()?);
    match visit.app.sign_in_with_key(key, visit.browser(), replaced.as_ref()).await {
        Ok(text) => signed_in(&visit, &text, &next),
        Err(error) if error.status() == 401 => {
            visit.count_failed_sign_in()?;
            let page = SignInPage { error: Some(INVALID_KEY), ..SignInPage::of(&visit, &next) };
            Ok((StatusCode::UNAUTHORIZED, page.html()?).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

/// Ends the session. The API could refuse that to a session that may not write.
async fn sign_out(visit: Visit) -> PageResult {
    if let Some(session) = visit.session()? {
        match visit.app.sign_out(&session).await {
            // It ended meanwhile.
            Err(error) if error.status() == 404 => {}
            ended => ended?,
        }
    }
    let mut response = see_other(SIGN_IN)?;
    response.headers_mut().insert(SET_COOKIE, visit.cookie().remove()?);
    Ok(response)
}

/// Stores the session in the browser and opens the next page. If mails sign users in, the browser also keeps the proof that
/// the user has signed in in it.
fn signed_in(visit: &Visit, text: &SessionText, next: &Next) -> PageResult {
    let mut response = see_other(next.as_str())?;
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, visit.cookie().set(&text.encode())?);
    if visit.app.offers_mail_sign_in()
        && let Some(proof) = visit.app.known_browser(text)?
    {
        headers.append(SET_COOKIE, visit.known_browser_cookie().set(&proof.encode())?);
    }
    Ok(response)
}
