//! HTTPS: the certificate and its key, read again when their files change.

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

/// The stream of one connection by TLS.
pub(super) type TlsStream<S> = tokio_rustls::server::TlsStream<S>;

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// A certificate and its key, as they are in their files: a new pair is used from the next connection on, and one
/// that does not fit together never is.
pub struct Tls {
    files: Files,
    config: ArcSwap<ServerConfig>,
    seen: Mutex<Seen>,
}

#[derive(Clone)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// What the last look found.
struct Seen {
    marks: [Option<Mark>; 2],
    /// Why the files were not taken, where they were not.
    refused: Option<String>,
}

/// What changes when a file does, or another takes its place: device, inode, size, and both times.
type Mark = (u64, u64, u64, (i64, i64), (i64, i64));

impl Tls {
    /// Reads both files, PEM each: the certificate with what leads to its root, and its private key.
    ///
    /// # Errors
    /// What is wrong with which file, in one line.
    pub fn load(certificate: PathBuf, key: PathBuf) -> Result<Self, String> {
        let files = Files { certificate, key };
        let marks = files.marks();
        let config = ArcSwap::from(files.read()?);
        if fs::metadata(&files.key).is_ok_and(|key| key.mode() & 0o007 != 0) {
            tracing::warn!("{} is a private key and others may read it", files.key.display());
        }
        Ok(Self { files, config, seen: Mutex::new(Seen { marks, refused: None }) })
    }

    /// Looks at the files again and again, and takes what is new. Never ends.
    pub async fn keep_fresh(self: Arc<Self>) {
        loop {
            sleep(LOOK).await;
            Arc::clone(&self).look_again(false).await;
        }
    }

    /// Reads the files now.
    pub async fn reload(self: Arc<Self>) {
        self.look_again(true).await;
    }

    async fn look_again(self: Arc<Self>, anyway: bool) {
        // A look that panics leaves what there was.
        let _ = tokio::task::spawn_blocking(move || self.look(anyway)).await;
    }

    /// Takes what the files hold if they changed, or `anyway`. Files that were refused are read each time: they
    /// may have been in the midst of being replaced.
    fn look(&self, anyway: bool) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = self.files.marks();
        if !anyway && seen.refused.is_none() && seen.marks == marks {
            return;
        }
        let refused = match self.files.read() {
            Ok(config) => {
                self.config.store(config);
                tracing::info!("the certificate was read again");
                None
            }
            Err(why) => {
                if anyway || seen.refused.as_ref() != Some(&why) {
                    tracing::error!("the certificate stays as it was: {why}");
                }
                Some(why)
            }
        };
        *seen = Seen { marks, refused };
    }

    /// Agrees with a client on how to speak.
    ///
    /// # Errors
    /// `TimedOut` at `deadline`; what else goes wrong with this one client.
    pub(super) async fn accept<S>(&self, stream: S, deadline: Instant) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        timeout_at(deadline, acceptor.accept(stream)).await?
    }
}

impl Files {
    /// A mark of each file; none of one that is not there.
    fn marks(&self) -> [Option<Mark>; 2] {
        [&self.certificate, &self.key].map(|path| {
            let file = fs::metadata(path).ok()?;
            let times = ((file.mtime(), file.mtime_nsec()), (file.ctime(), file.ctime_nsec()));
            Some((file.dev(), file.ino(), file.size(), times.0, times.1))
        })
    }

    fn read(&self) -> Result<Arc<ServerConfig>, String> {
        let certificates = CertificateDer::pem_slice_iter(&contents(&self.certificate)?)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| about(&self.certificate, &error))?;
        if certificates.is_empty() {
            return Err(about(&self.certificate, &"there is no certificate in it, in PEM"));
        }
        let key = PrivateKeyDer::from_pem_slice(&contents(&self.key)?).map_err(|_| {
            about(&self.key, &"there is no private key in it, in PEM and unencrypted")
        })?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|known| known.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| self.unfit(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn unfit(&self, error: &Error) -> String {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{key} is not the key of the certificate in {certificate}")
            }
            Error::InvalidCertificate(_) => about(&self.certificate, error),
            _ => format!("{certificate} and {key} cannot be used: {error}"),
        }
    }
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let read = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error: io::Error| about(path, &error))
}

fn about(path: &Path, what: &dyn Display) -> String {
    format!("{}: {what}", path.display())
}
