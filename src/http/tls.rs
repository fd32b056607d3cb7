//! HTTPS. The certificate and its key are reloaded when their files change.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error, InconsistentKeys, ServerConfig};
use xxhash_rust::xxh3::xxh3_64;

use crate::base::tasks::run_blocking;

/// The TLS stream of one connection.
pub(super) type TlsStream<S> = tokio_rustls::server::TlsStream<S>;

/// The time between two checks of the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// The largest file, in bytes.
const MAX_FILE_SIZE: u64 = 1 << 20;

/// A certificate and its private key. A new pair is used from the next connection on. A pair that does not match
/// is rejected and the old one stays in use.
pub struct Tls {
    files: Files,
    config: ArcSwap<ServerConfig>,
    /// The checksum of the files at the last check.
    last_read: Mutex<Result<u64, String>>,
}

#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The texts of the certificate and of its key, or why one of the files cannot be read.
type Content = Result<[Vec<u8>; 2], String>;

fn checksum(content: &Content) -> Result<u64, String> {
    content.as_ref().map(|texts| xxh3_64(&texts.concat())).map_err(Clone::clone)
}

impl Tls {
    /// Reads both PEM files: the certificate chain and its private key.
    ///
    /// # Errors
    /// A one-line message that names the file and its problem.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, String> {
        let files = Files { certificate, key };
        let content = files.read();
        let config = ArcSwap::from(files.parse(&content)?);
        if fs::metadata(&files.key).is_ok_and(|key| key.mode() & 0o007 != 0) {
            tracing::warn!("the private key {} is readable by other users", files.key.display());
        }
        Ok(Self { files, config, last_read: Mutex::new(checksum(&content)) })
    }

    /// Reloads the files when they change. Never returns.
    pub async fn watch_files(self: Arc<Self>) {
        loop {
            sleep(CHECK_INTERVAL).await;
            Arc::clone(&self).reload(false).await;
        }
    }

    /// Reloads the files if they changed or if `anyway` is true.
    pub async fn reload(self: Arc<Self>, anyway: bool) {
        // If a check panics, the current certificate stays in use.
        let _ = run_blocking(move || self.check_files(anyway)).await;
    }

    fn check_files(&self, anyway: bool) {
        let mut last = self.last_read.lock().unwrap_or_else(PoisonError::into_inner);
        let content = self.files.read();
        let now = checksum(&content);
        if !anyway && *last == now {
            return;
        }
        match self.files.parse(&content) {
            Ok(config) => {
                self.config.store(config);
                tracing::info!("the certificate was reloaded");
            }
            Err(why) => tracing::error!("the certificate was not reloaded: {why}"),
        }
        *last = now;
    }

    /// Performs the TLS handshake.
    ///
    /// # Errors
    /// `TimedOut` at `deadline`, or the error of the handshake.
    pub(super) async fn accept<S>(&self, stream: S, deadline: Instant) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        timeout_at(deadline, acceptor.accept(stream)).await?
    }
}

impl Files {
    fn read(&self) -> Content {
        Ok([read_file(&self.certificate)?, read_file(&self.key)?])
    }

    fn parse(&self, content: &Content) -> Result<Arc<ServerConfig>, String> {
        let [certificate, key] = content.as_ref().map_err(Clone::clone)?;
        let certificates = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| with_path(&self.certificate, &error))?;
        if certificates.is_empty() {
            return Err(with_path(&self.certificate, &"it contains no PEM certificate"));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            with_path(&self.key, &"it contains no private key as PEM without encryption")
        })?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|known| known.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| self.invalid(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn invalid(&self, error: &Error) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{key} is not the key of the certificate in {certificate}")
            }
            Error::InvalidCertificate(_) => with_path(&self.certificate, error),
            _ => format!("{certificate} and {key} cannot be used: {error}"),
        }
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAX_FILE_SIZE).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: io::Error| with_path(path, &error))
}

fn with_path(path: &Path, what: &dyn Display) -> String {
    format!("{}: {what}", path.display())
}
