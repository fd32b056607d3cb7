//! Connecting: to the first server that takes writes, with the settings that the store relies on.

use std::future::poll_fn;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{join_all, join4};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::base::tasks::spawn;
use crate::store::disk::place::DatabaseUrl;
use crate::store::values::position::Primary;

use super::super::Fault;
use super::failure::Failure;
use super::hosts::{Server, servers};
use super::link::{ANSWER, Link};
use super::sql;

/// What connects to the database.
pub(super) struct Connector {
    servers: Vec<Server>,
    /// The server of the last connection: the next one is tried there first.
    last: AtomicUsize,
    /// Whether the operator was warned of standbys that can lose commits.
    has_warned: AtomicBool,
    /// The server that was connected last.
    primary: Mutex<Primary>,
}

impl Connector {
    /// Reads the URL. Does not connect.
    pub(super) fn new(url: &DatabaseUrl, ca: Option<&Path>, node: &str) -> Result<Self, Fault> {
        Ok(Self {
            servers: servers(url, ca, node)?,
            last: AtomicUsize::new(0),
            has_warned: AtomicBool::new(false),
            primary: Mutex::default(),
        })
    }

    /// See [`Origin::remember`](super::super::Origin::remember).
    pub(super) fn remember(&self, primary: Primary) {
        let mut known = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if primary.system != 0 && !primary.is_before(*known) {
            *known = primary;
        }
    }

    /// Returns the server that was connected last.
    pub(super) fn primary(&self) -> Primary {
        *self.primary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if this server was replaced by one that this node has followed.
    fn require_current(&self, found: Primary) -> Result<(), Fault> {
        let mut known = self.primary.lock().unwrap_or_else(PoisonError::into_inner);
        if found.is_before(*known) {
            return Err(Fault::Refused(format!(
                "this is an old primary that came back: it is at timeline {}, and this node has followed timeline {}; shut it \
                 down, or, if you restored this state on purpose, move the copy of this node away",
                found.timeline, known.timeline
            )));
        }
        *known = found;
        Ok(())
    }

    /// Connects to the first server that takes writes.
    ///
    /// # Errors
    /// [`Fault::Away`] if it may help to try again, and [`Fault::Refused`] if no server is reachable otherwise.
    pub(super) fn connect(&self) -> Result<Link, Fault> {
        let last = self.last.load(Ordering::Relaxed);
        let from_last = self.servers.iter().enumerate().cycle().skip(last);
        let (mut reasons, mut is_away) = (Vec::new(), false);
        for (at, server) in from_last.take(self.servers.len()) {
            match self.connect_to(server) {
                Ok(link) => {
                    self.last.store(at, Ordering::Relaxed);
                    return Ok(link);
                }
                Err(fault) => {
                    is_away |= matches!(fault, Fault::Away(_));
                    reasons.push(reason(server, &fault));
                }
            }
        }
        let reasons = reasons.join("; ");
        Err(if is_away { Fault::Away(reasons) } else { Fault::Refused(reasons) })
    }

    fn connect_to(&self, server: &Server) -> Result<Link, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::Away(error.to_string()))?;
        let is_warned = Arc::<AtomicBool>::default();
        let (config, tls) = (server.config()?, server.connector()?);
        let client = connect(&runtime, (&config, server.limit), tls, Arc::clone(&is_warned));
        let client = client.map_err(|failure| failure.of_connecting())?;
        let mut link = Link::new(runtime, client, is_warned);
        link.primary = self.begin_session(server, &link)?;
        Ok(link)
    }

    /// Sets what the store relies on. Returns which server this is, if it says so.
    fn begin_session(&self, server: &Server, link: &Link) -> Result<Primary, Fault> {
        let client = link.client();
        let settings = sql::SESSION.iter().map(|setting| client.batch_execute(setting));
        let session = async {
            let durability = client.query_one(sql::DURABILITY, &[]);
            let standbys = client.query_one(sql::HAS_ONLY_ASYNCHRONOUS_STANDBYS, &[]);
            let primary = client.query_one(sql::PRIMARY, &[]);
            Ok(join4(join_all(settings), durability, standbys, primary).await)
        };
        let (settings, durability, standbys, primary) =
            link.wait(ANSWER, session).map_err(|failure| failure.of_connecting())?;
        for (setting, outcome) in sql::SESSION.iter().zip(settings) {
            if let Err(error) = outcome {
                tracing::debug!(server = server.name, setting, %error, "the database has no such setting");
            }
        }
        let durability = durability.and_then(|row| row.try_get::<_, String>(0));
        require_durable(&durability.map_err(|error| Failure::Sql(error).of_connecting())?)?;
        let found = match primary.map_err(Failure::Sql).and_then(|row| primary_of(&row)) {
            Ok(found) => {
                self.require_current(found)?;
                found
            }
            Err(failure) => {
                tracing::debug!(server = server.name, ?failure, "the database names no timeline");
                Primary::default()
            }
        };
        let has_risk = standbys.and_then(|row: Row| row.try_get(0)).unwrap_or(false);
        if has_risk && !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                server = server.name,
                "no standby of the database is synchronous: a failover loses the last commits"
            );
        }
        Ok(found)
    }
}

/// Connects, and lets `runtime` drive the connection, which notes warnings of the server.
fn connect(
    runtime: &Runtime,
    (config, limit): (&Config, Duration),
    tls: MakeRustlsConnect,
    is_warned: Arc<AtomicBool>,
) -> Result<Client, Failure> {
    runtime.block_on(async {
        let connecting = config.connect(tls);
        let connected = tokio::time::timeout(limit, connecting).await;
        let (client, mut connection) = connected.map_err(|_| Failure::Late)??;
        spawn(async move {
            while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) => {
                        tracing::debug!(%notice, "the database sent a notice");
                        if notice.parsed_severity() == Some(Severity::Warning) {
                            is_warned.store(true, Ordering::Release);
                        }
                    }
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database ended");
                        return;
                    }
                }
            }
        });
        Ok(client)
    })
}

/// Reads the result of [`sql::PRIMARY`].
fn primary_of(row: &Row) -> Result<Primary, Failure> {
    let system: i64 = row.try_get(0)?;
    let timeline: i32 = row.try_get(1)?;
    Ok(Primary { system: system.cast_unsigned(), timeline: timeline.cast_unsigned() })
}

fn require_durable(synchronous_commit: &str) -> Result<(), Fault> {
    match synchronous_commit {
        "off" | "local" => Err(Fault::Refused(format!(
            "synchronous_commit is {synchronous_commit}, so the database would lose commits that were \
             acknowledged; set it to on for the role or the database"
        ))),
        _ => Ok(()),
    }
}

/// Returns why a server cannot be used, with its address.
fn reason(server: &Server, fault: &Fault) -> String {
    let why = match fault {
        Fault::Away(why) => why.clone(),
        fault => fault.to_string(),
    };
    let hint = if why.contains("invalid peer certificate") {
        let authorities = &server.authorities;
        format!(
            "; it must come from {authorities} (--data-ca), and have the name of the host in --data"
        )
    } else if why.contains("password missing") {
        let file = server.password.as_ref().map(|file| file.path.display().to_string());
        format!(
            "; name one in --data, PGPASSWORD or a password file ({})",
            file.unwrap_or_default()
        )
    } else {
        String::new()
    };
    format!("{}: {why}{hint}", server.name)
}
