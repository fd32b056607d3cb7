//! `steward test`.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::base::secret::{Seed, SeedSource};
use crate::base::time::{Hand, Timestamp};
use crate::config::{
    Config, INVALID_CONFIGURATION, data_place, file_path, output_path, parse_listen,
};
use crate::http::logging::{self, LogFormat};
use crate::http::server::ServerLimits;
use crate::metrics::{Metrics, Series};
use crate::store::{OpenError, folder_of};
use crate::test_server::{
    Ready, Signals, Stage, Start, TestCommand, become_command, parent_gone, router, stdin_closed,
};

use super::Failure;
use super::failure::{complain, write_err, write_out};
use super::serve::BoundListener;

/// The time that open requests have at the end.
const GRACE: Duration = Duration::from_secs(1);

#[derive(Args)]
#[command(
    after_help = "Without --from, each run has the same organization, project 1, owner and member, and keys for both. They are \
    valid only in steward test.\n\nExample: steward test -- go test ./..."
)]
pub(super) struct Test {
    /// Start from a backup or an export, instead of a small new workspace. The file does not change. Its owner gets a key.
    #[arg(long, value_name = "FILE", value_parser = file_path())]
    from: Option<PathBuf>,

    /// The address to listen on, of this machine only. Port 0 selects a free port, which is printed.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = parse_listen)]
    listen: String,

    /// End when stdin is closed, as it is when the process that started this one ends.
    #[arg(long, conflicts_with = "command")]
    until_stdin_closes: bool,

    /// Draw all ids, tokens and keys from this number, so that the same requests get the same answers. Without a number, draw
    /// one.
    #[arg(long, value_name = "N", num_args = 0..=1, default_value = "0", default_missing_value = DRAWN)]
    random: String,

    /// Start the clock at this time, and let it stand. By default it is the clock of the machine.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Timestamp>,

    /// Refuse fields and parameters that an operation does not know, which are ignored otherwise.
    #[arg(long)]
    strict: bool,

    /// At the end, write the data to a new data file, to look at it with serve and console. No key of the run is valid in it.
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    keep: Option<PathBuf>,

    /// The log filter, as in `steward serve --log`.
    #[arg(long, value_name = "LEVEL", default_value = "warn", value_parser = logging::validate_filter)]
    log: String,

    /// Become the command of the server with this process id.
    #[arg(long, value_name = "PID", hide = true)]
    r#become: Option<u32>,

    #[command(flatten)]
    settings: TestSettings,

    /// The command to run, with variables that name the server. Its exit code is that of steward test.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The value of `--random` without a number.
const DRAWN: &str = "drawn";

fn parse_time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "write a time such as 2026-01-31T12:00:00Z".to_owned())
}

/// The settings of `serve` that a test run has, too. Variables and configuration files do not set them: a run is the same
/// everywhere.
struct TestSettings(Config);

/// Flags that `test` refuses, by their ids, with the reason.
const REFUSED: [(&[&str], &str); 7] = [
    (
        &["data", "copy", "data_ca", "node"],
        "steward test keeps its workspace in memory; --from FILE starts from a backup or an export of another one",
    ),
    (&["config"], "steward test reads no configuration file: a run is the same everywhere"),
    (
        &["smtp_url", "smtp_from", "smtp_password_file", "smtp_ca_file", "smtp_timeout"],
        "steward test sends no mail; /_test/mails/ has what would leave",
    ),
    (
        &["dns_resolvers", "dns_timeout"],
        "steward test asks no name server; /_test/dns/ sets what look-ups find",
    ),
    (&["tls_cert", "tls_key"], "steward test serves plain HTTP, on loopback only"),
    (
        &["backup_dir", "backup_every", "backup_keep"],
        "steward test writes no backups; --keep FILE keeps the data of a run",
    ),
    (&["scrub", "page_cache", "disk_reserve"], "steward test has no data file"),
];

/// Declares a flag of other commands, which this one refuses. The help of this command then leaves it out, also if all others
/// have it.
fn path_flag(id: &'static str, name: &'static str) -> Arg {
    Arg::new(id).long(name).value_parser(file_path())
}

