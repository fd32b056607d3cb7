//! DNS look-ups of TXT records, which verify domains. See `docs/spec/domains.md`.
//!
//! Nothing is cached: a record counts as soon as the name servers return it. The system's configuration is read for
//! each look-up, so that a change of it needs no restart.

use std::fmt::{Debug, Display};
use std::net::SocketAddr;
use std::sync::Arc;
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

use crate::base::error::Error;
use crate::base::tasks::run_blocking;
use crate::fair::fair_queue::{Consumer, FairQueue, FairQueueLimits};

/// How organizations share the look-ups. If an organization's name servers do not answer, only that organization
/// waits: the queue holds all look-ups of a hundred organizations.
const QUEUE_LIMITS: FairQueueLimits = FairQueueLimits {
    slots: 64,
    slots_per_consumer: 2,
    waiting_per_consumer: 8,
    waiting: 1024,
    max_wait: Some(Duration::from_secs(10)),
};
/// The `Retry-After` of a failed look-up, in seconds.
const RETRY_AFTER: u32 = 5;

/// The reason why a look-up found no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// Too many look-ups wait.
    QueueFull,
    /// The system's configuration cannot be read or names no server. The cause is for the log only.
    NoServer(String),
    /// No server answered within this time.
    TimedOut(Duration),
    /// All servers failed or refused to answer. The cause is for the log only.
    Failed(String),
}

/// 503, so that the client retries. It sees no cause.
impl From<LookupError> for Error {
    fn from(error: LookupError) -> Self {
        let unavailable = |cause: &dyn Display| {
            Self::unavailable(RETRY_AFTER, format_args!("DNS look-up: {cause}"))
        };
        match error {
            LookupError::QueueFull => {
                Self::overloaded(RETRY_AFTER, "DNS look-up: the queue is full")
            }
            LookupError::TimedOut(limit) => {
                unavailable(&format_args!("no answer within {limit:?}"))
            }
            LookupError::NoServer(cause) | LookupError::Failed(cause) => unavailable(&cause),
        }
    }
}

/// One TXT record: its character strings, in order. DNS allows any bytes in them.
pub type TxtRecord = Vec<Vec<u8>>;

/// The name servers and the options of one look-up.
type ResolverSettings = (ResolverConfig, ResolverOpts);

/// Records that are looked up in no name server.
pub trait TxtRecords: Debug + Send + Sync + 'static {
    /// Returns the TXT records of a [canonical](canonical_name) name. The list is empty if it has none.
    ///
    /// # Errors
    /// What a look-up in a name server could fail with.
    fn find(&self, name: &str) -> Result<Vec<TxtRecord>, LookupError>;
}

/// Returns the one way to write a name: in ASCII, in lower case and without the last dot. `None` if it is no name.
pub fn canonical_name(text: &str) -> Option<String> {
    Name::from_utf8(text).ok().map(|name| written(&name))
}

fn written(name: &Name) -> String {
    name.to_lowercase().to_ascii().trim_end_matches('.').to_owned()
}

/// Looks up DNS records. Uses the servers that `--dns-resolver` names, or the system's if it names none.
pub struct Resolver {
    servers: Vec<SocketAddr>,
    /// What is used instead of name servers.
    records: Option<Arc<dyn TxtRecords>>,
    timeout: Duration,
    read_system_config: fn() -> Result<ResolverSettings, NetError>,
    queue: FairQueue,
}

