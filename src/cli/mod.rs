//! The command line.

mod bar;
mod commands;
mod config_file;
mod control;
mod effective;
mod greeting;
mod manager;
mod manual;
mod output;
mod serve;
mod settings;
mod upkeep;
mod watch;

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::bootstrap::{self, First};
use crate::config::Config;
use crate::error::Error;
use crate::operator::{Operation, perform};
use crate::state::App;
use crate::store::{OpenError, Store, resolve};

use bar::bar;
use commands::{
    InviteCommand, KeyCommand, MailCommand, OrganizationCommand, SecretsCommand, UserCommand,
};
use manual::{Completions, Manual};
use settings::{Asked, Setting, Unclear};

/// The admin API of an analytics workspace, served from one binary and one data file.
///
/// Start with `steward serve`: it makes the data file where there is none, and tells the first key.
#[derive(Parser)]
#[command(name = "steward", version, propagate_version = true)]
#[command(
    after_help = "Every command but serve, init and import works beside a running server, which then does it; all but log and healthcheck without one too: \
    `steward user list` in the folder where `steward serve` runs."
)]
struct Cli {
    /// The data file.
    #[arg(
        long,
        global = true,
        env = "STEWARD_DATA",
        value_name = "FILE",
        default_value = "steward.redb"
    )]
    data: PathBuf,

    /// Print one JSON object instead of text.
    #[arg(long, global = true, env = "STEWARD_JSON", value_parser = FalseyValueParser::new())]
    json: bool,

    /// A file that says what flags do not, in TOML: `listen = "127.0.0.1:8000"`. Its keys are the flags of
    /// serve; flags and the environment overrule it.
    #[arg(long, global = true, env = "STEWARD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API; make the data file first where there is none.
    Serve(Box<serve::Serve>),
    /// Make a data file with a first organization, project, owner and key, without serving it.
    Init(Init),
    /// Make and list organizations.
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Make, list, stop and restart users.
    #[command(subcommand)]
    User(UserCommand),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Tell how invites are accepted.
    #[command(subcommand)]
    Invite(InviteCommand),
    /// Test how mail is sent.
    #[command(subcommand)]
    Mail(MailCommand),
    /// Print how serve would run with these flags, this environment and this file, and where each setting comes
    /// from. What is printed is a configuration file; secrets are masked.
    #[command(after_help = "Defaults are printed as comments, so that they stay defaults.")]
    Config(Box<serve::Serve>),
    /// Print what completes commands and flags in a shell.
    #[command(after_help = "For bash: steward completions bash > /etc/bash_completion.d/steward")]
    Completions(Completions),
    /// Print the manual pages of all commands, or write them into a folder.
    #[command(after_help = "Read them at once: steward man | man -l -")]
    Man(Manual),
    /// Check the data file: checksums, indexes, counts, references and structure.
    Check,
    /// Give the data file's dead space back. A running server answers 503 for as long as it takes.
    Compact,
    /// Tell whether the server of this data file takes writes: exit code 0 when it does, 1 when it does not or none
    /// runs.
    Healthcheck,
    /// Change what the running server logs.
    Log {
        /// What to log, in the words of `steward serve --log`: debug, or info,request=debug for a line for each
        /// request.
        level: String,
    },
    /// Write a backup: the state of this moment, checked, in a new file.
    Backup {
        /// The file to make, which must not be there yet.
        file: PathBuf,
    },
    /// Write everything as lines of JSON, without secrets unless they are asked for.
    Export {
        /// Write secrets too: hashes of API keys, secrets of batch exports, the signing secret. The export is a
        /// credential then.
        #[arg(long)]
        secrets: bool,
        /// The file to make, which must not be there yet; stdout by default.
        file: Option<PathBuf>,
    },
    /// Make a new data file of an export. Where that holds no secrets, API keys have to be made anew.
    Import {
        /// The export; `-` for stdin.
        file: PathBuf,
    },
    /// Renew the signing secret.
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Put a backup in the place of the data file. It is checked first, and the file that was there is kept beside
    /// it. A running server goes on with the backup.
    Restore {
        /// The backup.
        file: PathBuf,
    },
}

#[derive(clap::Args)]
struct Init {
    /// The owner's e-mail address.
    #[arg(long)]
    email: String,
    /// The organization's name.
    #[arg(long, value_name = "NAME", default_value = "My organization")]
    organization: String,
    /// The project's name.
    #[arg(long, value_name = "NAME", default_value = "Default project")]
    project: String,
    /// The owner's given name.
    #[arg(long, value_name = "N", default_value = "")]
    first_name: String,
}

/// Why a command failed, in one line.
enum Failure {
    Open(OpenError),
    Refused(Error),
    Other(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Open(error) => error.fmt(f),
            Self::Refused(error) => error.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Other(error.to_string())
    }
}

/// The exit code where it makes no sense how the process is asked to run: trying again does not help.
const MAKES_NO_SENSE: u8 = 2;

