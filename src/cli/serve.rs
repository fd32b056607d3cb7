//! `steward serve`.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::bootstrap::{self, First};
use crate::config::{Config, DEFAULT_LISTEN, duration};
use crate::error::Error;
use crate::http::front::{ConnectionMetrics, Front};
use crate::http::logging::{self, Format};
use crate::http::server::{self, EXTRA_SOCKETS, ServerLimits, stop_signal};
use crate::http::tls::Tls;
use crate::meters::Meters;
use crate::router::{self, router};
use crate::state::App;
use crate::store::{Compacted, OpenError, Progress, Space, Store, beside};

use super::control::{Control, MAX_CONTROL_SOCKETS};
use super::greeting::{FirstRun, greet};
use super::{Failure, manager};

#[derive(Args)]
#[command(
    after_help = "Without a data file, one is made with a first organization, project, owner and key. \
    The key is printed once with a line to try it; where stdout is no terminal it is written to FILE.first-key \
    instead.\n\nStop with Ctrl-C or SIGTERM: requests under way are finished and the file is closed clean. SIGHUP has the \
    certificate read again."
)]
pub(super) struct Serve {
    /// Where to listen; port 0 takes a free one and prints it.
    #[arg(long, env = "STEWARD_LISTEN", value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    listen: String,

    /// Where to serve the service's numbers, for Prometheus to read at /metrics. By default nowhere. Whoever
    /// reaches it reads them: no key is asked for.
    #[arg(long, env = "STEWARD_METRICS_LISTEN", value_name = "ADDR")]
    metrics_listen: Option<String>,

    /// What to log: error, warn, info, debug or trace; info,request=debug adds a line for each request. `steward
    /// log` changes it while the server runs.
    #[arg(long, env = "STEWARD_LOG", value_name = "LEVEL", default_value = "info", value_parser = logging::filter)]
    log: String,

    /// How to log: text, json, or auto for text on a terminal and JSON lines elsewhere.
    #[arg(long, env = "STEWARD_LOG_FORMAT", value_name = "FORMAT", default_value_t = Format::Auto)]
    log_format: Format,

    /// How many connections may be open at once. Beyond that, idle connections are closed for new ones; new ones
    /// are refused while none is idle. 16 more are for loopback addresses.
    #[arg(long, env = "STEWARD_CONNECTIONS", value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// How many of them one client address may have open; an IPv6 network of 64 bits counts as one. Trusted proxies
    /// are not limited. By default a quarter of --connections, and at least 16.
    #[arg(long, env = "STEWARD_CONNECTIONS_PER_ADDRESS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_address: Option<u32>,

    /// How old a connection may become: the first answer after that closes it.
    #[arg(long, env = "STEWARD_CONNECTION_AGE", value_name = "TIME", default_value = "1h", value_parser = duration)]
    connection_age: Duration,

    /// How long a client may take to send a request's head; also ends idle connections.
    #[arg(long, env = "STEWARD_HEADER_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = duration)]
    header_timeout: Duration,

    /// How long requests under way may take after a stop signal.
    #[arg(long, env = "STEWARD_GRACE", value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    grace: Duration,

    /// Compact the data file before it is served, where more than half of it is dead space.
    #[arg(long, env = "STEWARD_COMPACT_AT_START", value_parser = FalseyValueParser::new())]
    compact_at_start: bool,

    /// How long to go on serving after a stop signal while /_readyz says 503, for load balancers to notice.
    #[arg(long, env = "STEWARD_DRAIN_DELAY", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    drain_delay: Duration,

    /// A PEM file with the certificate to serve HTTPS with, then those that lead to its root. Without one, HTTP is
    /// served. Both files are read again when they change, and on SIGHUP.
    #[arg(long, env = "STEWARD_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's private key, unencrypted.
    #[arg(long, env = "STEWARD_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    config: Config,
}

