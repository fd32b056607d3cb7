//! `steward serve`.

use std::future::Future;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::app::App;
use crate::base::error::Error;
use crate::base::tasks::{run_blocking, run_to_end};
use crate::config::{Config, DEFAULT_LISTEN, file_path, parse_duration, parse_listen};
use crate::http::logging::{self, LogFormat};
use crate::http::server::{self, EXTRA_SOCKETS, ServerLimits, stop_signal};
use crate::http::swappable_router::SwappableRouter;
use crate::http::tls::Tls;
use crate::metrics::{Metrics, Series};
use crate::router::{self, router};
use crate::store::{Cell, Place};

use super::control::{Control, MAX_CONTROL_SOCKETS};
use super::open::{Opening, open_or_create, print_startup};
use super::{Failure, systemd};

#[derive(Args)]
#[command(
    after_help = "If there is no data file, serve creates one with a first organization, project, owner and API key. \
    With --found it does so in an empty shared database. It prints the key once, with a command to try it. If stdout is not \
    a terminal, it writes the key to FILE.first-key instead.\n\nStop the server with Ctrl-C or SIGTERM: it finishes open requests and \
    closes the file. SIGHUP reloads the certificate; without one, closing the terminal stops the server."
)]
pub(super) struct Serve {
    /// The address to listen on. Port 0 selects a free port, which is printed.
    #[arg(long, env = "STEWARD_LISTEN", value_name = "ADDR", default_value = DEFAULT_LISTEN, value_parser = parse_listen)]
    listen: String,

    /// The address of the metrics, which Prometheus reads at /metrics. They need no API key: anyone who can reach the
    /// address can read them. By default there are no metrics.
    #[arg(long, env = "STEWARD_METRICS_LISTEN", value_name = "ADDR", value_parser = parse_listen)]
    metrics_listen: Option<String>,

    /// The log filter: error, warn, info, debug or trace; info,request=debug adds a line for each request.
    /// `steward log` changes it while the server runs.
    #[arg(long, env = "STEWARD_LOG", value_name = "LEVEL", default_value = "info", value_parser = logging::validate_filter)]
    log: String,

    /// The log format: text, json, or auto for text on a terminal and JSON lines otherwise.
    #[arg(long, env = "STEWARD_LOG_FORMAT", value_name = "FORMAT", default_value_t = LogFormat::Auto)]
    log_format: LogFormat,

    /// The maximum number of open connections. At the limit, a new connection replaces an idle one, or is rejected if
    /// none is idle. Loopback addresses have 16 more.
    #[arg(long, env = "STEWARD_CONNECTIONS", value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// The maximum number of open connections of one client address. An IPv6 network of 64 bits counts as one
    /// address. Trusted proxies have no limit. By default a quarter of --connections, at least 16.
    #[arg(long, env = "STEWARD_CONNECTIONS_PER_ADDRESS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_address: Option<u32>,

    /// The maximum age of a connection. The first response after it closes the connection.
    #[arg(long, env = "STEWARD_CONNECTION_AGE", value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    connection_age: Duration,

    /// The time limit for receiving a request's headers. It also closes idle connections.
    #[arg(long, env = "STEWARD_HEADER_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = parse_duration)]
    header_timeout: Duration,

    /// How long open requests may take after a stop signal.
    #[arg(long, env = "STEWARD_GRACE", value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    grace: Duration,

    /// Before serving, compact the data file if more than half of it is unused space.
    #[arg(long, env = "STEWARD_COMPACT_AT_START", value_parser = FalseyValueParser::new())]
    compact_at_start: bool,

    /// The number of this installation among several that organizations move between, 0 to 20. Each creates ids of its
    /// own range. New data gets this number, by default 0; the server refuses data with another number.
    #[arg(long, env = "STEWARD_CELL", value_name = "N")]
    cell: Option<Cell>,

    /// Found a workspace if the shared database holds none. Pass it once, to the first node: `steward init` does the same
    /// without serving. A data file needs no such flag.
    #[arg(long, env = "STEWARD_FOUND", value_parser = FalseyValueParser::new())]
    found: bool,

    /// How long to serve after a stop signal while /_readyz answers 503, so that load balancers notice.
    #[arg(long, env = "STEWARD_DRAIN_DELAY", value_name = "TIME", default_value = "0s", value_parser = humantime::parse_duration)]
    drain_delay: Duration,

