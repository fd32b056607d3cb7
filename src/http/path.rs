//! Extractors for path parameters. An id that does not parse is a 404, never a 400.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::{MatchedPath, Request};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::base::error::{Error, Result};

use super::extract::{Extract, ReceivedRequest};
use super::route_spec::PathParameter;

/// The root of the paths of projects.
pub(super) const PROJECTS: &str = "/api/projects/";
/// The other spelling of [`PROJECTS`]. PostHog's clients use both.
pub(super) const ENVIRONMENTS: &str = "/api/environments/";

/// The path's `{id}`, or a 404 if it does not parse. The handler returns the 404 itself, because a bad body takes
/// precedence over a missing object.
pub struct PathId<T>(pub Result<T>);

impl<T: FromStr> Extract for PathId<T> {
    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        let id = path_parameter(&request.parts, "id").and_then(|text| text.parse().ok());
        Ok(Self(id.ok_or_else(Error::not_found)))
    }
}

/// Another path parameter, or the error of parsing it. The handler returns the error itself, as for [`PathId`].
pub struct PathParam<P>(pub Result<P>);

impl<P: PathParameter> Extract for PathParam<P> {
    fn extract(request: &mut ReceivedRequest) -> Result<Self> {
        let text = path_parameter(&request.parts, P::NAME).unwrap_or_default();
        Ok(Self(P::parse(&text)))
    }
}

/// Returns the percent-decoded path parameter `name`, if the route has it. Invalid UTF-8 is replaced, so the value
/// matches no id.
pub fn path_parameter<'p>(parts: &'p Parts, name: &str) -> Option<Cow<'p, str>> {
    find_parameter(parts.extensions.get(), parts.uri.path(), name)
}

/// Returns the parameter `name` of a request's path, as [`path_parameter`] does.
pub(super) fn parameter_of<'r>(request: &'r Request, name: &str) -> Option<Cow<'r, str>> {
    find_parameter(request.extensions().get(), request.uri().path(), name)
}

/// Finds the parameter by its position in the route's template, so that the rest of the path is not parsed. This runs
/// several times per request: it is a few times faster than splitting both texts.
fn find_parameter<'p>(
    route: Option<&MatchedPath>,
    path: &'p str,
    name: &str,
) -> Option<Cow<'p, str>> {
    let template = route?.as_str();
    let is_named = |at: usize| {
        let rest = template.get(at + 1..).and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with('}'))
    };
    let begins = template.bytes().enumerate().filter(|(_, byte)| *byte == b'{');
    let begin = begins.map(|(at, _)| at).find(|at| is_named(*at))?;
    let before = template.bytes().take(begin).filter(|byte| *byte == b'/').count();
    let mut slashes = path.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at);
    let start = slashes.nth(before.checked_sub(1)?)? + 1;
    let part = path.get(start..slashes.next().unwrap_or(path.len()))?;
    Some(if part.contains('%') {
        percent_decode_str(part).decode_utf8_lossy()
    } else {
        Cow::Borrowed(part)
    })
}

/// Returns the percent-decoded segments of a path, without empty ones. The organization and the project are
/// replaced by their parameter names, and `environments` by `projects`.
pub(super) fn segments_without_tenant(parts: &Parts) -> impl Iterator<Item = Cow<'_, str>> {
    let template = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let sent = parts.uri.path().split('/').map(|part| percent_decode_str(part).decode_utf8_lossy());
    let both = template.split('/').zip(sent).filter(|(named, _)| !named.is_empty());
    both.map(|(named, sent)| match named {
        "{organization_id}" | "{project_id}" => Cow::Borrowed(named),
        "environments" => Cow::Borrowed("projects"),
        _ => sent,
    })
}