impl Serve {
    /// Serves until it is told to stop. `warning` is logged first.
    pub(super) async fn run(
        self,
        data: &Path,
        json: bool,
        warning: Option<String>,
    ) -> Result<ExitCode, Failure> {
        let room = raise_descriptors(self.connections);
        let filter = logging::init(&self.log, self.log_format).map_err(Failure::Other)?;
        for warning in warning.into_iter().chain(room) {
            tracing::warn!("{warning}");
        }
        let tls = self.tls()?;
        let api = Listening::on(&self.listen, tls.clone()).await?;
        let numbers = match &self.metrics_listen {
            Some(address) => Some(Listening::on(address, None).await?),
            None => None,
        };
        let (stop, hang_ups) = (stop_signal(), signal(SignalKind::hangup())?);
        let (limits, drain_delay) = (self.limits(), self.drain_delay);
        let meters = if numbers.is_some() { Meters::on() } else { Meters::default() };
        let connections = ConnectionMetrics::of(&meters);
        let config = Config { listening_at: api.url.clone(), meters, ..self.config };
        let api = api.serve(&config, &limits, connections);
        let numbers = numbers.map(|on| {
            let limits = ServerLimits { connections: METRICS_CONNECTIONS, ..limits.clone() };
            on.serve(&config, &limits, ConnectionMetrics::none())
        });
        let (place, compact_first) = (data.to_owned(), self.compact_at_start);
        let runtime = Handle::current();
        let open = move || runtime.block_on(open(&place, config, compact_first));
        let mut stop = pin!(stop);
        let (app, first) = tokio::select! {
            opened = tokio::task::spawn_blocking(open) => opened.map_err(Error::internal)??,
            // As a kill would: the next start goes on from what is on disk.
            () = &mut stop => {
                tracing::info!("stopped before the data file was open");
                return Ok(ExitCode::SUCCESS);
            }
        };
        let control = Control::open(data)
            .map_err(|error| Failure::Other(format!("cannot open the control socket: {error}")))?;
        let mut beside = JoinSet::new();
        beside.spawn(control.serve(app.clone(), filter));
        beside.spawn(manager::watch(app.clone(), api.url.clone()));
        beside.spawn(read_again(hang_ups, tls.clone(), api.url.clone()));
        if let Some(tls) = tls {
            beside.spawn(tls.keep_fresh());
        }
        api.front.show(router(app.clone()));
        if let Some(numbers) = &numbers {
            numbers.front.show(router::numbers(app.clone()));
            tracing::info!(url = numbers.url, "serving the service's numbers at /metrics");
        }
        greet(data, &api.url, first.as_ref(), json);
        tracing::info!(url = api.url, data = %data.display(), "serving");
        manager::ready(&api.url);
        let served = api.until(stop, || drain(&app, drain_delay)).await;
        beside.shutdown().await;
        app.close().await;
        served?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    /// The certificate, where HTTPS is asked for.
    fn tls(&self) -> Result<Option<Arc<Tls>>, Failure> {
        let Some((certificate, key)) = self.tls_cert.clone().zip(self.tls_key.clone()) else {
            return Ok(None);
        };
        let tls = Tls::load(certificate, key).map_err(Failure::Other)?;
        Ok(Some(Arc::new(tls)))
    }

    fn limits(&self) -> ServerLimits {
        let each = self.connections_per_address.unwrap_or((self.connections / 4).max(LEAST_EACH));
        ServerLimits {
            connections: self.connections as usize,
            connections_per_address: each as usize,
            trusted_proxies: self.config.trusted_proxies.iter().copied().collect(),
            connection_age: self.connection_age,
            header_timeout: self.header_timeout,
            grace: self.grace,
            ..ServerLimits::default()
        }
    }
}

/// An address that is ours.
struct Listening {
    listener: TcpListener,
    /// What HTTPS is served with; without it, HTTP is.
    tls: Option<Arc<Tls>>,
    url: String,
}

impl Listening {
    async fn on(address: &str, tls: Option<Arc<Tls>>) -> Result<Self, Failure> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::Other(format!("cannot listen on {address}: {error}")))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        Ok(Self { listener, tls, url })
    }

    /// Serves at once, what there is to say before the data file is open.
    fn serve(
        self,
        config: &Config,
        limits: &ServerLimits,
        connections: ConnectionMetrics,
    ) -> Serving {
        let Self { listener, tls, url } = self;
        let front = Front::new(router::opening(config), connections);
        let (stop, stopped) = oneshot::channel::<()>();
        let (limits, shown) = (limits.clone(), front.clone());
        let task = tokio::spawn(async move {
            server::serve_by(tls, listener, shown, &limits, async { drop(stopped.await) }).await
        });
        Serving { front, url, stop, task }
    }
}

/// A server at work. It stops when this is dropped.
struct Serving {
    front: Front,
    url: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<io::Result<()>>,
}

