//! The `steward` command line.

mod args;
mod backend;
mod commands;
mod config_file;
mod control;
mod failure;
mod file_commands;
mod man_pages;
mod open;
mod output;
mod serve;
mod socket_paths;
mod systemd;
mod test;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand};
use serde_json::Value;

use crate::config::{Config, data_place, file_path, output_path};
use crate::ids::OrganizationId;
use crate::net::trust_anchors::{client_config, read_certificates};
use crate::operator::Operation;
use crate::store::{Place, follow_link};

use args::{ArgValue, ParsedArgs};
use backend::run_operation;
use commands::{
    ConsoleCommand, Init, InviteCommand, KeyCommand, MailCommand, OrganizationCommand,
    SecretsCommand, UserCommand,
};
use failure::Failure;
use man_pages::{Completions, Manual};

/// The data file, unless a flag names another place.
const DEFAULT_DATA: &str = "steward.redb";

/// The admin API of an analytics workspace, served from one binary and one data file.
///
/// Start with `steward serve`. It creates the data file if needed, and prints the first API key.
#[derive(Parser)]
#[command(name = "steward", version, propagate_version = true)]
#[command(
    after_help = "All commands except serve, init and import of a workspace work while a server runs, which then performs them. \
    All except log and healthcheck also work without a server, and test is a server of its own. Example: `steward user list`, in the folder of the data file."
)]
struct Cli {
    /// The data file, or the URL of a PostgreSQL database that several nodes share, such as
    /// `postgres://user@host/database`.
    #[arg(
        long,
        global = true,
        env = "STEWARD_DATA",
        hide_env_values = true,
        value_name = "DATA",
        default_value = DEFAULT_DATA,
        value_parser = data_place()
    )]
    data: PathBuf,

    /// The file with this node's copy of a shared database. The server makes it again if it is lost.
    #[arg(
        long,
        global = true,
        env = "STEWARD_COPY",
        value_name = "FILE",
        value_parser = output_path(),
        default_value = "steward-copy.redb"
    )]
    copy: PathBuf,

    /// A PEM file with the certificates of the authorities that the certificate of a shared database may come from. By
    /// default those of the system.
    #[arg(long, global = true, env = "STEWARD_DATA_CA", value_name = "FILE", value_parser = file_path())]
    data_ca: Option<PathBuf>,

    /// The name of this node of a shared database. By default the name of the machine and the path of the copy.
    #[arg(long, global = true, env = "STEWARD_NODE", value_name = "NAME")]
    node: Option<String>,

    /// Print one JSON object instead of text.
    #[arg(long, global = true, env = "STEWARD_JSON", value_parser = FalseyValueParser::new())]
    json: bool,

    /// A configuration file in TOML, such as `listen = "127.0.0.1:8000"`. Its keys are the flags of serve. Flags and
    /// environment variables override it.
    #[arg(long, global = true, env = "STEWARD_CONFIG", value_name = "FILE", value_parser = file_path())]
    config: Option<PathBuf>,

    #[command(subcommand)]
    command: Command,
}

impl Cli {
    /// Returns where the data lies. Follows symbolic links first: backups, locks and replacements belong beside the real file.
    ///
    /// Without `--data`, the copy of a node in this folder stands for its server, which knows the database.
    fn place(&self) -> Result<Place, Failure> {
        let (ca, node) = (self.data_ca.as_deref(), self.node.as_deref());
        let is_absent = |path: &Path| path.symlink_metadata().is_err();
        let has_only_copy = self.data == Path::new(DEFAULT_DATA) && is_absent(&self.data);
        let is_copy = has_only_copy && !is_absent(&self.copy);
        let data = if is_copy { &self.copy } else { &self.data };
        let place = Place::new(data.as_os_str(), &self.copy, ca, node)
            .map_err(|error| Failure::Usage(format!("--data: {error}")))?;
        Ok(match place {
            Place::File(path) => Place::File(follow_link(&path)?),
            Place::Shared { url, copy, ca, node } => {
                ca.as_deref().map_or(Ok(()), require_authorities)?;
                Place::Shared { url, copy: follow_link(&copy)?, ca, node }
            }
        })
    }
}

