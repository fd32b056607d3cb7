//! A request to a page, after the checks that all pages share.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::{MatchedPath, Request};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use uuid::Uuid;

use crate::app::App;
use crate::base::error::{Error, Result};
use crate::fair::fair_queue::Consumer;
use crate::fair::memory_budget::Payer;
use crate::http::client::Client;
use crate::http::form::{Form, FormLimits};
use crate::http::path::path_parameter;
use crate::http::query::QueryParams;
use crate::http::routes::PageAccess;
use crate::resources::sessions::{self, VerifiedSession};

use super::api::{Api, ApiRouter, Recorder};
use super::cookie::{ConsoleCookie, CookieKind, SESSION};
use super::origin;
use super::urls::Query;

/// The field of the buttons that show something instead of sending the request of their form.
pub(super) const SHOW: &str = "_show";

/// A request to a page.
pub(crate) struct Visit {
    pub(super) app: App,
    pub(crate) head: Parts,
    pub(super) client: Client,
    pub(super) query: QueryParams,
    /// The form of a POST. Otherwise it is empty.
    pub(super) form: Form,
    /// Whether sessions can be read in a state that is new enough.
    refreshed: Result<()>,
}

impl Visit {
    /// Checks the host and the origin of a request, and reads its form.
    ///
    /// # Errors
    /// 421 for a foreign host, 403 for a request of another site, 400 for a form that has no command, or the errors of
    /// [`Form::read`].
    pub(super) async fn admit(app: App, request: Request, access: PageAccess) -> Result<Self> {
        let (head, body) = request.into_parts();
        let client = Client::of(&head, app.proxies());
        origin::require_own_host(&client, app.config())?;
        let query = QueryParams::of(&head, &app)?;
        let mut form = Form::default();
        if !head.method.is_safe() {
            origin::require_same_origin(&head, &client, app.config())?;
            // A form is kept for after the sign-in, so its limits do not depend on the session. Without one, it counts
            // against the memory of clients that are not signed in.
            let limits = if access == PageAccess::Public {
                FormLimits::PUBLIC
            } else {
                FormLimits::SIGNED_IN
            };
            let session = session(&app, &head, &client).ok().flatten();
            let tenant = session.map(|session| Consumer::User(session.user.0));
            let payer = Payer { client: client.address, tenant };
            let memory = app.transfer_memory().for_request(payer, limits.max_bytes);
            let request = Request::from_parts(head.clone(), body);
            let timeout = app.config().body_timeout;
            form = Form::read(request, limits, timeout, memory).await?;
        }
        let refreshed = app.store().refresh().await;
        let visit = Self { app, head, client, query, form, refreshed };
        if access == PageAccess::Public && visit.changes_nothing() {
            return Err(Error::invalid_request("invalid_form", "This form has no command."));
        }
        Ok(visit)
    }

    /// Returns whether the form only asks to see something, for example its command. Then the page may change nothing.
    pub(super) fn changes_nothing(&self) -> bool {
        !self.form.value(SHOW).is_empty()
    }

    /// Returns whether the browser sends a form. Otherwise it opens the page.
    pub(super) fn sends_form(&self) -> bool {
        !self.head.method.is_safe()
    }

    /// Returns a cookie for this address of the service.
    pub(super) fn cookie(&self, kind: CookieKind) -> ConsoleCookie {
        ConsoleCookie::new(kind, &self.client, self.app.config())
    }

    /// Returns the name of the session's cookie if the browser sends several of that name.
    pub(super) fn ambiguous_cookie(&self) -> Option<String> {
        let cookie = self.cookie(SESSION);
        let is_ambiguous = cookie.values(&self.head.headers).len() > 1;
        is_ambiguous.then_some(cookie.name)
    }

    pub(super) fn path_and_query(&self) -> &str {
        self.head.uri.path_and_query().map_or("/", |both| both.as_str())
    }

    /// Returns the URL of the same page with another value of a parameter of the query, or without it.
    pub(crate) fn url_with(&self, parameter: &str, value: &str) -> String {
        let pairs = self.query.pairs().filter(|(name, _)| *name != parameter);
        Query::of(pairs).and([(parameter, value)]).url(self.head.uri.path())
    }