impl Serving {
    /// Serves until `stop` is ready, and further until what `before` answers is; then lets requests under way finish.
    async fn until<D: Future<Output = ()>>(
        mut self,
        stop: impl Future<Output = ()>,
        before: impl FnOnce() -> D,
    ) -> io::Result<()> {
        tokio::select! {
            () = stop => {}
            ended = &mut self.task => return ended.map_err(io::Error::other)?,
        }
        before().await;
        drop(self.stop);
        self.task.await.map_err(io::Error::other)?
    }
}

/// Has the service manager and load balancers see that the service is about to stop.
async fn drain(app: &App, delay: Duration) {
    let again = stop_signal();
    tracing::info!("stopping");
    manager::stopping();
    app.drain();
    // A second signal ends the wait.
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = again => {}
    }
}

/// Connections that one client address may have open by default, however few all may have.
const LEAST_EACH: u32 = 16;

/// Connections to the listener of the metrics.
const METRICS_CONNECTIONS: usize = 64;

/// Descriptors besides those of the API's clients: files, the control socket's and the metrics' clients, the
/// runtime's own.
const OWN_DESCRIPTORS: u64 =
    64 + (METRICS_CONNECTIONS + 2 * EXTRA_SOCKETS + MAX_CONTROL_SOCKETS) as u64;

/// Lets the process open as many files as it may. Answers what to say where clients could take all of them.
fn raise_descriptors(connections: u32) -> Option<String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let open = if raised.is_ok() { maximum } else { current }?;
    let wanted = u64::from(connections) + OWN_DESCRIPTORS;
    (open < wanted).then(|| {
        format!("{open} files may be open at once (ulimit -n), which clients can take: use --connections {}", open.saturating_sub(OWN_DESCRIPTORS))
    })
}

/// Compacts the file where more than half of it is dead space. Where that fails, the file is served as it is.
async fn compact(store: &Store) {
    let outcome = async {
        let Space { bytes, dead } = store.space().await?;
        if dead <= bytes / 2 {
            tracing::info!(bytes, dead, "the data file has little dead space and is not compacted");
            return Ok(());
        }
        tracing::info!(bytes, dead, "more than half of the data file is dead space; compacting it");
        let Compacted { bytes, .. } = store.compact(&Progress::unheard()).await?;
        tracing::info!(bytes, "the data file is compacted");
        Ok::<_, Error>(())
    };
    if let Err(error) = outcome.await {
        tracing::error!(%error, "the data file was not compacted");
    }
}

/// Reads the certificate again whenever the process is told to by SIGHUP.
async fn read_again(mut hang_ups: Signal, tls: Option<Arc<Tls>>, url: String) {
    while hang_ups.recv().await.is_some() {
        manager::reloading();
        if let Some(tls) = tls.clone() {
            tls.reload().await;
        }
        manager::ready(&url);
    }
}

/// Opens the data file, or makes it where there is none.
async fn open(
    data: &Path,
    config: Config,
    compact_first: bool,
) -> Result<(App, Option<FirstRun>), Failure> {
    match Store::open(data, config.page_cache) {
        Ok(store) => {
            if compact_first {
                compact(&store).await;
            }
            return Ok((App::new(store, config)?, None));
        }
        Err(OpenError::Missing(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let key_file = (!std::io::stdout().is_terminal()).then(|| beside(data, "first-key"));
    let created =
        bootstrap::create_telling(
            data,
            config.clone(),
            &First::default(),
            |made| match &key_file {
                Some(path) => write_key(path, &made.api_key),
                None => Ok(()),
            },
        );
    match created {
        Ok((app, made)) => Ok((app, Some(FirstRun { made, key_file }))),
        // Another first start was quicker; from here on it is that one's file.
        Err(OpenError::Exists(_)) => {
            let store = Store::open(data, config.page_cache)?;
            Ok((App::new(store, config)?, None))
        }
        Err(error) => Err(error.into()),
    }
}

/// The key is on disk before the file that it opens appears.
fn write_key(path: &Path, key: &str) -> Result<(), OpenError> {
    let write = || -> std::io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        writeln!(file, "{key}")?;
        // The name of it too: nobody could open what appears next.
        file.sync_all()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|cause| OpenError::Io { doing: "write", path: path.to_owned(), cause })
}
