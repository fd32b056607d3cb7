//! Requests of a page to the API, in this process and with the rights of the page's session.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::http::in_process::InProcessClient;
use crate::resources::sessions::VerifiedSession;
use crate::state::App;

/// The router of the API. It is built on the first use. Clones share it.
#[derive(Clone)]
pub(super) struct ApiRouter {
    build: fn(App) -> Router,
    router: Arc<OnceLock<Router>>,
}

impl ApiRouter {
    pub(super) fn new(build: fn(App) -> Router) -> Self {
        Self { build, router: Arc::default() }
    }

    /// Returns the client of a session for one request to a page, from this address.
    pub(super) fn client(&self, app: &App, address: IpAddr, session: VerifiedSession) -> Api {
        let router = self.router.get_or_init(|| (self.build)(app.clone())).clone();
        let budget = app.transfer_memory().clone();
        Api { client: InProcessClient::new(router, address, budget), session }
    }
}

/// Sends requests to the API as a session. A client cannot set a request extension, so no other request has the session.
pub(super) struct Api {
    client: InProcessClient,
    session: VerifiedSession,
}

impl Api {
    /// Reads an object. `path` begins with `/api/` and is percent-encoded.
    ///
    /// # Errors
    /// The error of the API; 500 if the response has another form.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let bytes = self.send(Method::GET, path).await?;
        serde_json::from_slice(&bytes).map_err(Error::internal)
    }

    /// Reads an object that the session may lack the scope for. Returns `None` in that case.
    ///
    /// # Errors
    /// The other errors of [`get`](Self::get).
    pub(super) async fn get_if_allowed<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.status(), 403 | 404) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// The error of the API.
    pub(super) async fn delete(&self, path: &str) -> Result<()> {
        self.send(Method::DELETE, path).await.map(drop)
    }

    async fn send(&self, method: Method, path: &str) -> Result<bytes::Bytes> {
        let request = Request::builder().method(method).uri(path).extension(self.session.clone());
        self.client.send(request.body(Body::empty()).map_err(Error::internal)?).await
    }

    /// Returns the client, whose outcome belongs to the page's response.
    pub(super) fn client(&self) -> InProcessClient {
        self.client.clone()
    }
}