impl Resolver {
    /// Creates a resolver that asks `servers`, or the system's if there are none.
    #[allow(
        clippy::useless_conversion,
        reason = "reading the settings of macOS fails with another error"
    )]
    pub fn new(servers: Vec<SocketAddr>, timeout: Duration) -> Self {
        Self {
            servers,
            records: None,
            timeout,
            read_system_config: || read_system_conf().map_err(Into::into),
            queue: FairQueue::new(QUEUE_LIMITS),
        }
    }

    /// Uses these records instead of name servers, if there are any.
    #[must_use]
    pub fn with_records(self, records: Option<Arc<dyn TxtRecords>>) -> Self {
        Self { records, ..self }
    }

    /// Returns the TXT records of `name`, which must be absolute (end with a dot). The list is empty if the name has
    /// no TXT records, does not exist or is not a valid name.
    ///
    /// Queries all servers at once and returns the first answer. At most two look-ups of a consumer run at a time;
    /// further ones wait in the queue. Once it runs, a look-up takes at most `--dns-timeout`.
    ///
    /// # Errors
    /// Fails if too many look-ups wait, if no server answers in time, if all servers fail or refuse, or if the system's
    /// configuration cannot be read.
    pub async fn lookup_txt(
        &self,
        name: &str,
        consumer: Consumer,
    ) -> Result<Vec<TxtRecord>, LookupError> {
        let Ok(name) = Name::from_ascii(name) else { return Ok(Vec::new()) };
        if let Some(records) = &self.records {
            return records.find(&written(&name));
        }
        let _slot = self.queue.acquire(consumer).await.map_err(|_| LookupError::QueueFull)?;
        let late = |_| LookupError::TimedOut(self.timeout);
        tokio::time::timeout(self.timeout, self.query_all(name)).await.map_err(late)?
    }

    async fn query_all(&self, name: Name) -> Result<Vec<TxtRecord>, LookupError> {
        let (servers, mut options) = self.configuration().await?;
        options.cache_size = 0;
        options.use_hosts_file = ResolveHosts::Never;
        // An attempt sends its packet several times, so one attempt may use the whole timeout.
        options.timeout = self.timeout;
        let asked = servers.into_iter().map(|server| {
            Box::pin(async {
                let found = query(server, options.clone(), name.clone()).await;
                found.map_err(|cause| LookupError::Failed(cause.to_string()))
            })
        });
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return Err(LookupError::NoServer("no name server is configured".to_owned()));
        }
        select_ok(asked).await.map(|(records, _)| records)
    }

    async fn configuration(&self) -> Result<(Vec<NameServerConfig>, ResolverOpts), LookupError> {
        if !self.servers.is_empty() {
            let servers = self.servers.iter().copied().map(udp_and_tcp).collect();
            return Ok((servers, ResolverOpts::default()));
        }
        let unreadable = |cause: &dyn Display| LookupError::NoServer(cause.to_string());
        let read = run_blocking(self.read_system_config).await;
        let read = read.map_err(|panic| unreadable(&panic))?;
        let (servers, options) = read.map_err(|cause| unreadable(&cause))?;
        Ok((servers.name_servers().to_vec(), options))
    }
}

/// Configures a server for UDP, with TCP for answers that do not fit into a packet.
fn udp_and_tcp(server: SocketAddr) -> NameServerConfig {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    NameServerConfig::new(server.ip(), true, connections.into())
}

/// Queries one server. Each server has a resolver of its own: in a pool, one refusal would end the look-up.
async fn query(
    server: NameServerConfig,
    options: ResolverOpts,
    name: Name,
) -> Result<Vec<TxtRecord>, NetError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn resolver(read_system_config: fn() -> Result<ResolverSettings, NetError>) -> Resolver {
        let queue = FairQueue::new(QUEUE_LIMITS);
        Resolver {
            servers: Vec::new(),
            records: None,
            timeout: Duration::from_hours(1),
            read_system_config,
            queue,
        }
    }

    const CONSUMER: Consumer = Consumer::User(1);

    #[tokio::test]
    async fn missing_dns_servers_return_503() {
        for (system, cause) in [
            (
                (|| Err(std::io::Error::other("no such file").into())) as fn() -> _,
                "DNS look-up: io error: no such file",
            ),
            (|| Ok(ResolverSettings::default()), "DNS look-up: no name server is configured"),
        ] {
            let error = resolver(system).lookup_txt("a.example.", CONSUMER).await.unwrap_err();
            let error = Error::from(error);
            assert_eq!((error.status(), error.retry_after()), (503, Some(5)));
            assert_eq!(error.cause(), Some(cause));
        }
    }

    #[tokio::test]
    async fn dns_configuration_is_read_for_each_lookup() {
        use std::sync::atomic::{AtomicU32, Ordering};
        static READ: AtomicU32 = AtomicU32::new(0);
        let resolver = resolver(|| {
            READ.fetch_add(1, Ordering::Relaxed);
            Ok(ResolverSettings::default())
        });
        for read in 1..4 {
            assert!(resolver.lookup_txt("a.example.", CONSUMER).await.is_err());
            assert_eq!(READ.load(Ordering::Relaxed), read);
        }
    }

    #[tokio::test]
    async fn invalid_dns_names_have_no_records() {
        let resolver = resolver(|| Err("the resolver must not read the configuration".into()));
        for name in [format!("{}.example.", "a".repeat(64)), "a..example.".to_owned()] {
            let found = resolver.lookup_txt(&name, CONSUMER).await.unwrap();
            assert_eq!(found, Vec::<TxtRecord>::new(), "{name}");
        }
    }
}
