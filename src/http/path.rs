//! Ids in paths, and the query. An id that is none is one of nothing: 404, never 400 (decisions §1).

use std::borrow::Cow;
use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::error::{Error, Result};
use crate::ids::{DashboardId, UserUuid};
use crate::state::App;

use super::query;

/// The path's `{id}`, or the 404 for a text that is none: for the handler to ask for, because the body
/// is read before the object is looked for (decisions §1).
pub struct Id<T>(pub Result<T>);

impl<S: Send + Sync, T: FromStr> FromRequestParts<S> for Id<T> {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = parameter(parts, "id").and_then(|text| text.parse().ok());
        Ok(Self(id.ok_or_else(Error::not_found)))
    }
}

/// The path's `{dashboard_id}`, for what hangs on a dashboard. A text that is none waits as the 404 in the
/// words of such routes, as in [`Id`].
pub struct DashboardRef(pub Result<DashboardId>);

impl<S: Send + Sync> FromRequestParts<S> for DashboardRef {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = parameter(parts, "dashboard_id").and_then(|text| text.parse().ok());
        Ok(Self(id.ok_or_else(|| Error::not_found_as("Dashboard not found."))))
    }
}

/// The path's `{token}`: any text, for a rule to look up.
pub struct Token(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Token {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parameter(parts, "token").unwrap_or_default().into_owned()))
    }
}

/// The path's `{asset}`: the name of a file that a page needs.
pub struct Asset(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Asset {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parameter(parts, "asset").unwrap_or_default().into_owned()))
    }
}

/// The parameters of the query.
pub struct Query(Vec<(String, String)>);

impl Query {
    /// The last value of a parameter.
    pub fn last(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

impl FromRequestParts<App> for Query {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self> {
        let query = parts.uri.query().unwrap_or_default();
        query::parse(query, app.config().caps.query_values).map(Self)
    }
}

/// A user as a path names them: by UUID, or the caller by `@me`, which is none here. A text that is
/// neither waits as the 404, as in [`Id`].
pub struct UserRef(pub Result<Option<UserUuid>>);

impl<S: Send + Sync> FromRequestParts<S> for UserRef {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parameter(parts, "user__uuid").unwrap_or_default();
        Ok(Self(match &*text {
            "@me" => Ok(None),
            uuid => uuid.parse().map(Some).map_err(|_| Error::not_found()),
        }))
    }
}

/// The path's parameter of this name, percent-decoded, if its route has one. It is found by its place in
/// the route's template, so that nothing else of the path is looked at. Bytes that are no UTF-8 are
/// replaced, which leaves a text that is nobody's id.
pub fn parameter<'p>(parts: &'p Parts, name: &str) -> Option<Cow<'p, str>> {
    let template = parts.extensions.get::<MatchedPath>()?.as_str();
    let named =
        |part: &str| part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) == Some(name);
    let place = template.split('/').position(named)?;
    let part = parts.uri.path().split('/').nth(place)?;
    Some(percent_decode_str(part).decode_utf8_lossy())
}

/// The parts of a path, percent-decoded; in the place of an organization and a project stands what their parameters
/// are called. A trailing slash is no part.
pub(super) fn placeless(parts: &Parts) -> impl Iterator<Item = Cow<'_, str>> {
    let template = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let sent = parts.uri.path().split('/').map(|part| percent_decode_str(part).decode_utf8_lossy());
    let both = template.split('/').zip(sent).filter(|(named, _)| !named.is_empty());
    both.map(|(named, sent)| match named {
        "{organization_id}" | "{project_id}" => Cow::Borrowed(named),
        _ => sent,
    })
}
