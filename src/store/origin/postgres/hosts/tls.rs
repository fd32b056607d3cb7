//! TLS to the database.

use std::path::Path;

use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::origin::Fault;
use crate::trust_anchors::{Identity, client_config, read_certificates, system_certificates};

/// Returns what connects with TLS. The server's certificate must be valid for its name in the URL, and come from an
/// authority in the PEM file `ca` or be in it, or come from one of the system's. `own` has the certificate and the key of the
/// client.
///
/// # Errors
/// [`Fault::Refused`] names the file and its problem.
pub(super) fn connector(
    ca: Option<&Path>,
    own: Option<(&Path, &Path)>,
) -> Result<MakeRustlsConnect, Fault> {
    let identity = own.map(|(certificate, key)| Identity::read(certificate, key)).transpose();
    let identity = identity.map_err(Fault::Refused)?;
    let tls = if let Some(ca) = ca {
        read_certificates(ca)
            .and_then(|named| client_config(Vec::new(), named, identity))
            .map_err(|why| Fault::Refused(format!("{}: {why}", ca.display())))?
    } else {
        let system = system_certificates();
        if system.is_empty() {
            let why = "the system has no certificates of authorities; name a file with --data-ca";
            return Err(Fault::Refused(why.to_owned()));
        }
        client_config(system, Vec::new(), identity).map_err(Fault::Refused)?
    };
    Ok(MakeRustlsConnect::new(tls))
}
