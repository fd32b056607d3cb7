//! `steward serve`.

use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;

use crate::bootstrap::{self, First, Made};
use crate::config::{Config, DEFAULT_LISTEN, duration};
use crate::http::logging::{self, Format};
use crate::http::server::{self, ServerLimits, stop_signal};
use crate::router::router;
use crate::state::App;
use crate::store::{OpenError, Store, beside};

use super::Failure;
use super::control::Control;

#[derive(Args)]
#[command(
    after_help = "Without a data file, one is made with a first organization, project, owner and key. \
    The key is printed once with a line to try it; where stdout is no terminal it is written to FILE.first-key \
    instead.\n\nStop with Ctrl-C or SIGTERM: requests under way are finished and the file is closed clean."
)]
pub(super) struct Serve {
    /// Where to listen; port 0 takes a free one and prints it.
    #[arg(long, env = "STEWARD_LISTEN", value_name = "ADDR", default_value = DEFAULT_LISTEN)]
    listen: String,

    /// What to log: error, warn, info, debug (a line for each request) or trace.
    #[arg(long, env = "STEWARD_LOG", value_name = "LEVEL", default_value = "info")]
    log: String,

    /// How to log: text, json, or auto for text on a terminal and JSON lines elsewhere.
    #[arg(long, env = "STEWARD_LOG_FORMAT", value_name = "FORMAT", default_value_t = Format::Auto)]
    log_format: Format,

    /// How many connections may be open at once; more wait.
    #[arg(long, env = "STEWARD_CONNECTIONS", value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,

    /// How long a client may take to send a request's head; also ends idle connections.
    #[arg(long, env = "STEWARD_HEADER_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = duration)]
    header_timeout: Duration,

    /// How long requests under way may take after a stop signal.
    #[arg(long, env = "STEWARD_GRACE", value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    grace: Duration,

    #[command(flatten)]
    config: Config,
}

impl Serve {
    pub(super) async fn run(self, data: &Path, json: bool) -> Result<ExitCode, Failure> {
        logging::init(&self.log, self.log_format).map_err(Failure::Other)?;
        let listener = TcpListener::bind(&self.listen).await.map_err(|error| {
            Failure::Other(format!("cannot listen on {}: {error}", self.listen))
        })?;
        let url = format!("http://{}", listener.local_addr()?);
        let stop = stop_signal();
        let config = Config { listening_at: url.clone(), ..self.config };
        let (app, first) = open(data, config)?;
        let control = Control::open(data)
            .map_err(|error| Failure::Other(format!("cannot open the control socket: {error}")))?;
        greet(data, &url, first.as_ref(), json);
        let control = tokio::spawn(control.serve(app.clone()));
        let limits = ServerLimits {
            connections: self.connections as usize,
            header_timeout: self.header_timeout,
            grace: self.grace,
            ..ServerLimits::default()
        };
        tracing::info!(url, data = %data.display(), "serving");
        let served = server::serve(listener, router(app.clone()), &limits, stop).await;
        tracing::info!("stopping");
        control.abort();
        let _ = control.await;
        app.close().await;
        served?;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// What a first run made, and where its key was written, if it was.
struct FirstRun {
    made: Made,
    key_file: Option<PathBuf>,
}

/// Opens the data file, or makes it where there is none.
fn open(data: &Path, config: Config) -> Result<(App, Option<FirstRun>), Failure> {
    match Store::open(data, config.page_cache) {
        Ok(store) => return Ok((App::new(store, config)?, None)),
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

/// Tells where the service is, and on a first run how to get in. A closed stdout is nobody's fault.
fn greet(data: &Path, url: &str, first: Option<&FirstRun>, json: bool) {
    let text = if json { greeting_json(data, url, first) } else { greeting(data, url, first) };
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

fn greeting_json(data: &Path, url: &str, first: Option<&FirstRun>) -> String {
    let key_file = first.and_then(|first| first.key_file.as_deref());
    let printed = first.filter(|first| first.key_file.is_none());
    let greeting = json!({
        "url": url,
        "data": data.display().to_string(),
        "organization_id": first.map(|first| first.made.organization_id),
        "project_id": first.map(|first| first.made.project_id),
        "api_key": printed.map(|first| &first.made.api_key),
        "api_key_file": key_file.map(|path| path.display().to_string()),
    });
    format!("{greeting}\n")
}

fn greeting(data: &Path, url: &str, first: Option<&FirstRun>) -> String {
    let serving = format!("Steward is serving {url} from {}\n", data.display());
    let Some(FirstRun { made, key_file }) = first else { return serving };
    let try_it = |key: &str| {
        format!(
            "Try it:\n\n  curl -H \"Authorization: Bearer {key}\" {url}/api/projects/{}/dashboards/\n\n",
            made.project_id
        )
    };
    let key = if let Some(path) = key_file {
        let path = &path.display().to_string();
        format!("Its first key is in {path}. {}", try_it(&format!("$(cat {})", shell_word(path))))
    } else {
        let key = &made.api_key;
        format!("Its first key, shown only this once:\n\n  {key}\n\n{}", try_it(key))
    };
    format!("Made a new workspace in {}.\n{key}{serving}", data.display())
}

/// `text` as a shell reads one word.
fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