/// Fails if the file of `--data-ca` cannot be used: a connection would fail with every attempt.
fn require_authorities(file: &Path) -> Result<(), Failure> {
    let used = read_certificates(file).and_then(|named| client_config(Vec::new(), named, None));
    used.map(drop)
        .map_err(|why| Failure::Usage(format!("cannot use --data-ca {}: {why}", file.display())))
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API, and create the data file if there is none.
    Serve(Box<serve::Serve>),
    /// Serve a workspace in memory for one test run, with keys that are known beforehand.
    Test(Box<test::Test>),
    /// Create a data file with a first organization, project, owner and API key, without serving it.
    Init(Init),
    /// Create and list organizations.
    #[command(subcommand)]
    Organization(OrganizationCommand),
    /// Create, list, deactivate and activate users.
    #[command(subcommand)]
    User(UserCommand),
    /// Create, list and revoke API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Print invite links.
    #[command(subcommand)]
    Invite(InviteCommand),
    /// Print a link that signs a user in to the web console. It works once, within five minutes.
    Console(ConsoleCommand),
    /// Test the mail configuration.
    #[command(subcommand)]
    Mail(MailCommand),
    /// List the nodes of a shared database: the release of each, how many commits its copy was behind at its last heartbeat,
    /// and its leases. A lease lets one node do what only one may do: send mail, or complete deletions.
    Nodes,
    /// Print the configuration of serve with these flags, environment variables and file, and the source of each
    /// setting. The output is a configuration file; secrets are masked.
    #[command(
        after_help = "Defaults are printed as comments, so that a later release can change them."
    )]
    Config(Box<serve::Serve>),
    /// Print the completion script of a shell.
    #[command(after_help = "For bash: steward completions bash > /etc/bash_completion.d/steward")]
    Completions(Completions),
    /// Print the manual pages of all commands, or write them into a folder.
    #[command(after_help = "To read all of them: steward man | man -l -")]
    Man(Manual),
    /// Check the data file: checksums, indexes, counts, references and structure.
    Check,
    /// Return the data file's unused space to the file system. A running server goes on meanwhile; if the disk has no room
    /// for a copy of what is used, it answers 503 instead.
    Compact,
    /// Check that the server of this data file accepts writes. The exit code is 0 if it does, and 1 if it does not or
    /// no server runs.
    Healthcheck,
    /// Change what the running server logs.
    Log {
        /// The log filter, as in `steward serve --log`: debug, or info,request=debug for a line for each request.
        level: String,
    },
    /// Write a backup: a checked copy of the current state, in a new file.
    Backup {
        /// The file to create. It must not exist.
        #[arg(value_parser = output_path())]
        file: PathBuf,
    },
    /// Export all data, or one organization, as lines of JSON. By default without secrets.
    Export {
        /// Export only this organization, with the accounts of its users. The export can be imported into a workspace
        /// in use.
        #[arg(long, value_name = "ID")]
        organization: Option<OrganizationId>,
        /// Include secrets: hashes of API keys, secrets of batch exports and the signing secret. Such an export is a
        /// credential.
        #[arg(long)]
        secrets: bool,
        /// The file to create, which must not exist; `-` or nothing for stdout.
        #[arg(value_parser = file_path())]
        file: Option<PathBuf>,
    },
    /// Create a data file from an export, or add one organization to a workspace in use. If the export has no secrets,
    /// create new API keys afterwards.
    Import {
        /// Add the organization of an export that contains only that. A running server adds it.
        #[arg(long)]
        organization: bool,
        /// Accept that users of the organization have accounts here whose address is unverified because an invite's link
        /// created them.
        #[arg(long, requires = "organization")]
        existing: bool,
        /// The export; `-` for stdin.
        #[arg(value_parser = file_path())]
        file: PathBuf,
    },
    /// Rotate the signing secret.
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Replace the data file with a backup. The backup is checked first, and the old file is kept beside it. A
    /// running server continues with the backup.
    Restore {
        /// The backup.
        #[arg(value_parser = file_path())]
        file: PathBuf,
    },
}

/// The number of tasks that a thread runs before it looks for requests that arrived. A request waits for as many, so
/// that the runtime's default of 61 delays one client's request by milliseconds of other clients' work.
const EVENT_INTERVAL: u32 = 4;

/// Runs the command line. The exit code is 0 on success, 1 on failure (with one line on stderr), and 2 if the command
/// line or the configuration is invalid.
pub fn main() -> ExitCode {
    run().unwrap_or_else(|failure| failure.report())
}

