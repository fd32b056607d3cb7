//! HTTPS with the real binary: requests, replacement of the certificate, and limits on handshakes.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use rcgen::generate_simple_self_signed;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};

use crate::prelude::*;

/// A certificate for `localhost` and its private key.
struct Pair {
    certificate: String,
    key: String,
    root: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Self {
        let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        Self {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            root: made.cert.der().clone(),
        }
    }

    /// Replaces both files, each atomically.
    fn put(&self, site: &DataFolder) {
        replace(site, "cert.pem", &self.certificate);
        replace(site, "key.pem", &self.key);
    }

    /// Opens a connection that trusts only this certificate.
    fn connect(&self, server: &Server) -> io::Result<Client> {
        self.connect_as(server.address, &[&TLS13, &TLS12], &["http/1.1"])
    }

    fn connect_as(
        &self,
        address: SocketAddr,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> io::Result<Client> {
        self.shake_hands(raw(address), versions, protocols)
    }

    /// Completes the handshake on an open connection.
    fn shake_hands(
        &self,
        stream: TcpStream,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> io::Result<Client> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).expect("a root");
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let mut stream = StreamOwned::new(session, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Client(stream))
    }
}

/// A TLS connection.
struct Client(StreamOwned<ClientConnection, TcpStream>);

impl Client {
    /// Sends a request and returns the head and the body of the response. The connection stays open.
    fn ask(&mut self, method: &str, path: &str, key: &str, body: &str) -> (String, Value) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost:8443\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).expect("a head");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.expect("a length").parse().expect("a number")];
        self.0.read_exact(&mut body).expect("a body");
        (head, serde_json::from_slice(&body).unwrap_or_default())
    }

    fn is_served(&mut self) -> bool {
        self.ask("GET", "/_livez", "", "").0.starts_with("HTTP/1.1 200 OK\r\n")
    }
}

fn raw(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(TEST_TIMEOUT)).expect("a timeout");
    stream
}

/// Reads until the server closes the connection.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("it hangs: {error}"),
        _ => bytes,
    }
}

fn replace(site: &DataFolder, name: &str, text: &str) {
    fs::write(site.path("new"), text).expect("written");
    fs::rename(site.path("new"), site.path(name)).expect("replaced");
}

const FLAGS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

fn serving(args: &[&str]) -> (Pair, DataFolder, Value, Server) {
    let (site, made) = DataFolder::with_workspace();
    let pair = Pair::new();
    pair.put(&site);
    let server = site.serve(&[&FLAGS[..], args].concat());
    (pair, site, made, server)
}