    /// Returns the path of the page with the names of its parameters.
    pub(super) fn route(&self) -> &str {
        self.head.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str)
    }

    /// Returns a parameter of the path, percent-decoded.
    pub(super) fn parameter(&self, name: &str) -> Cow<'_, str> {
        path_parameter(&self.head, name).unwrap_or_default()
    }

    /// Returns a number in the page's path.
    ///
    /// # Errors
    /// 404 if it is no number.
    pub(crate) fn number(&self, parameter: &str) -> Result<String> {
        self.id::<u64>(parameter)
    }

    /// Returns a UUID in the page's path.
    ///
    /// # Errors
    /// 404 if it is no UUID.
    pub(super) fn uuid(&self, parameter: &str) -> Result<String> {
        self.id::<Uuid>(parameter)
    }

    fn id<T: FromStr + ToString>(&self, parameter: &str) -> Result<String> {
        let id = self.parameter(parameter).parse::<T>().map_err(|_| Error::not_found())?;
        Ok(id.to_string())
    }

    /// Returns the id of the project in the page's path.
    ///
    /// # Errors
    /// 404 if it is no number.
    pub(super) fn project_id(&self) -> Result<String> {
        self.number("project_id")
    }

    /// Returns the id of the organization in the page's path.
    ///
    /// # Errors
    /// 404 if it is no UUID.
    pub(super) fn organization_id(&self) -> Result<String> {
        self.uuid("organization_id")
    }

    /// Returns a parameter of the query, or an empty text.
    pub(crate) fn query(&self, name: &str) -> &str {
        self.query.last(name).unwrap_or_default()
    }

    /// Returns the browser, for the list of sessions.
    pub(super) fn browser(&self) -> sessions::Fields {
        let agent = self.head.headers.get(USER_AGENT).map_or(&[][..], |sent| sent.as_bytes());
        sessions::Fields::new(&String::from_utf8_lossy(agent), self.client.address)
    }

    /// Counts a sign-in that failed, as the API counts requests with an invalid key.
    ///
    /// # Errors
    /// 429 if the client's address exceeds a limit.
    pub(super) fn count_failed_sign_in(&self) -> Result<()> {
        self.app.rate_limiter().check_keyless(|| self.client.address).map(drop)
    }

    /// Returns the scheme and host by which a command reaches the service.
    pub(crate) fn base_url(&self) -> Cow<'_, str> {
        self.client.base_url(self.app.config().public_url.as_deref())
    }

    /// Returns the session of the browser, if it has a valid one.
    pub(super) fn session(&self) -> Result<Option<VerifiedSession>> {
        self.refreshed.clone()?;
        session(&self.app, &self.head, &self.client)
    }
}

/// Returns the session of the browser. Values that are no session do not count: another host of the domain may have set them.
/// Two sessions count as none, because one of them may be that of an attacker.
fn session(app: &App, head: &Parts, client: &Client) -> Result<Option<VerifiedSession>> {
    let cookie = ConsoleCookie::new(SESSION, client, app.config());
    let mut found = None;
    for text in cookie.values(&head.headers) {
        match app.verify_session(&text) {
            Ok(_) if found.is_some() => return Ok(None),
            Ok(session) => found = Some(session),
            Err(error) if error.status() == 401 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// A request to a page by a browser that is signed in.
pub(super) struct SignedIn {
    pub(super) visit: Visit,
    pub(super) session: VerifiedSession,
    pub(super) api: Api,
}

impl SignedIn {
    /// Verifies the session of a request.
    ///
    /// # Errors
    /// 401 without a valid session.
    pub(super) fn of(visit: Visit, router: &ApiRouter) -> Result<Self> {
        let session = visit.session()?.ok_or_else(Error::not_authenticated)?;
        let recorder = visit.changes_nothing().then(Recorder::default);
        let api = router.client(&visit.app, visit.client.address, session.clone(), recorder);
        Ok(Self { visit, session, api })
    }
}