fn run() -> Result<ExitCode, Failure> {
    let ParsedArgs { cli, settings, warning } = args::parse(std::env::args_os().collect())?;
    let file = cli.config.clone();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.event_interval(EVENT_INTERVAL).enable_all().build()?;
    let outcome = runtime.block_on(execute(cli, &settings, warning));
    // Does not wait for the task that opens the data file: a stop signal may arrive before it is done.
    runtime.shutdown_background();
    outcome.map_err(|failure| args::with_sources(failure, &settings, file.as_deref()))
}

async fn execute(
    cli: Cli,
    settings: &[ArgValue],
    warning: Option<String>,
) -> Result<ExitCode, Failure> {
    if let (Some(warning), false) = (&warning, matches!(cli.command, Command::Serve(_))) {
        failure::complain(warning);
    }
    // These commands need no data.
    if let Command::Test(test) = cli.command {
        return test.run(cli.json).await;
    }
    let printed = match &cli.command {
        Command::Config(_) if cli.json => output::print(&args::to_json(settings), true),
        Command::Config(_) => {
            output::print_bytes(args::to_toml(settings, cli.config.as_deref()).as_bytes())
        }
        Command::Completions(completions) => completions.print(),
        Command::Man(manual) => manual.print(cli.json),
        _ => return execute_on_data(cli, warning).await,
    };
    printed.map(|()| ExitCode::SUCCESS)
}

async fn execute_on_data(cli: Cli, warning: Option<String>) -> Result<ExitCode, Failure> {
    let place = cli.place()?;
    let Cli { json, command, .. } = cli;
    if let Command::Serve(serve) = command {
        return serve.run(&place, json, warning).await;
    }
    let is_link = matches!(command, Command::Console(_));
    let answer = perform(command, &place).await?;
    if let Some(answer) = &answer {
        let print = if is_link { output::print_console_link } else { output::print };
        print(answer, json)?;
    }
    let problems = answer.and_then(|answer| answer.get("problem_count").and_then(Value::as_u64));
    Ok(if problems.unwrap_or(0) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Performs a command on the data. Returns its result, unless that is on stdout.
async fn perform(command: Command, place: &Place) -> Result<Option<Value>, Failure> {
    let mut config = Config::default();
    let operation = match command {
        Command::Serve(_)
        | Command::Test(_)
        | Command::Config(_)
        | Command::Completions(_)
        | Command::Man(_) => {
            return Ok(None);
        }
        Command::Init(init) => return init.run(place).await.map(Some),
        Command::Organization(OrganizationCommand::Create(options)) => {
            Operation::OrganizationCreate(options)
        }
        Command::Organization(OrganizationCommand::List) => Operation::OrganizationList,
        Command::User(UserCommand::Create(options)) => Operation::UserCreate(options),
        Command::User(UserCommand::List) => Operation::UserList,
        Command::User(UserCommand::Deactivate { email }) => {
            Operation::UserSetActive { email, active: false }
        }
        Command::User(UserCommand::Activate { email }) => {
            Operation::UserSetActive { email, active: true }
        }
        Command::Key(KeyCommand::Create(options)) => Operation::KeyCreate(options),
        Command::Key(KeyCommand::List) => Operation::KeyList,
        Command::Key(KeyCommand::Revoke { id }) => Operation::KeyRevoke { id },
        Command::Invite(InviteCommand::Link { id, public_url }) => {
            config.public_url = public_url;
            Operation::InviteLink { id }
        }
        Command::Console(ConsoleCommand { email, operator, existing, public_url }) => {
            config.public_url = public_url;
            Operation::ConsoleLink { email, is_operator: operator, existing }
        }
        Command::Mail(MailCommand::Test { to, mail }) => {
            config.mail = mail;
            Operation::MailTest { to }
        }
        Command::Nodes => Operation::NodeList,
        Command::Check => Operation::Check,
        Command::Compact => Operation::Compact,
        Command::Healthcheck => return backend::healthcheck(place).await.map(Some),
        Command::Log { level } => return backend::log(place, level).await.map(Some),
        Command::Backup { file } => return file_commands::backup(place, file).await.map(Some),
        Command::Export { organization, secrets, file } => {
            return file_commands::export(place, (secrets, organization), file).await;
        }
        Command::Import { organization: true, existing, file } => {
            return file_commands::import_organization(place, file, existing).await.map(Some);
        }
        Command::Import { organization: false, existing: _, file } => {
            return file_commands::import(place, file).await.map(Some);
        }
        Command::Secrets(SecretsCommand::Rotate) => Operation::SecretsRotate,
        Command::Restore { file } => return file_commands::restore(place, file).await.map(Some),
    };
    run_operation(place, operation, config).await.map(Some)
}