    /// A PEM file with the certificate for HTTPS, followed by the certificates up to its root. Without it the server
    /// speaks HTTP. Both TLS files are reloaded when they change, and on SIGHUP.
    #[arg(long, env = "STEWARD_TLS_CERT", value_name = "FILE", value_parser = file_path(), requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// A PEM file with the certificate's private key, unencrypted.
    #[arg(long, env = "STEWARD_TLS_KEY", value_name = "FILE", value_parser = file_path(), requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    #[command(flatten)]
    config: Config,
}

impl Serve {
    /// Serves until a stop signal. Logs `warning` first.
    pub(super) async fn run(
        self,
        place: &Place,
        json: bool,
        warning: Option<String>,
    ) -> Result<ExitCode, Failure> {
        let few_descriptors = raise_descriptor_limit(self.connections);
        let has_metrics = self.metrics_listen.is_some();
        let metrics = if has_metrics { Metrics::enabled() } else { Metrics::default() };
        let dropped = metrics.counter(Series::LOG_LINES_DROPPED, &[]);
        let (filter, _log) =
            logging::init(&self.log, self.log_format, dropped).map_err(Failure::Usage)?;
        // The usual hook would wait for the reader of stderr.
        std::panic::set_hook(Box::new(|panic| tracing::error!(%panic, "a thread panicked")));
        for warning in warning.into_iter().chain(few_descriptors) {
            tracing::warn!("{warning}");
        }
        let tls = self.tls()?;
        let api = BoundListener::bind(&self.listen, tls.clone()).await?;
        let numbers = match &self.metrics_listen {
            Some(address) => Some(BoundListener::bind(address, None).await?),
            None => None,
        };
        let (stop, hang_ups) = (stop_signal(), signal(SignalKind::hangup())?);
        let (closing, reloads) = match &tls {
            None if is_on_terminal() => (Some(hang_ups), None),
            _ => (None, Some(hang_ups)),
        };
        let stop = stop_or_closed(stop, closing);
        let (limits, drain_delay) = (self.limits(), self.drain_delay);
        let config = Config { listen_url: api.url.clone(), metrics, ..self.config };
        let api = api.serve(&config, &limits, &config.metrics);
        let numbers = numbers.map(|on| {
            let limits = ServerLimits { connections: METRICS_CONNECTIONS, ..limits.clone() };
            on.serve(&config, &limits, &Metrics::default())
        });
        let (compact_first, cell, may_create_workspace) =
            (self.compact_at_start, self.cell, self.found);
        let (opening, how) = (place.clone(), Opening { compact_first, cell, may_create_workspace });
        let runtime = Handle::current();
        let open = move || runtime.block_on(open_or_create(&opening, config, how));
        let mut stop = pin!(stop);
        let (app, first) = tokio::select! {
            opened = run_blocking(open) => opened??,
            // Exits as after a kill: the next start recovers the file from disk.
            () = &mut stop => {
                tracing::info!("stopped before the data file was open");
                return Ok(ExitCode::SUCCESS);
            }
        };
        let control = Control::open(place.file())
            .map_err(|error| Failure::Other(format!("cannot open the control socket: {error}")))?;
        let mut beside = JoinSet::new();
        beside.spawn(control.serve(app.clone(), filter).boxed());
        beside.spawn(systemd::feed_watchdog(app.clone(), api.url.clone()).boxed());
        if let Some(reloads) = reloads {
            beside.spawn(reload_on_hangup(reloads, tls.clone(), api.url.clone()).boxed());
        }
        if let Some(tls) = tls {
            beside.spawn(tls.watch_files().boxed());
        }
        api.router.replace(router(app.clone()));
        if let Some(numbers) = &numbers {
            numbers.router.replace(router::metrics(app.clone()));
            tracing::info!(url = numbers.url, "serving metrics at /metrics");
        }
        print_startup(place, &api.url, first.as_ref(), json);
        tracing::info!(url = api.url, data = %place, "serving");
        systemd::notify_ready(&api.url);
        let served = api.run_until(stop, drain(&app, drain_delay)).await;
        beside.shutdown().await;
        app.close().await;
        served?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    /// Loads the certificate, if HTTPS is configured.
    fn tls(&self) -> Result<Option<Arc<Tls>>, Failure> {
        let Some((certificate, key)) = self.tls_cert.clone().zip(self.tls_key.clone()) else {
            return Ok(None);
        };
        let wrong = |why| Failure::Usage(format!("cannot use --tls-cert and --tls-key: {why}"));
        Ok(Some(Arc::new(Tls::load(certificate, key).map_err(wrong)?)))
    }

    fn limits(&self) -> ServerLimits {
        let each =
            self.connections_per_address.unwrap_or((self.connections / 4).max(MIN_PER_ADDRESS));
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

/// An open listener.
pub(super) struct BoundListener {
    listener: TcpListener,
    /// The certificate for HTTPS; without it, the server speaks HTTP.
    tls: Option<Arc<Tls>>,
    pub(super) url: String,
}

impl BoundListener {
    pub(super) async fn bind(address: &str, tls: Option<Arc<Tls>>) -> Result<Self, Failure> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| Failure::Other(format!("cannot listen on {address}: {error}")))?;
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr()?);
        Ok(Self { listener, tls, url })
    }

