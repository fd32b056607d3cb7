//! A mail server on loopback. It speaks SMTP over real sockets, keeps the mails that it receives, and can misbehave.
//! It runs in a thread of its own, so it continues while a test blocks.

use std::collections::{HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use mail_parser::{MessageParser, MimeHeaders};
use mailin::response::{AUTH_OK, OK};
use mailin::{Action, AuthMechanism, Handler, Response, Session, SessionBuilder};
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::wait::{TEST_TIMEOUT, until};

/// The behaviour of the server on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerBehavior {
    /// Accepts the mail.
    Accept,
    /// Rejects the sender permanently.
    RefuseSender,
    /// Receives the whole mail and answers with a temporary error.
    Later,
    /// Closes the connection after the reply to DATA.
    CutBeforeData,
    /// Receives the whole mail and closes the connection without a reply.
    CutBeforeReply,
    /// Never replies.
    Silent,
    /// Receives the whole mail and replies when the test releases it.
    Hold,
    /// Receives the whole mail and closes the connection when the test releases it.
    HoldThenCut,
    /// Accepts the mail and never replies to QUIT.
    NoGoodbye,
}

/// The configuration of the server.
#[derive(Clone, Default)]
pub struct Setup {
    /// The TLS configuration, and whether TLS starts with the first byte.
    pub tls: Option<(Arc<ServerConfig>, IsFirstContact)>,
    /// The user name and password, if authentication is required.
    pub user: Option<(&'static str, &'static str)>,
    /// Whether the server supports only the LOGIN mechanism.
    pub login_only: bool,
    /// Whether the server writes its keywords in lower case.
    pub lower_case: bool,
}

/// Whether TLS starts with the first byte, or with STARTTLS.
pub type IsFirstContact = bool;

/// A mail as the server received it.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    pub hello: String,
    pub from: String,
    pub to: Vec<String>,
    pub data: Vec<u8>,
    /// Whether the connection was encrypted.
    pub encrypted: bool,
    /// The authenticated user.
    pub user: Option<String>,
}

impl Mail {
    pub fn parsed(&self) -> mail_parser::Message<'_> {
        MessageParser::new().parse(&self.data).expect("a mail")
    }

    pub fn subject(&self) -> String {
        self.parsed().subject().unwrap_or_default().to_owned()
    }

    /// Returns the text and the HTML.
    pub fn bodies(&self) -> (String, String) {
        let parsed = self.parsed();
        let part = |at| {
            parsed.part(at).expect("a part").text_contents().expect("text").replace("\r\n", "\n")
        };
        let kind = |at| {
            parsed
                .part(at)
                .and_then(MimeHeaders::content_type)
                .and_then(|kind| kind.subtype().map(str::to_owned))
        };
        assert_eq!((kind(1).as_deref(), kind(2).as_deref()), (Some("plain"), Some("html")));
        (part(1), part(2))
    }
}

/// The state that the server's thread and the test share.
#[derive(Default)]
struct Shared {
    manners: Mutex<VecDeque<ServerBehavior>>,
    refused: Mutex<HashSet<String>>,
    connections: AtomicUsize,
    /// The data that arrived unencrypted.
    clear: Mutex<String>,
    released: Notify,
}

/// A running mail server. It stops when it is dropped.
pub struct MailServer {
    pub address: SocketAddr,
    mails: mpsc::UnboundedReceiver<Mail>,
    shared: Arc<Shared>,
    #[expect(dead_code, reason = "the server stops when this is dropped")]
    stop: oneshot::Sender<()>,
}

impl MailServer {
    /// Starts a server without TLS and without authentication.
    pub fn start() -> Self {
        Self::with(Setup::default())
    }