impl Args for TestSettings {
    fn augment_args(command: Command) -> Command {
        let refused =
            |flag: &Arg| REFUSED.iter().any(|(ids, _)| ids.contains(&flag.get_id().as_str()));
        let data = Arg::new("data").long("data").value_parser(data_place());
        let same = ["copy", "config"].map(|name| path_flag(name, name));
        let others = [("data_ca", "data-ca"), ("tls_cert", "tls-cert"), ("tls_key", "tls-key")];
        let paths = same.into_iter().chain(others.map(|(id, name)| path_flag(id, name)));
        let node = Arg::new("node").long("node");
        Config::augment_args(command).args(paths).args([data, node]).mut_args(|flag| {
            let flag = flag.env(Resettable::Reset);
            let is_refused = refused(&flag);
            flag.hide(is_refused)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for TestSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_typed = |id: &&&str| {
            matches.try_contains_id(id).is_ok()
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        };
        for (ids, why) in REFUSED {
            if let Some(id) = ids.iter().find(is_typed) {
                let text = format!("--{}: {why}\n", id.replace('_', "-"));
                return Err(clap::Error::raw(ErrorKind::ArgumentConflict, text));
            }
        }
        Config::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Test {
    /// Serves until the command ends, or until a stop signal, the end of stdin or of the process that started this one.
    pub(super) async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        if let Some(server) = self.r#become {
            let (text, code) = become_command(server, &self.command);
            complain(&text);
            return Ok(ExitCode::from(code));
        }
        let (orphaned, mut signals) = (parent_gone(), Signals::listen()?);
        self.require_usable()?;
        let dropped = Metrics::default().counter(Series::LOG_LINES_DROPPED, &[]);
        let (_, _log) =
            logging::init(&self.log, LogFormat::Auto, dropped).map_err(Failure::Usage)?;
        let random = self.number()?;
        let listener = BoundListener::bind(&self.listen, None).await?;
        let mut config = Config {
            listen_url: listener.url.clone(),
            seeds: SeedSource::numbered(random),
            ..self.settings.0
        };
        if config.console_mail_login {
            config.public_url.get_or_insert_with(|| listener.url.clone());
        }
        let limits = ServerLimits {
            trusted_proxies: config.trusted_proxies.iter().copied().collect(),
            grace: GRACE,
            ..ServerLimits::default()
        };
        let server = listener.serve(&config, &limits, &config.metrics);
        let hand = self.now.map_or(Hand::Runs(0), Hand::Stands);
        let start = Start { hand, is_strict: self.strict };
        let (stage, workspace) = match self.from.as_deref() {
            Some(from) => Stage::load(config, start, from).await.map_err(of_file)?,
            None => Stage::create(config, start).await?,
        };
        let ready = Ready::new(&server.url, random, &workspace);
        server.router.replace(router(stage.clone(), ready.clone()));
        let now = stage.app().await.now();
        let text = if json { ready.to_line(now) } else { ready.to_text() };
        let command = if self.command.is_empty() {
            write_out(text.as_bytes()).map_err(|error| Failure::unwritten(&error))?;
            None
        } else {
            write_err(&text);
            for name in ready.overridden() {
                complain(&format!("{name} has another value for the command than outside of it"));
            }
            Some(TestCommand::start(&self.command, ready.variables())?)
        };
        let closed = self.until_stdin_closes.then(stdin_closed).transpose()?;
        let (mut code, mut orphaned) = (0, pin!(orphaned));
        let stop = async {
            if let Some(command) = command {
                code = command.finish(&mut signals, orphaned.as_mut()).await;
                return;
            }
            tokio::select! {
                _ = signals.next() => {}
                () = orphaned => {}
                () = resolved(closed) => {}
            }
        };
        // If the server fails, this ends the command.
        server.run_until(stop, async {}).await?;
        if let Some(keep) = self.keep {
            stage.keep(keep).await?;
        }
        stage.app().await.close().await;
        Ok(ExitCode::from(code))
    }

    /// Checks the flags that depend on more than their text.
    fn require_usable(&self) -> Result<(), Failure> {
        require_loopback(&self.listen)?;
        let config = &self.settings.0;
        if config.console_mail_login && !config.console.is_on() {
            return Err(Failure::Usage("--console-mail-login needs --console on".to_owned()));
        }
        let Some(keep) = &self.keep else { return Ok(()) };
        if keep.symlink_metadata().is_ok() {
            return Err(Failure::Usage(format!("--keep: {} exists", keep.display())));
        }
        let folder = folder_of(keep);
        if folder.is_dir() {
            return Ok(());
        }
        Err(Failure::Usage(format!("--keep: there is no folder {}", folder.display())))
    }

    /// Returns the number that everything random is drawn from.
    fn number(&self) -> Result<u64, Failure> {
        if self.random == DRAWN {
            let drawn = Seed::generate().rng().bytes();
            return Ok(drawn.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
        let text = "--random: write a number from 0 to 18446744073709551615";
        self.random.parse().map_err(|_| Failure::Usage(text.to_owned()))
    }
}

/// Waits for a future, forever if there is none.
async fn resolved(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Names the flag of a file that cannot be used.
fn of_file(error: OpenError) -> Failure {
    match &error {
        OpenError::Refused(why) if why.code() == INVALID_CONFIGURATION => error.into(),
        _ => Failure::Usage(format!("--from: {error}")),
    }
}

/// Fails if another machine could reach the address.
fn require_loopback(listen: &str) -> Result<(), Failure> {
    let addresses = listen
        .to_socket_addrs()
        .map_err(|error| Failure::Usage(format!("--listen: cannot look up {listen}: {error}")))?;
    let addresses: Vec<SocketAddr> = addresses.collect();
    if addresses.iter().all(|address| address.ip().is_loopback()) {
        return Ok(());
    }
    let text = "steward test serves this machine only, because everybody knows its keys; use an address such as 127.0.0.1:0";
    Err(Failure::Usage(format!("--listen {listen}: {text}")))
}
