//! The way of a request without a session: to the sign-in page and back.

use askama::Template;
use axum::response::{IntoResponse, Response};

use crate::error::{Error, Result};
use crate::http::form::Form;

use super::failure::on_page;
use super::layout::{card, refreshed_card};
use super::next::Next;
use super::origin::is_opened_by_another_site;
use super::redirection::see_other;
use super::visit::Visit;

/// The path of the sign-in page.
pub(super) const SIGN_IN: &str = "/console/sign_in/";

/// How a request without a session continues.
pub(super) struct Entrance {
    /// The page of a GET.
    next: Option<Next>,
    /// Whether the browser may have a session and withholds its cookie, because another site opened the page. A cookie
    /// of the same name may still arrive: another host of the domain can set one.
    is_withheld: bool,
    /// The form of a POST, with its path.
    form: Option<(Next, Form)>,
}

impl Entrance {
    pub(super) fn of(visit: &Visit) -> Self {
        let next = visit.head.method.is_safe().then(|| Next::parse(visit.path_and_query()));
        let is_withheld = next.is_some() && is_opened_by_another_site(&visit.head);
        let is_form = !visit.head.method.is_safe();
        let form = is_form.then(|| (Next::parse(visit.path_and_query()), visit.form.clone()));
        Self { next, is_withheld, form }
    }

    /// Returns a page that opens its own URL again if the browser may have withheld its cookie. That request no longer
    /// comes from another site, so it happens once.
    pub(super) fn refresh(&self) -> Result<Option<Response>> {
        let page = || Ok(refreshed_card("Opening the page", &RefreshPage)?.into_response());
        self.is_withheld.then(page).transpose()
    }

    /// Returns the page that opens itself again, a redirection to the sign-in page, or for a form a page that keeps what
    /// was typed.
    pub(super) fn response(&self) -> Result<Response> {
        if let Some(page) = self.refresh()? {
            return Ok(page);
        }
        match &self.next {
            Some(next) => see_other(&format!("{SIGN_IN}{}", next.to_query())),
            None => self.keep_form(&Error::authentication_failed()),
        }
    }

    /// Returns a page that keeps a form which could not be answered, or the error of a GET.
    ///
    /// # Errors
    /// The error of a GET.
    pub(super) fn keep_form(&self, error: &Error) -> Result<Response> {
        let Some((action, form)) = &self.form else { return Err(error.clone()) };
        let needs_sign_in = error.status() == 401;
        let title = if needs_sign_in { "Your session has ended" } else { "Nothing was saved" };
        let fields = form.fields().collect();
        let kept = KeptForm { title, error, needs_sign_in, action, fields };
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

#[derive(Template)]
#[template(path = "console/refresh.html")]
struct RefreshPage;