    /// Starts the server. Until the data file is open, it answers with [`router::startup`].
    pub(super) fn serve(
        self,
        config: &Config,
        limits: &ServerLimits,
        metrics: &Metrics,
    ) -> RunningServer {
        let Self { listener, tls, url } = self;
        let front = SwappableRouter::new(router::startup(config), metrics);
        let (stop, stopped) = oneshot::channel::<()>();
        let (limits, shown) = (limits.clone(), front.clone());
        let task = run_to_end(async move {
            server::serve_with_tls(tls, listener, shown, &limits, async { drop(stopped.await) })
                .await
        });
        RunningServer { router: front, url, stop, task: task.boxed() }
    }
}

/// A running server. It stops when this is dropped.
pub(super) struct RunningServer {
    pub(super) router: SwappableRouter,
    pub(super) url: String,
    stop: oneshot::Sender<()>,
    task: BoxFuture<'static, Result<io::Result<()>, Error>>,
}

impl RunningServer {
    /// Serves until `stop` resolves, and then until `drained` does. Then finishes open requests.
    pub(super) async fn run_until(
        mut self,
        stop: impl Future<Output = ()>,
        drained: impl Future<Output = ()>,
    ) -> io::Result<()> {
        tokio::select! {
            () = stop => {}
            ended = &mut self.task => return ended.map_err(io::Error::other)?,
        }
        drained.await;
        drop(self.stop);
        self.task.await.map_err(io::Error::other)?
    }
}

/// Announces the stop to the service manager and to load balancers, and waits for `delay`.
async fn drain(app: &App, delay: Duration) {
    let again = stop_signal();
    tracing::info!("stopping");
    systemd::notify_stopping();
    app.drain();
    // A second stop signal ends the wait.
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = again => {}
    }
}

/// The minimum default for the connections of one client address.
const MIN_PER_ADDRESS: u32 = 16;

/// The maximum number of connections to the metrics.
const METRICS_CONNECTIONS: usize = 64;

/// The file descriptors that clients of the API do not use: files, the control socket, clients of the metrics, and
/// those of the runtime.
const RESERVED_DESCRIPTORS: u64 =
    64 + (METRICS_CONNECTIONS + 2 * EXTRA_SOCKETS + MAX_CONTROL_SOCKETS) as u64;

/// Raises the process's limit of open files to the maximum. Returns a warning if clients could use all of them.
fn raise_descriptor_limit(connections: u32) -> Option<String> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let open = if raised.is_ok() { maximum } else { current }?;
    let wanted = u64::from(connections) + RESERVED_DESCRIPTORS;
    (open < wanted).then(|| {
        let way_out = match open.saturating_sub(RESERVED_DESCRIPTORS) {
            0 => format!("raise the limit to at least {}", RESERVED_DESCRIPTORS + 1),
            fitting => format!("raise the limit to {wanted}, or use --connections {fitting}"),
        };
        format!("clients can use all of the {open} files that may be open at once (ulimit -n): {way_out}")
    })
}

/// Whether the server ends with its terminal.
fn is_on_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

/// Waits for a stop signal, or until the terminal of the server is closed.
async fn stop_or_closed(stop: impl Future<Output = ()>, closing: Option<Signal>) {
    let closed = async {
        match closing {
            Some(mut hang_ups) => drop(hang_ups.recv().await),
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stop => {}
        () = closed => {}
    }
}

/// Reloads the certificate on SIGHUP.
async fn reload_on_hangup(mut hang_ups: Signal, tls: Option<Arc<Tls>>, url: String) {
    while hang_ups.recv().await.is_some() {
        systemd::notify_reloading();
        if let Some(tls) = tls.clone() {
            tls.reload(true).await;
        }
        systemd::notify_ready(&url);
    }
}