#[test]
fn https_is_served_and_used_in_links() {
    let (pair, _site, made, server) = serving(&[]);
    let url = format!("https://{}", server.address);
    assert_eq!(server.startup_message()["url"], url);
    let key = made["api_key"].as_str().expect("a key");
    for version in [&TLS12, &TLS13] {
        let mut client = pair.connect_as(server.address, &[version], &["h2", "http/1.1"]).unwrap();
        assert_eq!(client.0.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(client.0.conn.protocol_version(), Some(version.version));
        let (head, _) = client.ask("POST", "/api/projects/1/dashboards/", key, "{\"name\":\"A\"}");
        assert!(head.starts_with("HTTP/1.1 201 Created\r\n"), "{head}");
        assert!(head.contains("\r\nstrict-transport-security: max-age=63072000\r\n"), "{head}");
    }
    let mut client = pair.connect(&server).unwrap();
    let large = json!({ "name": "A", "ignored": "x".repeat(1_000_000) }).to_string();
    let (head, _) = client.ask("POST", "/api/projects/1/dashboards/", key, &large);
    assert!(head.starts_with("HTTP/1.1 201 "), "{head}");
    let (_, document) = client.ask("GET", "/api/schema/?format=json", "", "");
    assert!(document.to_string().len() > 100_000, "{document}");
    let (_, list) = client.ask("GET", "/api/projects/1/dashboards/?limit=1", key, "");
    let next = "https://localhost:8443/api/projects/1/dashboards/?limit=1&offset=1";
    assert_eq!((&list["count"], &list["next"]), (&json!(3), &json!(next)));
    let invites =
        format!("/api/organizations/{}/invites/", made["organization_id"].as_str().unwrap());
    let (head, invite) =
        client.ask("POST", &invites, key, "{\"target_email\":\"ann@corp.example\"}");
    let link = invite["accept_url"].as_str().unwrap_or_else(|| panic!("{head}{invite}"));
    assert!(link.starts_with(&format!("{url}/signup/")), "{link}");
    assert!(server.stop().contains("stopped"));
}

#[test]
fn new_certificate_is_reloaded_automatically_and_connections_stay_open() {
    let (old, site, _, server) = serving(&[]);
    let mut kept = old.connect(&server).unwrap();
    assert!(kept.is_served());
    let new = Pair::new();
    new.put(&site);
    let mut client = until("the server uses the new certificate", || new.connect(&server).ok());
    assert!(client.is_served() && kept.is_served() && old.connect(&server).is_err());
    let log = server.stop();
    // Twice if the server looked while the files were being replaced.
    assert!((1..=2).contains(&log.matches("the certificate was reloaded").count()), "{log}");
    assert!(!log.contains("PRIVATE KEY"), "{log}");
}

#[test]
fn sighup_reloads_the_certificate_and_an_invalid_one_changes_nothing() {
    let (site, old, new) = (DataFolder::empty(), Pair::new(), Pair::new());
    old.put(&site);
    let manager = SystemdManager::of(&site);
    let server = Server::start(&mut manager.steward(&site, &FLAGS, None)).expect("it serves");
    manager.assert_received("READY=1");
    let hang_up = || {
        server.signal(Signal::HUP);
        manager.assert_received("READY=1");
    };
    let no_certificate = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
    // The last certificate does not match the key, as happens while both files are being replaced.
    for broken in ["", "nonsense", no_certificate, &new.certificate] {
        replace(&site, "cert.pem", broken);
        hang_up();
        assert!(old.connect(&server).unwrap().is_served() && new.connect(&server).is_err());
    }
    fs::remove_file(site.path("cert.pem")).expect("removed");
    hang_up();
    assert!(old.connect(&server).unwrap().is_served());
    new.put(&site);
    hang_up();
    assert!(new.connect(&server).unwrap().is_served() && old.connect(&server).is_err());
    let log = server.stop();
    for told in ["cert.pem: ", "key.pem is not the key of the certificate in cert.pem"] {
        assert!(log.contains(&format!("the certificate was not reloaded: {told}")), "{log}");
    }
}

#[test]
fn invalid_certificate_files_are_rejected_at_startup_by_name() {
    let site = DataFolder::empty();
    let (one, other) = (Pair::new(), Pair::new());
    let refuses = |certificate: &str, key: &str, told: &str| {
        replace(&site, "cert.pem", certificate);
        replace(&site, "key.pem", key);
        let run = site.try_serve(&FLAGS).err().expect("it does not serve");
        assert!(!run.stderr.contains("PRIVATE"), "{run:?}");
        run.assert_usage_error(told);
    };
    let mismatch = "key.pem is not the key of the certificate in cert.pem";
    refuses(&one.certificate, &other.key, mismatch);
    // The server's own certificate must be the first one.
    refuses(&format!("{}{}", other.certificate, one.certificate), &one.key, mismatch);
    refuses("", &one.key, "cert.pem: it contains no PEM certificate");
    refuses(&one.key, &one.key, "cert.pem: it contains no PEM certificate");
    refuses(&one.certificate[..100], &one.key, "cert.pem: ");
    refuses("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n", &one.key, "cert.pem");
    let keyless = "key.pem: it contains no private key as PEM without encryption";
    refuses(&one.certificate, &one.certificate, keyless);
    refuses(&one.certificate, &one.key.replace("PRIVATE", "ENCRYPTED PRIVATE"), keyless);
    for name in ["cert.pem", "key.pem"] {
        one.put(&site);
        fs::remove_file(site.path(name)).expect("removed");
        let run = site.try_serve(&FLAGS).err().expect("it does not serve");
        run.assert_usage_error(&format!("{name}: No such file or directory"));
    }
    assert!(!site.data().exists(), "a refused command created a file");
    site.run(&["serve", "--tls-cert", "cert.pem"]).assert_usage_error("--tls-key <FILE>");
    site.run(&["serve", "--tls-key", "key.pem"]).assert_usage_error("--tls-cert <FILE>");
}

/// On a busy machine the handshake may come too late, or the test may look too late. So it tries several times.
#[test]
fn tls_handshake_and_first_headers_share_the_header_timeout() {
    let (pair, _site, _, server) = serving(&["--header-timeout", "3s"]);
    let other = DataFolder::empty();
    let sooner = other.serve(&["--header-timeout", "2s"]);
    let shared = (0..10).any(|_| late_handshake_extends_no_timeout(&pair, &server, &sooner));
    assert!(shared, "connections with a late handshake outlive newer ones in every try");
    until("the server goes on", || pair.connect(&server).ok());
}

/// Opens connections that never complete their first headers, and a newer one when the server with the shorter timeout has
/// closed a connection as old. Returns whether the newer one is still open when the others are closed.
fn late_handshake_extends_no_timeout(pair: &Pair, server: &Server, sooner: &Server) -> bool {
    let [mut silent, mut slow, late] = [(); 3].map(|()| raw(server.address));
    // The record header announces 512 bytes.
    slow.write_all(&[22, 3, 1, 2, 0, 1, 0]).expect("sent");
    rest(&mut raw(sooner.address));
    let newer = raw(server.address);
    let Ok(mut shaken) = pair.shake_hands(late, &[&TLS13], &["http/1.1"]) else { return false };
    let _reset = shaken.0.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n");
    assert_eq!(rest(&mut silent), b"");
    rest(&mut slow);
    let mut text = String::new();
    let _closed_without_goodbye = shaken.0.read_to_string(&mut text);
    assert_eq!(text, "");
    newer.set_nonblocking(true).expect("a socket");
    newer.peek(&mut [0]).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn plain_http_and_invalid_data_on_the_tls_port_are_rejected_at_once() {
    let (pair, _site, _, server) = serving(&[]);
    let nonsense = [0xFF; 4096];
    for sent in [&b"GET /_livez HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\r\n\r\n\r\n", &nonsense] {
        let mut client = raw(server.address);
        client.write_all(sent).expect("sent");
        let answer = rest(&mut client);
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    let refused = pair.connect_as(server.address, &[&TLS13], &["h2"]).err().expect("a refusal");
    assert!(refused.to_string().contains("NoApplicationProtocol"), "{refused}");
    assert!(pair.connect(&server).unwrap().is_served());
}

#[test]
fn handshake_counts_as_a_connection_and_a_silent_one_is_replaced() {
    for limit in ["--connections", "--connections-per-address"] {
        let (pair, _site, _, server) = serving(&[limit, "1"]);
        let mut silent = raw(server.address);
        assert!(pair.connect(&server).unwrap().is_served());
        assert!(matches!(silent.read(&mut [0]), Ok(0)), "{limit}: no room was made");
    }
}

#[test]
fn shutdown_waits_for_neither_handshakes_nor_idle_connections() {
    let (pair, _site, _, server) = serving(&[]);
    let _silent = raw(server.address);
    let mut idle = pair.connect(&server).unwrap();
    assert!(idle.is_served());
    assert!(server.stop().contains("stopped"));
}
