//! The journal, and one request of it.

use askama::Template;
use axum::http::header::REFRESH;
use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::Value;

use crate::base::error::{Error, Result};
use crate::base::json::escape_invisible;
use crate::base::time::Timestamp;
use crate::console::layout::{Command, curl, quote};
use crate::console::paging::{Choices, ListFilters, OFFSET, Paging};
use crate::console::registry::PageResult;
use crate::console::visit::Visit;
use crate::input::{Input, JsonObject};
use crate::test_server::journal::{Caller, Entry, EntryBody, Matching, RequestFilter};

use super::{Control, PAGE_SIZE, ROOT, control, icon, page};

/// The names of the filters, which are those of the control plane.
const FILTERS: [&str; 5] = ["method", "path", "status", "operation", "key"];
/// The parameter of a page that a browser without scripts loads again and again.
const LIVE: &str = "live";
/// The methods of the service.
const METHODS: Choices = &[
    ("", "Any method"),
    ("GET", "GET"),
    ("POST", "POST"),
    ("PUT", "PUT"),
    ("PATCH", "PATCH"),
    ("DELETE", "DELETE"),
];
/// The headers that a repeated request does not have: the client of the new request sends its own.
const OWN_HEADERS: [&str; 10] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "host",
    "transfer-encoding",
    "user-agent",
];

#[derive(Template)]
#[template(path = "test_server/http/inspector/requests.html")]
struct ListPage {
    filters: ListFilters,
    /// Why the filters are refused.
    error: Option<String>,
    rows: Vec<EntryBody>,
    paging: Paging,
    /// The number of the newest request that matches, if new ones would be on this page.
    newest: Option<u64>,
    /// Where the page is loaded again and again without a script, or no more.
    live: String,
    is_live: bool,
    command: Command,
}

/// Shows the requests, newest first.
pub(super) async fn list(visit: Visit) -> PageResult {
    let control = control(&visit)?;
    let filters = ListFilters::of(&visit, &FILTERS, |_, text| text.to_owned());
    let (found, error) = match parse(&filters) {
        Ok(filter) => (control.stage.environment().journal.matching(&filter), None),
        Err(error) => (Matching::default(), Some(error.detail().to_owned())),
    };
    let newest_first: Vec<_> = found.entries().rev().collect();
    let url = |offset| filters.to_query().at(offset).url(ROOT);
    let (shown, paging) = Paging::of_all(&newest_first, &visit, OFFSET, PAGE_SIZE, &url)?;
    let rows = shown.iter().map(|(number, entry)| found.show(*number, entry)).collect();
    let newest = newest_first.first().map_or(0, |(number, _)| *number);
    let is_live = visit.query(LIVE) == "on";
    let call = control.call("GET", "requests").filtered(&filters.to_query());
    let status = if error.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let content = ListPage {
        error,
        rows,
        newest: (paging.previous.is_none() && status == StatusCode::OK).then_some(newest),
        live: visit.url_with(LIVE, if is_live { "" } else { "on" }),
        is_live,
        command: Command { text: call.command() },
        filters,
        paging,
    };
    let mut response = page(control, "Requests", ROOT, &content)?;
    *response.status_mut() = status;
    if is_live {
        response.headers_mut().insert(REFRESH, HeaderValue::from_static("2"));
    }
    Ok(response)
}

fn parse(filters: &ListFilters) -> Result<RequestFilter> {
    let set = filters.fields().filter(|(_, text)| !text.is_empty());
    let sent: JsonObject = set.map(|(name, text)| (name.to_owned(), text.into())).collect();
    RequestFilter::parse(&sent)
}

/// Returns whether there is something to say of a request.
fn is_noted(entry: &EntryBody) -> bool {
    entry.fault.is_some() || !entry.notes.is_empty()
}

/// Returns the day and the time of day of a moment.
fn parts(at: Timestamp) -> (String, String) {
    let text = at.to_string();
    let (day, time) = text.split_once('T').unwrap_or_default();
    (day.to_owned(), time.trim_end_matches('Z').to_owned())
}

/// Returns the class of the mark of a status.
fn mark(status: Option<&u16>) -> &'static str {
    match status {
        Some(..300) => "good",
        Some(300..400) => "",
        Some(400..500) => "warn",
        _ => "bad",
    }
}

#[derive(Template)]
#[template(path = "test_server/http/inspector/request.html")]
struct OnePage {
    entry: EntryBody,
    target: String,
    headers: Vec<(String, String)>,
    body: String,
    response: String,
    /// The numbers of the requests before and after it.
    previous: Option<u64>,
    next: Option<u64>,
    /// Whether the command needs a key that only its user knows.
    needs_key: bool,
    /// Whether the command sends less than the request did.
    is_cut: bool,
    command: String,
}

/// Shows a request and its response.
pub(super) async fn one(visit: Visit) -> PageResult {
    let number: u64 = visit.number("number")?.parse().map_err(|_| Error::not_found())?;
    let control = control(&visit)?;
    let all =
        control.stage.environment().journal.matching(&RequestFilter::parse(&JsonObject::new())?);
    let entry = all.get(number);
    let entry = entry.ok_or_else(|| Error::not_found_as("The journal has no such request."))?;
    let (command, needs_key) = repeat(control, &visit.base_url(), entry)?;
    let shown = all.show(number, entry);
    let kept = |number: &u64| all.get(*number).is_some();
    let content = OnePage {
        target: entry.target(),
        headers: entry.headers.clone(),
        body: pretty(&shown.body),
        response: pretty(&shown.response),
        previous: Some(number - 1).filter(kept),
        next: Some(number + 1).filter(kept),
        needs_key,
        is_cut: entry.body.is_full(),
        command,
        entry: shown,
    };
    Ok(page(control, &format!("Request {number}"), ROOT, &content)?)
}

/// Returns a body for people.
fn pretty(body: &Value) -> String {
    match body {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        json => escape_invisible(format!("{json:#}")),
    }
}

/// Returns the command that repeats a request, and whether it needs a key from a variable.
fn repeat(control: &Control, base_url: &str, entry: &Entry) -> Result<(String, bool)> {
    let method = entry.method.parse::<Method>().map_err(Error::internal)?;
    let sent = |name: &str| entry.headers.iter().find(|(known, _)| known == name);
    let mut headers = Vec::new();
    let mut needs_key = false;
    if let Some((_, shown)) = sent("authorization") {
        let of_caller = |sender: &Caller| control.ready.key_of(&sender.email);
        let is_sent =
            |key: &&str| shown.split_once("...").is_some_and(|(_, end)| key.ends_with(end));
        let known = entry.caller.as_ref().and_then(of_caller).filter(is_sent);
        needs_key = known.is_none();
        headers.push(format!("\"Authorization: Bearer {}\"", known.unwrap_or("$KEY")));
    }
    let others = entry.headers.iter().filter(|(name, _)| !OWN_HEADERS.contains(&name.as_str()));
    headers.extend(others.map(|(name, value)| quote(&format!("{name}: {value}"))));
    let body = Some(escape_invisible(entry.body.text())).filter(|body| !body.is_empty());
    let url = format!("{base_url}{}", entry.target());
    Ok((curl(&method, &url, &headers, body.as_deref()), needs_key))
}
