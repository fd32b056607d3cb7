//! Whose certificates a TLS client accepts: those of the system's authorities, and of the file that an operator names.
//!
//! A certificate in that file is trusted as it is, too: `openssl req -x509` makes one that is a server's certificate and its
//! own authority. The usual rules refuse it, because an authority must not be a server.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use x509_parser::certificate::X509Certificate;
use x509_parser::parse_x509_certificate;
use x509_parser::pem::Pem;
use x509_parser::time::ASN1Time;

/// Reads a certificate by which a server knows its client, with those of its authorities, and its key. Both PEM files must
/// belong together.
///
/// # Errors
/// One line that names the file and its problem.
pub fn read_identity(certificate: &Path, key: &Path) -> Result<CertifiedKey, String> {
    let named = |path: &Path, why: String| format!("{}: {why}", path.display());
    let chain = read_certificates(certificate).map_err(|why| named(certificate, why))?;
    let read = PrivateKeyDer::from_pem_file(key);
    let private = read.map_err(|error| named(key, format!("no private key: {error}")))?;
    let pair = CertifiedKey::from_der(chain, private, &ring::default_provider());
    let unfit = |error: Error| format!("cannot be used with {}: {error}", certificate.display());
    pair.map_err(|error| named(key, unfit(error)))
}

/// Returns the configuration of a client that trusts these certificates, and shows its own if it has one.
///
/// # Errors
/// What is wrong with a certificate, in one line.
pub fn client_config(
    system: Vec<CertificateDer<'static>>,
    named: Vec<CertificateDer<'static>>,
    identity: Option<CertifiedKey>,
) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system);
    for certificate in &named {
        roots.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    let (provider, roots) = (Arc::new(ring::default_provider()), Arc::new(roots));
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let config = if named.is_empty() {
        config.with_root_certificates(roots)
    } else {
        let authorities = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let authorities = authorities.map_err(|error| error.to_string())?;
        let verifier = Arc::new(Verifier { authorities, named });
        config.dangerous().with_custom_certificate_verifier(verifier)
    };
    Ok(match identity {
        None => config.with_no_client_auth(),
        Some(pair) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(pair))),
    })
}

/// Returns the certificates of the system's authorities that can be read.
pub fn system_certificates() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

/// Returns the certificates in a PEM file.
///
/// # Errors
/// Why the file cannot be read, or that it has none, in one line.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    for pem in Pem::iter_from_buffer(&bytes) {
        let pem = pem.map_err(|error| error.to_string())?;
        if pem.label == "CERTIFICATE" {
            found.push(CertificateDer::from(pem.contents));
        }
    }
    if found.is_empty() {
        return Err("the file contains no PEM certificate".to_owned());
    }
    Ok(found)
}

/// Accepts what the authorities issued, and the named certificates themselves.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.named.contains(end_entity) {
            verify_named(end_entity, server_name, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Checks a certificate that is trusted as it is: its time, its purpose and its name.
fn verify_named(
    der: &CertificateDer<'_>,
    server_name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    let (_, certificate) =
        parse_x509_certificate(der).map_err(|_| CertificateError::BadEncoding)?;
    let now = ASN1Time::from_timestamp(i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let now = now.map_err(|_| CertificateError::BadEncoding)?;
    let validity = certificate.validity();
    if now < validity.not_before {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after {
        return Err(CertificateError::Expired.into());
    }
    let usage = certificate.extended_key_usage().ok().flatten();
    if usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Err(CertificateError::InvalidPurpose.into());
    }
    match certificate.subject_alternative_name() {
        Ok(None) if has_common_name(&certificate, server_name) => Ok(()),
        _ => Ok(verify_server_name(&ParsedCertificate::try_from(der)?, server_name)?),
    }
}

/// Whether a certificate without other names has this one, as those of `openssl req -x509 -subj /CN=host` have it.
fn has_common_name(certificate: &X509Certificate<'_>, server_name: &ServerName<'_>) -> bool {
    let mut names = certificate.subject().iter_common_name();
    let wanted = server_name.to_str();
    names.any(|name| name.as_str().is_ok_and(|name| name.eq_ignore_ascii_case(&wanted)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    };

    use super::*;

    const NOW: u64 = 1_800_000_000;

    /// Returns what the verifier says of a certificate that is its own authority and the only one in the file.
    fn verify(params: &CertificateParams, name: &str, at: u64) -> Result<(), String> {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(certificate.clone()).expect("an authority");
        let provider = Arc::new(ring::default_provider());
        let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let authorities = authorities.build().expect("a verifier");
        let verifier = Verifier { authorities, named: vec![certificate.clone()] };
        let name = ServerName::try_from(name).expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at));
        let verified = verifier.verify_server_cert(&certificate, &[], &name, &[], now);
        verified.map(drop).map_err(|error| error.to_string())
    }

    /// Returns the parameters of a certificate like those of `openssl req -x509`.
    fn params(names: &[&str]) -> CertificateParams {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Mail.example.org");
        params
    }

    #[test]
    fn certificate_that_is_its_own_authority_is_trusted_for_its_names() {
        for (names, name, is_valid) in [
            (&["localhost", "127.0.0.1"][..], "localhost", true),
            (&["localhost", "127.0.0.1"], "127.0.0.1", true),
            (&["localhost"], "mail.example.org", false),
            (&[], "mail.example.org", true),
            (&[], "localhost", false),
        ] {
            let verified = verify(&params(names), name, NOW);
            assert_eq!(verified.is_ok(), is_valid, "{names:?} {name}: {verified:?}");
        }
    }

    #[test]
    fn certificate_of_another_time_or_purpose_is_refused() {
        let at = |seconds: u64| verify(&params(&["localhost"]), "localhost", seconds);
        assert!(at(NOW).is_ok());
        for (seconds, why) in [(0, "NotValidYet"), (99_999_999_999, "Expired")] {
            let refused = at(seconds).expect_err(why);
            assert!(refused.contains(why), "{refused}");
        }
        let mut client = params(&["localhost"]);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        assert!(verify(&client, "localhost", NOW).is_err());
    }

    #[test]
    fn other_certificate_is_left_to_the_authorities() {
        let key = KeyPair::generate().expect("a key");
        let other = params(&["localhost"]).self_signed(&key).expect("a certificate");
        assert!(client_config(Vec::new(), vec![other.der().clone()], None).is_ok());
        assert!(
            client_config(Vec::new(), vec![CertificateDer::from(vec![1, 2, 3])], None).is_err()
        );
    }
}
