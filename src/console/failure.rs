//! Pages that say why a request failed.

use askama::Template;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};

use crate::error::Error;

use super::assets::icon;
use super::layout::card;
use super::redirection::see_other;

/// A failed request to a page.
pub(super) struct Failure {
    error: Error,
    /// Whether the request has changed something before it failed.
    has_changed: bool,
    /// The page to show instead.
    instead: Option<String>,
}

impl Failure {
    /// Says that a list has no such page. `last` is the URL of its last page, if that is another one.
    pub(super) fn beyond_the_end(last: Option<String>) -> Self {
        let error = Error::not_found_as("The list has no such page.");
        Self { error, has_changed: false, instead: last }
    }

    pub(super) fn status(&self) -> u16 {
        self.error.status()
    }

    /// Says that the change itself was made, and only the next page is missing.
    pub(super) fn after_change(self) -> Self {
        Self { has_changed: true, ..self }
    }

    pub(super) const fn error(&self) -> &Error {
        &self.error
    }
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
