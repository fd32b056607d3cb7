//! DNS: looking TXT records up, for the verification of domains (facts-org §2.3).
//!
//! Each look-up stands alone. Nothing is cached, so that a record counts as soon as the servers show it, and
//! the system's configuration is read anew, so that a change of it needs no restart.

use std::fmt::Display;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::select_ok;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::{Name, RData};
use hickory_resolver::system_conf::read_system_conf;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::fair::{Consumer, FairLimits, FairQueue};

/// How look-ups are shared out. Name servers that do not answer hold up the organization that asks them and no other:
/// all the look-ups of a hundred organizations may wait, and there is room for more.
const SHARES: FairLimits = FairLimits {
    slots: 64,
    slots_each: 2,
    waiting_each: 8,
    waiting: 1024,
    longest_wait: Some(Duration::from_secs(10)),
};
/// Seconds after which it makes sense to look up again when the servers could not be asked.
const RETRY_AFTER: u32 = 5;

/// One TXT record: its strings, which are bytes, in their order.
pub type Txt = Vec<Vec<u8>>;

/// Which servers to ask, and how.
type Configuration = (ResolverConfig, ResolverOpts);

/// Looks records up: at the servers that `--dns-resolver` names, at the system's where it names none.
pub struct Resolver {
    servers: Vec<SocketAddr>,
    timeout: Duration,
    system: fn() -> Result<Configuration, NetError>,
    queue: FairQueue,
}

impl Resolver {
    /// Looks up as `config` says.
    pub fn new(config: &Config) -> Self {
        Self {
            servers: config.dns_resolvers.clone(),
            timeout: config.dns_timeout,
            system: read_system_conf,
            queue: FairQueue::new(SHARES),
        }
    }

    /// The TXT records of `name`, which is absolute and so ends with a dot; none where there are none, where
    /// there is no such name, or where it is too long to be one.
    ///
    /// All servers are asked at once and the first that answers is believed. Two look-ups of a consumer run at a time;
    /// further ones wait for their turn. From then on the look-up takes at most `--dns-timeout`.
    ///
    /// # Errors
    /// 503 when too many look-ups wait, no server answers in time, or none does anything but fail or refuse, or the system's
    /// configuration cannot be read.
    pub async fn txt(&self, name: &str, consumer: Consumer) -> Result<Vec<Txt>> {
        let Ok(name) = Name::from_ascii(name) else { return Ok(Vec::new()) };
        let full = |_| Error::overloaded(RETRY_AFTER, "DNS look-up: too many wait");
        let _slot = self.queue.acquire(consumer).await.map_err(full)?;
        let late = |_| trouble(format_args!("no answer within {:?}", self.timeout));
        tokio::time::timeout(self.timeout, self.ask_all(name)).await.map_err(late)?
    }

    async fn ask_all(&self, name: Name) -> Result<Vec<Txt>> {
        let (servers, mut options) = self.configuration().await?;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        // One attempt, which sends its packet several times, may take all the time there is.
        options.timeout = self.timeout;
        let asked = servers.into_iter().map(|server| {
            Box::pin(async { ask(server, options.clone(), name.clone()).await.map_err(trouble) })
        });
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return Err(trouble("there is no server to ask"));
        }
        select_ok(asked).await.map(|(records, _)| records)
    }

    async fn configuration(&self) -> Result<(Vec<NameServerConfig>, ResolverOpts)> {
        if !self.servers.is_empty() {
            let servers = self.servers.iter().copied().map(udp_and_tcp).collect();
            return Ok((servers, ResolverOpts::default()));
        }
        let read = tokio::task::spawn_blocking(self.system).await.map_err(Error::internal)?;
        let (servers, options) = read.map_err(trouble)?;
        Ok((servers.name_servers().to_vec(), options))
    }
}

/// A server that is asked over UDP, and over TCP where an answer does not fit.
fn udp_and_tcp(server: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    NameServerConfig::new(server.ip(), true, connections.into())
}

/// Asks one server. In a pool the first to refuse would speak for all.
async fn ask(
    server: NameServerConfig,
    options: ResolverOpts,
    name: Name,
) -> Result<Vec<Txt>, NetError> {
    let config = ResolverConfig::from_name_servers(vec![server]);
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = options;
    let found = match builder.build()?.txt_lookup(name).await {
        Err(error) if error.is_no_records_found() => return Ok(Vec::new()),
        found => found?,
    };
    let texts = found.answers().iter().filter_map(|record| match &record.data {
        RData::TXT(text) => Some(text.txt_data.iter().map(|string| string.to_vec()).collect()),
        _ => None,
    });
    Ok(texts.collect())
}

/// The cause goes to the log; the client only learns that it may try again.
fn trouble(cause: impl Display) -> Error {
    Error::unavailable(RETRY_AFTER, format_args!("DNS look-up: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(system: fn() -> Result<Configuration, NetError>) -> Resolver {
        let queue = FairQueue::new(SHARES);
        Resolver { servers: Vec::new(), timeout: Duration::from_millis(50), system, queue }
    }

    const CONSUMER: Consumer = Consumer::User(1);

    #[tokio::test]
    async fn a_system_without_servers_is_trouble() {
        for (system, cause) in [
            (
                (|| Err(std::io::Error::other("no such file").into())) as fn() -> _,
                "DNS look-up: io error: no such file",
            ),
            (|| Ok(Configuration::default()), "DNS look-up: there is no server to ask"),
        ] {
            let error = resolver(system).txt("a.example.", CONSUMER).await.unwrap_err();
            assert_eq!((error.status(), error.retry_after()), (503, Some(5)));
            assert_eq!(error.cause(), Some(cause));
        }
    }

    #[tokio::test]
    async fn the_system_is_read_anew_at_each_look_up() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static READ: AtomicU32 = AtomicU32::new(0);
        let resolver = resolver(|| {
            READ.fetch_add(1, Ordering::Relaxed);
            Ok(Configuration::default())
        });
        for read in 1..4 {
            assert!(resolver.txt("a.example.", CONSUMER).await.is_err());
            assert_eq!(READ.load(Ordering::Relaxed), read);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_a_name_has_no_records() {
        let resolver = resolver(|| Err("nobody is asked".into()));
        for name in [format!("{}.example.", "a".repeat(64)), "a..example.".to_owned()] {
            assert_eq!(resolver.txt(&name, CONSUMER).await.unwrap(), Vec::<Txt>::new(), "{name}");
        }
    }
}
