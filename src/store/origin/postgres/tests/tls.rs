//! TLS: when it is needed, and whom it trusts.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::*;
use crate::wait::TEST_TIMEOUT;

/// A server with a certificate for `localhost`, and the file of the authority that issued it.
struct Secured {
    _server: Server,
    folder: TempDir,
    port: u16,
    _reserved: Socket,
}

impl Secured {
    fn start() -> Self {
        Self::with("trust")
    }

    /// Starts a server that knows its clients by this method.
    fn with(method: &str) -> Self {
        let folder = support::folder_for_server();
        let (authority, key) = authority();
        let issuer = Issuer::from_params(&authority, &key);
        let server_key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        let certificate = params.signed_by(&server_key, &issuer).expect("a certificate");
        let written = authority.self_signed(&key).expect("a certificate").pem();
        fs::write(folder.path().join("ca.pem"), &written).expect("a file");
        let client_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new([]).expect("no names");
        params.distinguished_name.push(DnType::CommonName, support::ROLE);
        let client = params.signed_by(&client_key, &issuer).expect("a certificate").pem();
        fs::write(folder.path().join("client.pem"), client).expect("a file");
        fs::write(folder.path().join("client.key"), client_key.serialize_pem()).expect("a file");
        let write = |name: &str, text: &str| support::file_for_server(folder.path(), name, text);
        let (cert, key) =
            (write("cert.pem", &certificate.pem()), write("key.pem", &server_key.serialize_pem()));
        let authorities = write("authorities.pem", &written);
        let (port, reserved) = reserve_port();
        let settings = [
            "listen_addresses = '127.0.0.1'",
            &format!("port = {port}"),
            "ssl = on",
            &format!("ssl_cert_file = '{}'", cert.display()),
            &format!("ssl_key_file = '{}'", key.display()),
            &format!("ssl_ca_file = '{}'", authorities.display()),
        ];
        let server = Server::start(&settings, &format!("hostssl all all 127.0.0.1/32 {method}"));
        Self { _server: server, folder, port, _reserved: reserved }
    }

    fn url(&self, host: &str, sslmode: &str) -> String {
        let (role, limit) = (support::ROLE, TEST_TIMEOUT.as_secs());
        let server = format!("{host}:{}", self.port);
        format!("postgres://{role}@{server}/postgres?sslmode={sslmode}&connect_timeout={limit}")
    }

    fn origin(&self, url: &str, ca: &str) -> Postgres {
        let ca: PathBuf = self.folder.path().join(ca);
        Postgres::new(&url.parse().expect("a URL"), Some(&ca), "node a").expect("an origin")
    }
}

fn authority() -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::new([]).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params, KeyPair::generate().expect("a key"))
}

/// Returns a port that nobody else gets while the socket exists. A server that asks for this port gets it.
fn reserve_port() -> (u16, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_reuse_address(true).expect("an option of sockets");
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
    let address = socket.local_addr().expect("an address").as_socket().expect("an IP address");
    (address.port(), socket)
}

#[test]
#[ignore = "needs PostgreSQL"]
fn certificate_must_come_from_the_authority_and_have_the_name_of_the_host() {
    let secured = Secured::start();
    let origin = secured.origin(&secured.url("localhost", "require"), "ca.pem");
    assert_eq!(origin.head().expect("an answer"), None);
    let link = origin.link().expect("a connection");
    let row = link.ask(ANSWER, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", &[]);
    assert!(row.expect("a row").expect("a row").get::<_, bool>(0));
    let origin = secured.origin(&secured.url("127.0.0.1", "require"), "ca.pem");
    assert_refused(origin.head(), &["TLS", "have the name of the host"]);
    let (other, key) = authority();
    let other = other.self_signed(&key).expect("a certificate").pem();
    fs::write(secured.folder.path().join("other.pem"), other).expect("a file");
    let origin = secured.origin(&secured.url("localhost", "verify-full"), "other.pem");
    assert_refused(origin.head(), &["TLS", "it must come from those in "]);
}

#[test]
#[ignore = "needs PostgreSQL"]
fn client_shows_its_own_certificate() {
    let secured = Secured::with("cert");
    let url = secured.url("localhost", "require");
    assert_refused(secured.origin(&url, "ca.pem").head(), &["certificate"]);
    let folder = secured.folder.path().display();
    let own = format!("{url}&sslcert={folder}/client.pem&sslkey={folder}/client.key");
    assert_eq!(secured.origin(&own, "ca.pem").head().expect("an answer"), None);
    // The authorities may be named in the URL too.
    let named = format!("{own}&sslrootcert={folder}/ca.pem").parse().expect("a URL");
    let origin = Postgres::new(&named, None, "node a").expect("an origin");
    assert_eq!(origin.head().expect("an answer"), None);
    for (missing, what) in [("client.pem", "client.key"), ("client.key", "other.key")] {
        let url = format!("{url}&sslcert={folder}/{missing}&sslkey={folder}/{what}.missing");
        let url = url.parse().expect("a URL");
        let origin = Postgres::new(&url, Some(&secured.folder.path().join("ca.pem")), "a");
        assert_refused(origin, &[&folder.to_string()]);
    }
}

#[test]
fn certificate_of_the_client_needs_its_own_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let ((params, key), (_, other)) = (authority(), authority());
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let files = [
        ("own.pem", certificate),
        ("own.key", key.serialize_pem()),
        ("other.key", other.serialize_pem()),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let own = folder.path().join("own.pem");
    let open = |key: &str| {
        let key = folder.path().join(key);
        let files = format!("sslcert={}&sslkey={}", own.display(), key.display());
        let url = format!("postgres://ann@db.example/x?{files}").parse().expect("a URL");
        Postgres::new(&url, Some(&own), "node a")
    };
    assert!(open("own.key").is_ok());
    assert_refused(open("other.key"), &["other.key", "own.pem"]);
}

#[test]
fn server_without_tls_is_refused_where_it_is_needed() {
    let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = plain.local_addr().expect("an address");
    let answering = thread::spawn(move || {
        let (mut client, _) = plain.accept().expect("a client");
        let mut request = [0; 8];
        client.read_exact(&mut request).expect("a request for TLS");
        client.write_all(b"N").expect("a client");
        // Whatever else the client sends would not be private.
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).expect("the end of the connection");
        rest
    });
    let url = format!("postgres://ann:hunter2@{address}/x?sslmode=require");
    let why = assert_refused(open(&url, "node a").head(), &["server does not support TLS"]);
    assert!(!why.contains("hunter2"), "{why}");
    assert_eq!(answering.join().expect("a server"), b"");
}

#[test]
fn file_of_authorities_must_be_valid() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = "postgres://ann:hunter2@db.example/x".parse().expect("a URL");
    for (name, text) in [("missing", None), ("empty", Some("")), ("other", Some("hunter2"))] {
        let path = folder.path().join(name);
        if let Some(text) = text {
            fs::write(&path, text).expect("a file");
        }
        let why = assert_refused(Postgres::new(&url, Some(&path), "node a"), &[name]);
        assert!(!why.contains("hunter2"), "{why}");
    }
}