    pub fn with(setup: Setup) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (sender, mails) = mpsc::unbounded_channel();
        let (bound, address) = std::sync::mpsc::channel();
        let shared = Arc::new(Shared::default());
        let server = Server { setup, shared: Arc::clone(&shared), mails: sender };
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
                bound.send(listener.local_addr().expect("an address")).expect("a test");
                tokio::select! {
                    () = server.serve(listener) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address: address.recv().expect("a server"), mails, shared, stop }
    }

    /// Returns the URL without TLS.
    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Sets the behaviour on the next connections. Later ones are accepted.
    pub fn next(&self, manners: impl IntoIterator<Item = ServerBehavior>) {
        self.shared.manners.lock().unwrap().extend(manners);
    }

    /// Rejects this recipient from now on.
    pub fn refuse(&self, recipient: &str) {
        self.shared.refused.lock().unwrap().insert(recipient.to_owned());
    }

    /// Replies to one mail that the server holds.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Returns the data that arrived unencrypted.
    pub fn heard_in_clear(&self) -> String {
        self.shared.clear.lock().unwrap().clone()
    }

    /// Waits for the next mail, accepted or not.
    pub async fn mail(&mut self) -> Mail {
        let mail = tokio::time::timeout(TEST_TIMEOUT, self.mails.recv()).await;
        mail.expect("a mail arrives").expect("the server runs")
    }

    /// Does what [`mail`](Self::mail) does, for a test without a runtime.
    pub fn mail_now(&mut self) -> Mail {
        until("a mail arrives", || self.mails.try_recv().ok())
    }

    /// Asserts that no other mail arrived.
    #[track_caller]
    pub fn has_no_more(&mut self) {
        let more = self.mails.try_recv().ok();
        assert!(more.is_none(), "{:?}", more.map(|mail| (mail.to.clone(), mail.subject())));
    }
}

/// The state of the server's thread.
#[derive(Clone)]
struct Server {
    setup: Setup,
    shared: Arc<Shared>,
    mails: mpsc::UnboundedSender<Mail>,
}

impl Server {
    async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let manner = self.shared.manners.lock().unwrap().pop_front();
            self.shared.connections.fetch_add(1, Ordering::SeqCst);
            let server = self.clone();
            tokio::spawn(async move {
                server.answer(stream, manner.unwrap_or(ServerBehavior::Accept)).await;
            });
        }
    }

    async fn answer(self, stream: TcpStream, manner: ServerBehavior) {
        if manner == ServerBehavior::Silent {
            // Waits until the client gives up.
            let _ = stream.readable().await;
            let mut stream = BufReader::new(stream);
            let _ = stream.read_line(&mut String::new()).await;
            return;
        }
        let mail = Arc::new(Mutex::new(Mail::default()));
        let mut talk =
            SmtpConversation { session: self.session(&mail, manner), mail, manner, server: self };
        match talk.server.setup.tls.clone() {
            Some((config, true)) => talk.encrypted(config, stream).await,
            Some((config, false)) => {
                if let Some(stream) = talk.converse(stream, true).await {
                    talk.session.tls_active();
                    talk.encrypted(config, stream).await;
                }
            }
            None => drop(talk.converse(stream, true).await),
        }
    }

    fn session(&self, mail: &Arc<Mutex<Mail>>, manner: ServerBehavior) -> Session<SmtpSession> {
        let mut builder = SessionBuilder::new("mail.test");
        if matches!(self.setup.tls, Some((_, false))) {
            builder.enable_start_tls();
        } else {
            builder.insecure_enable_plaintext_auth();
        }
        if self.setup.user.is_some() {
            builder.enable_auth(AuthMechanism::Login);
            if !self.setup.login_only {
                builder.enable_auth(AuthMechanism::Plain);
            }
        }
        let (user, shared) = (self.setup.user, Arc::clone(&self.shared));
        let desk = SmtpSession { mail: Arc::clone(mail), manner, user, shared };
        builder.build(IpAddr::V4(Ipv4Addr::LOCALHOST), desk)
    }
}

/// One connection.
struct SmtpConversation {
    session: Session<SmtpSession>,
    mail: Arc<Mutex<Mail>>,
    manner: ServerBehavior,
    server: Server,
}

