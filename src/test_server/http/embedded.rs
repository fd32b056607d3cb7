//! A server in the process of a test.

use std::fmt;

use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::app::App;
use crate::base::error::Result;
use crate::base::secret::SeedSource;
use crate::base::time::Hand;
use crate::config::Config;
use crate::http::server::{ServerLimits, serve};
use crate::ids::{OrganizationId, ProjectId};
use crate::store::OpenError;
use crate::test_server::{Ready, Stage, Start, Workspace};

use super::router;

/// The URL of a server without a port, which its responses contain.
const NO_PORT: &str = "http://localhost";

/// A server for one test: that of `steward test`, with the same workspace in memory, ids, keys and control plane.
///
/// ```
/// use steward::{Config, TestServer};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = TestServer::start(Config::default()).await?;
/// let url = format!("{}/api/projects/{}/dashboards/", server.url(), server.project_id());
/// let authorization = format!("Bearer {}", server.owner_key());
/// // Send requests to `url`, then begin again.
/// # drop((url, authorization));
/// server.reset().await?;
/// # Ok(())
/// # }
/// ```
///
/// Its connections are closed when it is dropped. `docs/testing.md` describes the control plane, below `/_test/`.
pub struct TestServer {
    stage: Stage,
    workspace: Workspace,
    url: String,
    router: Router,
    /// Serves on a port, if there is one.
    serving: JoinSet<()>,
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("url", &self.url).finish_non_exhaustive()
    }
}

impl TestServer {
    /// Starts a server on a free port of 127.0.0.1. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When no port is free, or the configuration is invalid.
    pub async fn start(config: Config) -> Result<Self, OpenError> {
        let listening = TcpListener::bind("127.0.0.1:0").await;
        let listening = listening.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) =
            listening.map_err(OpenError::io("listen for", "a test".as_ref()))?;
        let mut server = Self::at(format!("http://{address}"), config).await?;
        let router = server.router();
        server.serving.spawn(async move {
            let limits = ServerLimits::default();
            // Fails only for other limits.
            let _ = serve(listener, router, &limits, std::future::pending()).await;
        });
        Ok(server)
    }

    /// Starts a server without a port: call its [`router`](Self::router). Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the configuration is invalid.
    pub async fn without_port(config: Config) -> Result<Self, OpenError> {
        Self::at(NO_PORT.to_owned(), config).await
    }

    async fn at(url: String, config: Config) -> Result<Self, OpenError> {
        let seeds = SeedSource::numbered(0);
        let config = Config { listen_url: url.clone(), seeds, ..config };
        let start = Start { hand: Hand::Runs(0), is_strict: false };
        let (stage, workspace) = Stage::create(config, start).await?;
        let router = router(stage.clone(), Ready::new(&url, 0, &workspace));
        Ok(Self { stage, workspace, url, router, serving: JoinSet::new() })
    }

    /// Returns the URL, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the service and the control plane as a tower service.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Returns the id of the organization.
    pub fn organization_id(&self) -> OrganizationId {
        self.workspace.organization_id
    }

    /// Returns the id of the project.
    pub fn project_id(&self) -> ProjectId {
        self.workspace.project_id
    }

    /// Returns the key of the owner. It has all scopes.
    pub fn owner_key(&self) -> &str {
        &self.workspace.user.api_key
    }

    /// Returns the key of the member, who has the lowest level. It has all scopes.
    pub fn member_key(&self) -> &str {
        self.workspace.member.as_ref().map_or("", |member| &member.api_key)
    }

    /// Returns the service. It is another one after a reset.
    pub async fn app(&self) -> App {
        self.stage.app().await
    }

    /// Puts everything but the named snapshots back to how it was at the start. Waits for requests in progress.
    ///
    /// # Errors
    /// Does not fail in practice: nothing is on a disk.
    pub async fn reset(&self) -> Result<()> {
        self.stage.reset().await
    }
}