/// Parses the command line and does what it says. 0: done; 1: refused or failed, with one line on
/// stderr; 2: the command line or the configuration file makes no sense.
pub fn main() -> ExitCode {
    let asked = match settings::read(std::env::args_os().collect()) {
        Ok(asked) => asked,
        Err(Unclear::Line(error)) => error.exit(),
        Err(Unclear::File(text)) => {
            eprintln!("steward: {text}");
            return ExitCode::from(MAKES_NO_SENSE);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(asked));
            // Only a file that is still being opened when the process is told to stop is not waited for.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("steward: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(asked: Asked) -> Result<ExitCode, Failure> {
    let Asked { cli: Cli { data, json, config: file, command }, settings, warning } = asked;
    if let (Some(warning), false) = (&warning, matches!(command, Command::Serve(_))) {
        eprintln!("steward: {warning}");
    }
    // What lies beside the file, and takes its place, is beside the file that a link leads to.
    let data = resolve(&data);
    let mut config = Config::default();
    let operation = match command {
        Command::Serve(serve) => return serve.run(&data, json, warning).await,
        Command::Config(_) => {
            show(&settings, file.as_deref(), json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Completions(completions) => {
            output::print_bytes(&completions.script());
            return Ok(ExitCode::SUCCESS);
        }
        Command::Man(manual) => return show_manual(manual.folder.as_deref(), json),
        Command::Init(init) => {
            output::print(&init.run(&data).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Organization(command) => command.operation(),
        Command::User(command) => command.operation(),
        Command::Key(command) => command.operation(),
        Command::Invite(InviteCommand::Link { id, public_url }) => {
            config.public_url = public_url;
            Operation::InviteLink { id }
        }
        Command::Mail(MailCommand::Test { to, mail }) => {
            config.mail = mail;
            Operation::MailTest { to }
        }
        Command::Check => Operation::Check,
        Command::Compact => Operation::Compact,
        Command::Healthcheck => {
            output::print(&watch::healthcheck(&data).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Log { level } => {
            output::print(&watch::log(&data, level).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Backup { file } => {
            output::print(&upkeep::backup(&data, file).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Export { secrets, file } => {
            if let Some(exported) = upkeep::export(&data, secrets, file).await? {
                output::print(&exported, json);
            }
            return Ok(ExitCode::SUCCESS);
        }
        Command::Import { file } => {
            output::print(&upkeep::import(data, file).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
        Command::Secrets(SecretsCommand::Rotate) => Operation::SecretsRotate,
        Command::Restore { file } => {
            output::print(&upkeep::restore(&data, file).await?, json);
            return Ok(ExitCode::SUCCESS);
        }
    };
    let answer = operate(&data, operation, config).await?;
    output::print(&answer, json);
    let problems = answer.get("problem_count").and_then(Value::as_u64).unwrap_or(0);
    Ok(if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints how serve would run.
fn show(settings: &[Setting], file: Option<&Path>, json: bool) {
    if json {
        output::print(&effective::as_json(settings), true);
    } else {
        output::print_bytes(effective::as_toml(settings, file).as_bytes());
    }
}

fn show_manual(folder: Option<&Path>, json: bool) -> Result<ExitCode, Failure> {
    let pages = manual::pages()?;
    let Some(folder) = folder else {
        output::print_bytes(&manual::in_a_row(&pages));
        return Ok(ExitCode::SUCCESS);
    };
    manual::write(&pages, folder)
        .map_err(|error| Failure::Other(format!("{}: {error}", folder.display())))?;
    output::print(&json!({ "folder": folder.display().to_string(), "pages": pages.len() }), json);
    Ok(ExitCode::SUCCESS)
}

impl Init {
    async fn run(self, data: &Path) -> Result<Value, Failure> {
        let Self { email, organization, project, first_name } = self;
        let first = First { email, first_name, organization, project };
        let (app, made) = bootstrap::create(data, Config::default(), &first)?;
        app.close().await;
        Ok(serde_json::to_value(made).map_err(Error::internal)?)
    }
}

/// How long a command waits for another one to be done with the file, or for a server that has just
/// taken it to hear commands.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it waits before it tries again.
const PAUSE: Duration = Duration::from_millis(20);

/// Who does what a command asks for.
enum Reached {
    /// This process: nobody else has the file open.
    File(Store),
    /// The server that holds it.
    Server(UnixStream),
}

/// Opens the file, or reaches the server that holds it.
async fn reach(data: &Path, cache: usize) -> Result<Reached, Failure> {
    let begun = Instant::now();
    loop {
        let held = match Store::open(data, cache) {
            Ok(store) => return Ok(Reached::File(store)),
            Err(held @ OpenError::InUse(_)) => held,
            Err(error) => return Err(error.into()),
        };
        match control::connect(data).await {
            Ok(server) => return Ok(Reached::Server(server)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(error.into());
            }
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(PAUSE).await,
            Err(_) => return Err(held.into()),
        }
    }
}

/// Opens the file and does it; where a server holds the file, has the server do it.
async fn operate(data: &Path, operation: Operation, config: Config) -> Result<Value, Failure> {
    match reach(data, config.page_cache).await? {
        Reached::File(store) => {
            let app = App::for_a_command(store, config)?;
            let answer = perform(&app, operation, bar()).await;
            app.close().await;
            Ok(answer?)
        }
        Reached::Server(server) => control::ask(server, &operation, &bar()).await,
    }
}