impl SmtpConversation {
    async fn encrypted(&mut self, config: Arc<ServerConfig>, stream: TcpStream) {
        if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
            self.mail.lock().unwrap().encrypted = true;
            self.converse(stream, false).await;
        }
    }

    /// Talks until one side closes the connection. Returns the stream if TLS starts.
    async fn converse<S>(&mut self, stream: S, clear: bool) -> Option<S>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut stream = BufReader::new(stream);
        // After STARTTLS the client speaks first.
        if clear || matches!(self.server.setup.tls, Some((_, true))) {
            stream.write_all(&self.session.greeting().buffer().ok()?).await.ok()?;
        }
        let mut in_data = false;
        loop {
            let mut line = Vec::new();
            if stream.read_until(b'\n', &mut line).await.ok()? == 0 {
                return None;
            }
            if clear {
                self.server.shared.clear.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            }
            let response = self.session.process(&line);
            if response.action == Action::NoReply {
                continue;
            }
            if in_data {
                self.server.mails.send(self.mail.lock().unwrap().clone()).ok()?;
                match self.manner {
                    ServerBehavior::CutBeforeReply => return None,
                    ServerBehavior::Hold => self.server.shared.released.notified().await,
                    ServerBehavior::HoldThenCut => {
                        self.server.shared.released.notified().await;
                        return None;
                    }
                    _ => {}
                }
            }
            in_data = response.code == 354;
            if response.action == Action::Close && self.manner == ServerBehavior::NoGoodbye {
                continue;
            }
            let mut reply = response.buffer().ok()?;
            if self.server.setup.lower_case && line.starts_with(b"EHLO") {
                reply.make_ascii_lowercase();
            }
            stream.write_all(&reply).await.ok()?;
            match response.action {
                Action::UpgradeTls => return Some(stream.into_inner()),
                Action::Close => return None,
                _ if in_data && self.manner == ServerBehavior::CutBeforeData => return None,
                _ => {}
            }
        }
    }
}

/// The handler of an SMTP session.
struct SmtpSession {
    mail: Arc<Mutex<Mail>>,
    manner: ServerBehavior,
    user: Option<(&'static str, &'static str)>,
    shared: Arc<Shared>,
}

impl SmtpSession {
    fn sign_in(&mut self, user: &str, password: &str) -> Response {
        if self.user == Some((user, password)) {
            self.mail.lock().unwrap().user = Some(user.to_owned());
            return AUTH_OK;
        }
        // Repeats the password, as some servers do.
        Response::custom(535, format!("5.7.8 {password} is not the password of {user}"))
    }
}

impl Handler for SmtpSession {
    fn helo(&mut self, _: IpAddr, domain: &str) -> Response {
        domain.clone_into(&mut self.mail.lock().unwrap().hello);
        OK
    }

    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        from.clone_into(&mut self.mail.lock().unwrap().from);
        if self.manner == ServerBehavior::RefuseSender {
            return Response::custom(550, format!("5.7.1 <{from}> may not send"));
        }
        OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        if self.shared.refused.lock().unwrap().contains(to) {
            return Response::custom(550, format!("5.1.1 <{to}> is unknown"));
        }
        self.mail.lock().unwrap().to.push(to.to_owned());
        OK
    }

    fn data(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.mail.lock().unwrap().data.extend_from_slice(line);
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        match self.manner {
            ServerBehavior::Later => Response::custom(451, "4.3.0 come back later".to_owned()),
            _ => Response::custom(250, "2.0.0 taken".to_owned()),
        }
    }

    fn auth_plain(&mut self, _: &str, user: &str, password: &str) -> Response {
        self.sign_in(user, password)
    }

    fn auth_login(&mut self, user: &str, password: &str) -> Response {
        self.sign_in(user, password)
    }
}

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The authority's own certificate.
    pub pem: String,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Creates the TLS configuration of a server with this name.
    pub fn certify(&self, name: &str) -> Arc<ServerConfig> {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
        let key = KeyPair::generate().expect("a key");
        serve_with(&params.signed_by(&key, &self.issuer).expect("a certificate"), &key)
    }
}

/// Creates a certificate as `openssl req -x509` does: that of a server with this name, and its own authority. Returns the
/// server's configuration and the certificate as PEM.
pub fn certify_itself(name: &str) -> (Arc<ServerConfig>, String) {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    (serve_with(&certificate, &key), certificate.pem())
}

fn serve_with(certificate: &Certificate, key: &KeyPair) -> Arc<ServerConfig> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    Arc::new(config.expect("a certificate with its key"))
}
