//! The pages that take the place of another one: why a request failed, and the way to the sign-in page and back.

use askama::Template;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};

use crate::base::error::{Error, Result};
use crate::http::form::Form;

use super::assets::icon;
use super::headers::see_other;
use super::layout::card;
use super::origin::is_opened_by_another_site;
use super::urls::Next;
use super::visit::Visit;

/// A failed request to a page.
pub(crate) struct Failure {
    pub(super) error: Error,
    /// Whether the change itself was made, and only the next page is missing.
    pub(super) has_changed: bool,
    /// The page to show instead.
    pub(super) instead: Option<String>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, has_changed: false, instead: None }
    }
}

#[derive(Template)]
#[template(path = "console/failure.html")]
struct FailurePage<'p> {
    title: &'static str,
    has_changed: bool,
    detail: &'p str,
    /// The seconds after which the request may succeed.
    retry_after: Option<u32>,
}

fn title(status: u16) -> &'static str {
    match status {
        401 => "Your session has ended",
        403 => "You do not have access",
        404 => "Not found",
        421 => "Unknown host name",
        429 => "Too many requests",
        503 => "Temporarily unavailable",
        500.. => "The service failed",
        _ => "The request is not valid",
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self { error, has_changed, instead } = self;
        // What a form has changed is said on the page of the failure, not on another one.
        if let Some(instead) = instead.filter(|_| !has_changed) {
            return see_other(&instead).unwrap_or_else(IntoResponse::into_response);
        }
        let page = FailurePage {
            title: if has_changed { "Saved, but not shown" } else { title(error.status()) },
            has_changed,
            detail: error.detail(),
            retry_after: error.retry_after(),
        };
        let Ok(html) = card(page.title, &page) else { return error.into_response() };
        on_page(error, html)
    }
}

/// Returns the response of an error with a page as its body.
pub(super) fn on_page(error: Error, Html(html): Html<String>) -> Response {
    let mut response = error.into_response();
    *response.body_mut() = Body::from(html);
    let html_type = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html_type);
    response
}

/// The path of the sign-in page.
pub(super) const SIGN_IN: &str = "/console/sign_in/";

/// How a request without a session continues.
pub(super) struct Entrance {
    /// The page of a GET, or the path of a form.
    pub(super) url: Next,
    /// Whether the browser may have a session and withholds its cookie, because another site opened the page. A cookie
    /// of the same name may still arrive: another host of the domain can set one.
    is_withheld: bool,
    /// The form of a POST.
    pub(super) form: Option<Form>,
}

impl Entrance {
    pub(super) fn of(visit: &Visit) -> Self {
        let is_form = visit.sends_form();
        let is_withheld = !is_form && is_opened_by_another_site(&visit.head);
        let form = is_form.then(|| visit.form.clone());
        Self { url: Next::parse(visit.path_and_query()), is_withheld, form }
    }

    /// Returns a page that opens its own URL again if the browser may have withheld its cookie. That request no longer
    /// comes from another site, so it happens once.
    pub(super) fn refresh(&self) -> Result<Option<Response>> {
        let page = || Ok(Html(RefreshPage.render().map_err(Error::internal)?).into_response());
        self.is_withheld.then(page).transpose()
    }

    /// Returns the page that opens itself again, a redirection to the sign-in page, or for a form a page that keeps what
    /// was typed.
    pub(super) fn response(&self) -> Result<Response> {
        if let Some(page) = self.refresh()? {
            return Ok(page);
        }
        match &self.form {
            None => see_other(&format!("{SIGN_IN}{}", self.url.to_query())),
            Some(_) => self.keep_form(&Error::authentication_failed()),
        }
    }

    /// Returns a page that keeps a form which could not be answered, or the error of a GET.
    ///
    /// # Errors
    /// The error of a GET.
    pub(super) fn keep_form(&self, error: &Error) -> Result<Response> {
        let Some(form) = &self.form else { return Err(error.clone()) };
        let needs_sign_in = error.status() == 401;
        let title = if needs_sign_in { "Your session has ended" } else { "Nothing was saved" };
        let fields = form.fields().collect();
        let kept = KeptForm { title, error, needs_sign_in, action: &self.url, fields };
        Ok(on_page(error.clone(), card(title, &kept)?))
    }
}

/// A form that could not be answered now. The page has all its fields, so that it can be sent later.
#[derive(Template)]
#[template(path = "console/kept_form.html")]
struct KeptForm<'f> {
    title: &'static str,
    error: &'f Error,
    needs_sign_in: bool,
    action: &'f Next,
    fields: Vec<(&'f str, &'f str)>,
}

/// A page without a frame that opens its own URL again.
#[derive(Template)]
#[template(path = "console/refresh.html")]
struct RefreshPage;
