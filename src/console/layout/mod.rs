//! The layouts of pages: the frame with the navigation, and cards without it.

mod account;
mod command;
mod frame;
mod navigation;
mod notice;
mod tenant;

use askama::Template;
use axum::http::StatusCode;
use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse, Response};

use crate::error::{Error, Result};

use super::assets::icon;
use super::headers::policy_with_style;

pub(super) use command::{Command, quote};
pub(super) use frame::{Frame, Undo};
pub(super) use navigation::Section;
pub(super) use notice::{with_notice, with_notice_of};
pub(super) use tenant::In;

#[derive(Template)]
#[template(path = "console/layout/frame.html")]
struct FramePage<'p> {
    frame: &'p Frame,
    /// A style sheet, without user input.
    style: &'p str,
    /// The HTML of the content.
    main: String,
}

/// Returns a page with its frame.
pub(super) fn page(frame: &Frame, content: &impl Template) -> Result<Response> {
    framed(frame, content, "")
}

/// Returns a page with its frame and a style sheet of its own, which must not contain user input.
pub(super) fn page_with_style(
    frame: &Frame,
    content: &impl Template,
    style: &str,
) -> Result<Response> {
    let mut page = framed(frame, content, style)?;
    page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy_with_style(style)?);
    Ok(page)
}

/// Returns a page with its frame and a status, for a form that failed.
pub(super) fn page_with_status(
    frame: &Frame,
    content: &impl Template,
    status: StatusCode,
) -> Result<Response> {
    let mut page = framed(frame, content, "")?;
    if frame.refusal.is_none() {
        *page.status_mut() = status;
    }
    Ok(page)
}

fn framed(frame: &Frame, content: &impl Template, style: &str) -> Result<Response> {
    let main = content.render().map_err(Error::internal)?;
    let page = FramePage { frame, style, main };
    let mut response = Html(page.render().map_err(Error::internal)?).into_response();
    if let Some(refusal) = &frame.refusal {
        *response.status_mut() = StatusCode::from_u16(refusal.status()).map_err(Error::internal)?;
    }
    Ok(response)
}

/// A page without a frame: a card with one thing to do.
#[derive(Template)]
#[template(path = "console/layout/card.html")]
struct Card<'p> {
    title: &'p str,
    /// Whether the browser opens the page again at once.
    is_refreshed: bool,
    /// The HTML of the content.
    main: String,
}

/// Returns a page without a frame.
pub(super) fn card(title: &str, content: &impl Template) -> Result<Html<String>> {
    let main = content.render().map_err(Error::internal)?;
    Card { title, is_refreshed: false, main }.render().map(Html).map_err(Error::internal)
}

/// Returns a page without a frame that opens its own URL again.
pub(super) fn refreshed_card(title: &str, content: &impl Template) -> Result<Html<String>> {
    let main = content.render().map_err(Error::internal)?;
    Card { title, is_refreshed: true, main }.render().map(Html).map_err(Error::internal)
}
