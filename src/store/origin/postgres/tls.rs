//! TLS to the database.

use std::path::Path;
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::super::Fault;

/// Returns what connects with TLS. The server's certificate must be valid for its name in the URL, and come from an
/// authority in the PEM file `ca`, or from one of the system's.
///
/// # Errors
/// [`Fault::Refused`] names the file and its problem.
pub(super) fn connector(ca: Option<&Path>) -> Result<MakeRustlsConnect, Fault> {
    let Some(ca) = ca else {
        let system = MakeRustlsConnect::with_native_certs();
        return system.map(|(connector, _)| connector).map_err(|_| {
            Fault::Refused(
                "the system has no certificates of authorities; name a file with --data-ca"
                    .to_owned(),
            )
        });
    };
    let refused = |why: &dyn std::fmt::Display| Fault::Refused(format!("{}: {why}", ca.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| refused(&error))? {
        let certificate = certificate.map_err(|error| refused(&error))?;
        roots.add(certificate).map_err(|error| refused(&error))?;
    }
    if roots.is_empty() {
        return Err(refused(&"the file has no certificates"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
