//! Signing in, with an API key, a link of `steward console` or a mail, and signing out.

use askama::Template;
use axum::http::header::SET_COOKIE;
use axum::http::{Method, StatusCode};
use axum::response::{Html, IntoResponse};

use crate::base::error::{Error, Result};
use crate::resources::sessions::{KnownBrowser, SessionText};

use super::assets::icon;
use super::cookie::{KNOWN_BROWSER, MAIL, SESSION};
use super::failure::{Entrance, SIGN_IN, on_page};
use super::headers::see_other;
use super::layout::card;
use super::model::Person;
use super::registry::{PageResult, Pages};
use super::urls::Next;
use super::visit::Visit;

const ENTER: &str = "/console/enter/";
const CODE: &str = "/console/sign_in/code/";

/// The text for every key that signs nobody in.
const INVALID_KEY: &str =
    "This key signs nobody in. It may be mistyped, revoked, replaced or expired.";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::GET, SIGN_IN, &page);
    pages.public(Method::POST, SIGN_IN, &sign_in);
    pages.public(Method::POST, "/console/sign_out/", &sign_out);
    pages.public(Method::GET, ENTER, &link_page);
    pages.public(Method::POST, ENTER, &ask_to_confirm);
    pages.public(Method::POST, "/console/enter/confirm/", &enter_with_link);
    pages.public(Method::POST, "/console/sign_in/mail/", &send_mail);
    pages.public(Method::GET, CODE, &code_page);
    pages.public(Method::POST, CODE, &enter_with_code);
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
    response.headers_mut().insert(SET_COOKIE, visit.cookie(SESSION).remove()?);
    Ok(response)
}

/// Stores the session in the browser and opens the next page. If mails sign users in, the browser also keeps the proof that
/// the user has signed in in it.
fn signed_in(visit: &Visit, text: &SessionText, next: &Next) -> PageResult {
    let mut response = see_other(next.as_str())?;
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, visit.cookie(SESSION).set(&text.encode())?);
    if visit.app.offers_mail_sign_in()
        && let Some(proof) = visit.app.known_browser(text)?
    {
        headers.append(SET_COOKIE, visit.cookie(KNOWN_BROWSER).set(&proof.encode())?);
    }
    Ok(response)
}

const LINK_TITLE: &str = "Sign in by link";

/// The text for every link that signs nobody in.
const INVALID_LINK: &str = "This link signs nobody in. It works once, within five minutes. Run the command steward console again.";

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

/// Shows the page of a sign-in link. The code stands in the fragment of the link, so it is in no log and no `Referer`. Only
/// [`enter_with_link`] uses it up, because programs that look for malware open links too.
async fn link_page(_: Visit) -> PageResult {
    Ok(card(LINK_TITLE, &EnterPage { error: None })?.into_response())
}

async fn ask_to_confirm(visit: Visit) -> PageResult {
    let code = visit.form.value("code").trim();
    match visit.app.find_sign_in_link(code) {
        Ok(user) => {
            let (first_name, last_name) = (user.first_name, user.last_name);
            let person = Person { first_name, last_name, email: user.email };
            let page = ConfirmPage { code, name: person.name(), email: &person.email };
            Ok(card(LINK_TITLE, &page)?.into_response())
        }
        Err(error) if error.status() == 401 => refuse_link(&visit),
        Err(error) => Err(error.into()),
    }
}

async fn enter_with_link(visit: Visit) -> PageResult {
    let (code, replaced) = (visit.form.value("code"), visit.session()?);
    match visit.app.sign_in_with_link(code, visit.browser(), replaced.as_ref()).await {
        Ok(text) => signed_in(&visit, &text, &Next::parse("")),
        Err(error) if error.status() == 401 => refuse_link(&visit),
        Err(error) => Err(error.into()),
    }
}

fn refuse_link(visit: &Visit) -> PageResult {
    visit.count_failed_sign_in()?;
    let page = card(LINK_TITLE, &EnterPage { error: Some(INVALID_LINK) })?;
    Ok((StatusCode::UNAUTHORIZED, page).into_response())
}

/// The text for every code that signs nobody in.
const INVALID_CODE: &str = "This code signs nobody in. It may be mistyped, expired or used, or there is a newer mail. After five wrong codes, ask \
     for another mail.";

/// The text for a browser that did not ask for a mail.
const OTHER_BROWSER: &str = "This browser did not ask for a mail within the last ten minutes. Enter the code in the browser that asked.";

#[derive(Template)]
#[template(path = "console/sign_in/code.html")]
struct CodePage<'p> {
    next: &'p Next,
    code: &'p str,
    error: Option<&'static str>,
}

/// Queues the mail. The response is the same for every address.
async fn send_mail(visit: Visit) -> PageResult {
    let next = Next::parse(visit.form.value("next"));
    let email = visit.form.value("email");
    let proofs = visit.cookie(KNOWN_BROWSER).values(&visit.head.headers);
    let proofs = proofs.iter().filter_map(|text| KnownBrowser::parse(text)).collect();
    match visit.app.request_sign_in_mail(email, visit.client.address, proofs) {
        Ok(nonce) => {
            let mut response = see_other(&format!("{CODE}{}", next.to_query()))?;
            let cookie = visit.cookie(MAIL).set(&nonce.encode())?;
            response.headers_mut().insert(SET_COOKIE, cookie);
            Ok(response)
        }
        Err(error) if matches!(error.status(), 400 | 429) => {
            let mail = Some(MailForm { email, error: Some(error.detail()) });
            let page = SignInPage { mail, ..SignInPage::of(&visit, &next) }.html()?;
            Ok(on_page(error, page))
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows the page that takes the code of a mail. The mail's link has the code in its fragment, so it is in no log and no
/// `Referer`. Only the form uses it up, and only in the browser that asked, so programs that open the links in mails do no
/// harm.
async fn code_page(visit: Visit) -> PageResult {
    require_offered(&visit)?;
    let next = Next::parse(visit.query("next"));
    Ok(card("Sign in by mail", &CodePage { next: &next, code: "", error: None })?.into_response())
}

async fn enter_with_code(visit: Visit) -> PageResult {
    require_offered(&visit)?;
    let nonces = visit.cookie(MAIL).values(&visit.head.headers);
    if nonces.is_empty() {
        return refuse_code(&visit, OTHER_BROWSER);
    }
    let (code, replaced) = (visit.form.value("code"), visit.session()?);
    // Another host of the domain may have set a nonce too. The code belongs to one of them.
    for nonce in nonces {
        match visit.app.sign_in_with_mail(&nonce, code, visit.browser(), replaced.as_ref()).await {
            Ok(text) => {
                let next = Next::parse(visit.form.value("next"));
                let mut response = signed_in(&visit, &text, &next)?;
                response.headers_mut().append(SET_COOKIE, visit.cookie(MAIL).remove()?);
                return Ok(response);
            }
            Err(error) if error.status() == 401 => {}
            Err(error) => return Err(error.into()),
        }
    }
    refuse_code(&visit, INVALID_CODE)
}

fn require_offered(visit: &Visit) -> Result<()> {
    if visit.app.offers_mail_sign_in() { Ok(()) } else { Err(Error::not_found()) }
}

fn refuse_code(visit: &Visit, error: &'static str) -> PageResult {
    visit.count_failed_sign_in()?;
    let next = Next::parse(visit.form.value("next"));
    let page = CodePage { next: &next, code: visit.form.value("code"), error: Some(error) };
    let page = card("Sign in by mail", &page)?;
    Ok((StatusCode::UNAUTHORIZED, page).into_response())
}
