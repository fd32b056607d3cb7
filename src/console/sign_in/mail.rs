//! Signing in by mail: a form asks for the mail, and a page takes its code. The mail's link has the code in its fragment,
//! so it is in no log and no `Referer`. Only the form uses it up, and only in the browser that asked, so programs that open
//! the links in mails do no harm.

use askama::Template;
use axum::http::header::SET_COOKIE;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;

use crate::console::assets::icon;
use crate::console::failure::on_page;
use crate::console::headers::see_other;
use crate::console::layout::card;
use crate::console::registry::{PageResult, Pages};
use crate::console::urls::Next;
use crate::console::visit::Visit;
use crate::error::{Error, Result};
use crate::resources::sessions::KnownBrowser;

use super::{MailForm, SignInPage, signed_in};

const ASK: &str = "/console/sign_in/mail/";
const CODE: &str = "/console/sign_in/code/";

/// The text for every code that signs nobody in.
const INVALID_CODE: &str = "This code signs nobody in. It may be mistyped, expired or used, or there is a newer mail. After five wrong codes, ask \
     for another mail.";

/// The text for a browser that did not ask for a mail.
const OTHER_BROWSER: &str = "This browser did not ask for a mail within the last ten minutes. Enter the code in the browser that asked.";

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.public(Method::POST, ASK, ask);
    pages.public(Method::GET, CODE, page);
    pages.public(Method::POST, CODE, enter);
}

#[derive(Template)]
#[template(path = "console/sign_in/code.html")]
struct CodePage<'p> {
    next: &'p Next,
    code: &'p str,
    error: Option<&'static str>,
}

/// Queues the mail. The response is the same for every address.
async fn ask(visit: Visit) -> PageResult {
    let next = Next::parse(visit.form.value("next"));
    let email = visit.form.value("email");
    let proofs = visit.known_browser_cookie().values(&visit.head.headers);
    let proofs = proofs.iter().filter_map(|text| KnownBrowser::parse(text)).collect();
    match visit.app.request_sign_in_mail(email, visit.client.address, proofs) {
        Ok(nonce) => {
            let mut response = see_other(&format!("{CODE}{}", next.to_query()))?;
            let cookie = visit.mail_cookie().set(&nonce.encode())?;
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

async fn page(visit: Visit) -> PageResult {
    require_offered(&visit)?;
    let next = Next::parse(visit.query("next"));
    Ok(card("Sign in by mail", &CodePage { next: &next, code: "", error: None })?.into_response())
}

async fn enter(visit: Visit) -> PageResult {
    require_offered(&visit)?;
    let nonces = visit.mail_cookie().values(&visit.head.headers);
    if nonces.is_empty() {
        return refused(&visit, OTHER_BROWSER);
    }
    let (code, replaced) = (visit.form.value("code"), visit.session()?);
    // Another host of the domain may have set a nonce too. The code belongs to one of them.
    for nonce in nonces {
        match visit.app.sign_in_with_mail(&nonce, code, visit.browser(), replaced.as_ref()).await {
            Ok(text) => {
                let next = Next::parse(visit.form.value("next"));
                let mut response = signed_in(&visit, &text, &next)?;
                response.headers_mut().append(SET_COOKIE, visit.mail_cookie().remove()?);
                return Ok(response);
            }
            Err(error) if error.status() == 401 => {}
            Err(error) => return Err(error.into()),
        }
    }
    refused(&visit, INVALID_CODE)
}

fn require_offered(visit: &Visit) -> Result<()> {
    if visit.app.offers_mail_sign_in() { Ok(()) } else { Err(Error::not_found()) }
}

fn refused(visit: &Visit, error: &'static str) -> PageResult {
    visit.count_failed_sign_in()?;
    let next = Next::parse(visit.form.value("next"));
    let page = CodePage { next: &next, code: visit.form.value("code"), error: Some(error) };
    let page = card("Sign in by mail", &page)?;
    Ok((StatusCode::UNAUTHORIZED, page).into_response())
}
