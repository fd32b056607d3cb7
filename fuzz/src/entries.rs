//! The fuzz entries. Each one turns any bytes into requests, and panics if a response breaks the service's
//! guarantees. The targets of cargo-fuzz and the bounded run of `cargo test` share them.

use std::fmt::Write as _;

use axum::Router;
use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use steward::testing::http::{Form, RouteSpec};
use steward::testing::operator::{Operation, UserOptions, perform};
use steward::testing::resources::members::Level;
use steward::testing::resources::record_registry;
use steward::testing::router::{router, routes};
use steward::testing::secret::Seed;
use steward::testing::store::{ExportOptions, Progress, Store, canonical_line, import};
use steward::{App, Config, InitialRecords, create};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// A certificate of a fictitious identity provider.
const CERTIFICATE: &str = "MIIBgjCCASmgAwIBAgIUcurCOfYyp2sY8LGxCwlQM0zIPpgwCgYIKoZIzj0EAwIwFjEUMBIGA1UEAwwLaWRwLmV4YW1wbGUwIBcNMjYxMTIwMTk0MzMzWhgPMjEyNjEwMjcxOTQzMzNaMBYxFDASBgNVBAMMC2lkcC5leGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE3mLenwkL7LJcP3z2YOxciAJoy419mswv3BbsjJYMA4gGHE0fsDEQORr5Op+JoL3YoDTYK0pnlNjkwVzacyh2rqNTMFEwHQYDVR0OBBYEFIE5MvIdSC0UUUUu9bbd8ucnp4ytMB8GA1UdIwQYMBaAFIE5MvIdSC0UUUUu9bbd8ucnp4ytMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgaxwh76JXPTxTnJ/RFHjCH88BwRKfH4WSinTcmQeGZ2kCIAoVU/qMSCFAw6ZoMkwiG+d4SWbB1yXwvyZPN6sclBNW";

/// Words of queries.
const WORDS: [&str; 24] = [
    "SELECT",
    "FROM",
    "events",
    "WHERE",
    "*",
    "(",
    ")",
    ",",
    "AS",
    "a",
    "'x'",
    "1",
    "UNION ALL",
    "JOIN",
    "ON",
    "NOT",
    "-",
    "CASE WHEN",
    "END",
    "WITH",
    "[",
    "]",
    "::",
    "OVER (",
];

/// A source of decisions, one byte at a time. It returns zeros after its end.
struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn below(&mut self, end: usize) -> usize {
        let two = self.next() * 256 + self.next();
        two % end.max(1)
    }

    fn one_of<'o, T>(&mut self, of: &'o [T]) -> &'o T {
        &of[self.below(of.len())]
    }

    fn take(&mut self, most: usize) -> &'b [u8] {
        let (taken, rest) = self.0.split_at(self.0.len().min(most));
        self.0 = rest;
        taken
    }

    fn rest(&mut self) -> &'b [u8] {
        self.take(usize::MAX)
    }
}

/// The name of an entry and its function.
pub type Entry = (&'static str, fn(&Bench, &[u8]));

/// All entries.
pub const ENTRIES: [Entry; 10] = [
    ("bodies", Bench::bodies),
    ("fields", Bench::fields),
    ("keys", Bench::keys),
    ("paths", Bench::paths),
    ("queries", Bench::queries),
    ("headers", Bench::headers),
    ("hogql", Bench::hogql),
    ("forms", Bench::forms),
    ("certificates", Bench::certificates),
    ("imports", Bench::imports),
];

/// A running service with one object for each path parameter.
pub struct Bench {
    runtime: Runtime,
    app: App,
    router: Router,
    rows: Vec<RouteSpec>,
    key: String,
    /// The values of path parameters.
    objects: Vec<(&'static str, String)>,
    /// The cookie of a session of the console.
    cookie: String,
    /// Pages of the console, each with the names of the fields of its forms.
    pages: Vec<(String, Vec<String>)>,
    _folder: TempDir,
}

/// The headers that a browser sends with a form of the console.
const FORM_HEADERS: [(&str, &[u8]); 3] = [
    ("host", b"localhost"),
    ("sec-fetch-site", b"same-origin"),
    ("content-type", b"application/x-www-form-urlencoded"),
];

/// Encodes every byte of a text for a form.
fn encode(text: &[u8]) -> String {
    text.iter().fold(String::new(), |mut encoded, byte| {
        let _ = write!(encoded, "%{byte:02X}");
        encoded
    })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Bench {
    /// Creates the service. No request leaves the machine: the DNS resolver is a closed local port.
    pub fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let folder = TempDir::new().expect("a folder");
        let mut config = Config::default();
        config.dns_resolvers = vec!["127.0.0.1:9".parse().expect("an address")];
        config.dns_timeout = std::time::Duration::from_millis(200);
        let made = {
            let _entered = runtime.enter();
            create(&folder.path().join("steward.redb"), config, &InitialRecords::default())
        };
        let (app, made) = made.expect("a data file");
        let rows = routes().specs().to_vec();
        let router = router(app.clone());
        let key = made.api_key.clone();
        let mut bench = Self {
            runtime,
            app,
            router,
            rows,
            key,
            objects: Vec::new(),
            cookie: String::new(),
            pages: Vec::new(),
            _folder: folder,
        };
        let organization = made.organization_id;
        let user = Operation::UserCreate(UserOptions {
            email: "member@corp.example".to_owned(),
            first_name: String::new(),
            last_name: String::new(),
            organization: Some(organization),
            level: Level::Member,
            existing: false,
        });
        let user = perform(&bench.app, user, Progress::silent());
        let user = text(&bench.runtime.block_on(user).expect("a member")["uuid"]);
        let here = format!("/api/organizations/{organization}/");
        let project = format!("/api/projects/{}/", made.project_id);
        let post = |path: String, sent: Value| bench.make(Method::POST, &path, &sent);
        let sent = json!({ "name": "A", "restriction_level": 37 });
        let dashboard = text(&post(format!("{project}dashboards/"), sent)["id"]);
        let one = format!("{project}dashboards/{dashboard}/");
        let tiles = json!({ "tiles": [{ "text": { "body": "A text" } }] });
        bench.make(Method::PATCH, &one, &tiles);
        let sent = json!({ "user_uuid": user, "level": 37 });
        post(format!("{one}collaborators/"), sent);
        let shared =
            bench.make(Method::PATCH, &format!("{one}sharing/"), &json!({ "enabled": true }));
        let sent = json!({
            "name": "A", "destination": { "type": "NoOp", "config": {} }, "interval": "hour",
        });
        let export = text(&post(format!("{project}batch_exports/"), sent)["id"]);
        let domain = text(&post(format!("{here}domains/"), json!({ "domain": "a.example" }))["id"]);
        let invite = json!({ "target_email": "b@corp.example" });
        let invite = text(&post(format!("{here}invites/"), invite)["id"]);
        let other = json!({ "label": "other", "scopes": ["*"] });
        let other = text(&post("/api/personal_api_keys/".to_owned(), other)["id"]);
        bench.objects = vec![
            ("/dashboards/{id}", format!("/dashboards/{dashboard}")),
            ("/domains/{id}", format!("/domains/{domain}")),
            ("/invites/{id}", format!("/invites/{invite}")),
            ("/signup/{id}", format!("/signup/{invite}")),
            ("/batch_exports/{id}", format!("/batch_exports/{export}")),
            ("/personal_api_keys/{id}", format!("/personal_api_keys/{other}")),
            ("{organization_id}", organization.to_string()),
            ("{project_id}", made.project_id.to_string()),
            ("{dashboard_id}", dashboard),
            ("{user__uuid}", user),
            ("{token}", text(&shared["access_token"])),
            ("{asset}", "swagger-ui.css".to_owned()),
        ];
        bench.sign_in();
        let here = format!("/console/projects/{}/", made.project_id);
        for path in [
            "/console/profile/".to_owned(),
            format!("{here}batch_exports/new/?destination=S3"),
            format!("{here}batch_exports/new/?destination=BigQuery"),
            bench.fill(&format!("{here}batch_exports/{{id}}/")),
            format!("{here}insights/new/"),
        ] {
            let (html, _) = bench.page(Method::GET, &path, String::new());
            let names = html.split(" name=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let names = names.map(str::to_owned).collect();
            bench.pages.push((path, names));
        }
        bench
    }

    fn make(&self, method: Method, path: &str, sent: &Value) -> Value {
        let headers = [("content-type", b"application/json".as_slice())];
        let (status, body) = self.ask(&method, path, Some(&self.key), &headers, sent.to_string());
        assert!((200..300).contains(&status), "{method} {path}: {status} {body}");
        body
    }

    /// Signs in to the console.
    fn sign_in(&mut self) {
        let form = format!("key={}", self.key);
        let (_, cookie) = self.page(Method::POST, "/console/sign_in/", form);
        cookie.split(';').next().expect("a cookie").clone_into(&mut self.cookie);
    }

    /// Opens a page, or sends its form. Returns its HTML and the cookie that it sets.
    fn page(&self, method: Method, path: &str, form: String) -> (String, String) {
        let mut request = Request::new(Body::from(form));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().expect("a path");
        let cookie = ("cookie", self.cookie.as_bytes());
        for (name, value) in FORM_HEADERS.into_iter().chain([cookie]) {
            let value = HeaderValue::from_bytes(value).expect("a value");
            request.headers_mut().insert(name, value);
        }
        self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.expect("an answer");
            assert!(response.status().as_u16() < 400, "{path}: {}", response.status());
            let cookie = response.headers().get("set-cookie");
            let cookie = cookie.map_or("", |value| value.to_str().expect("text")).to_owned();
            let body = response.into_body().collect().await.expect("a whole body").to_bytes();
            (String::from_utf8(body.to_vec()).expect("UTF-8"), cookie)
        })
    }

    /// Replaces the parameters of a path.
    fn fill(&self, path: &str) -> String {
        let fill = |path: String, (name, value): &(&str, String)| path.replace(name, value);
        self.objects.iter().fold(path.to_owned(), fill)
    }

    /// Sends a request if it is valid HTTP, and checks the guarantees of every response.
    fn ask(
        &self,
        method: &Method,
        path: &str,
        key: Option<&str>,
        headers: &[(&str, &[u8])],
        body: impl Into<Body>,
    ) -> (u16, Value) {
        let Ok(uri) = path.parse::<Uri>() else { return (0, Value::Null) };
        let mut request = Request::new(body.into());
        (*request.method_mut(), *request.uri_mut()) = (method.clone(), uri);
        let bearer = key.map(|key| [b"Bearer ", key.as_bytes()].concat());
        let key = bearer.as_deref().map(|bearer| (AUTHORIZATION.as_str(), bearer));
        for (name, value) in headers.iter().copied().chain(key) {
            let (Ok(name), Ok(value)) =
                (name.parse::<HeaderName>(), HeaderValue::from_bytes(value))
            else {
                return (0, Value::Null);
            };
            request.headers_mut().append(name, value);
        }
        let answering = async {
            let response = self.router.clone().oneshot(request).await.expect("an answer");
            let (parts, body) = response.into_parts();
            (parts, body.collect().await.expect("a whole body").to_bytes())
        };
        let (parts, bytes) = self.runtime.block_on(answering);
        let status = parts.status.as_u16();
        let body: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        let asked = || format!("{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
        // Only domain verification depends on another server, which is unreachable here.
        let may_be_unavailable = path.contains("verify");
        assert!(status < 500 || (status == 503 && may_be_unavailable), "{}", asked());
        if status >= 400 && *method != Method::HEAD && !bytes.is_empty() {
            let is_page = parts
                .headers
                .get("content-type")
                .is_some_and(|kind| kind == "text/html; charset=utf-8");
            let names: Vec<_> =
                body.as_object().map(|body| body.keys().collect()).unwrap_or_default();
            assert!(is_page || names == ["type", "code", "detail", "attr"], "{}", asked());
        }
        (status, body)
    }

    /// Whether a row can be called repeatedly without deleting an object that other entries need.
    fn keeps(row: &RouteSpec) -> bool {
        row.method != Method::DELETE && !row.path.contains("/roll/")
    }

    fn row(&self, bytes: &mut Bytes<'_>) -> &RouteSpec {
        let rows: Vec<&RouteSpec> = self.rows.iter().filter(|row| Self::keeps(row)).collect();
        rows[bytes.below(rows.len())]
    }

    fn row_with_body(&self, bytes: &mut Bytes<'_>) -> &RouteSpec {
        let takes = |row: &&RouteSpec| Self::keeps(row) && row.body.is_some();
        let rows: Vec<&RouteSpec> = self.rows.iter().filter(takes).collect();
        rows[bytes.below(rows.len())]
    }

    /// Sends a JSON body. If it deletes the dashboard, restores the dashboard.
    fn send(&self, row: &RouteSpec, body: impl Into<Body>) {
        let path = self.fill(row.path);
        let headers = [("content-type", b"application/json".as_slice())];
        self.ask(&row.method, &path, Some(&self.key), &headers, body);
        if row.method == Method::PATCH && row.path.ends_with("/dashboards/{id}/") {
            let sent = json!({ "deleted": false }).to_string();
            self.ask(&row.method, &path, Some(&self.key), &headers, sent);
        }
    }

    /// Any bytes as the body of an operation.
    fn bodies(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let row = self.row_with_body(&mut bytes);
        self.send(row, bytes.rest().to_vec());
    }

    /// A nearly valid body: an operation's example with some parts changed.
    fn fields(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let row = self.row_with_body(&mut bytes);
        let mut body: Value = serde_json::from_str(row.example).unwrap_or_else(|_| json!({}));
        let known = row.body.map(|takes| {
            let schema = serde_json::to_value((takes.schema)()).unwrap_or_default();
            let names = schema["properties"].as_object().cloned().unwrap_or_default();
            names.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        });
        for _ in 0..=bytes.below(4) {
            let some = unusual(&mut bytes);
            match (bytes.below(3), known.as_deref()) {
                (0, Some(names @ [_, ..])) if body.is_object() => {
                    body[bytes.one_of(names).as_str()] = some;
                }
                _ => *part(&mut body, &mut bytes) = some,
            }
        }
        self.send(row, body.to_string());
    }

    /// Any key, or a nearly valid one. Only the exact key may succeed.
    fn keys(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let mut key = self.key.clone().into_bytes();
        match bytes.below(4) {
            0 => key = bytes.take(200).to_vec(),
            1 => key.truncate(bytes.below(self.key.len())),
            2 => key.extend(bytes.take(20)),
            _ => {
                let at = bytes.below(key.len());
                key[at] = u8::try_from(bytes.next()).unwrap_or(b'0');
            }
        }
        let header = [b"Bearer ".as_slice(), &key].concat();
        let headers = [(AUTHORIZATION.as_str(), header.as_slice())];
        let (status, _) = self.ask(&Method::GET, "/api/users/@me/", None, &headers, "");
        // Whitespace around a key is ignored.
        let right = key.trim_ascii() == self.key.as_bytes();
        assert!([0, 401].contains(&status) || (right && status == 200), "{status}: {header:?}");
    }

    /// A nearly valid path, with any method.
    fn paths(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let methods = ["GET", "HEAD", "OPTIONS", "PUT", "POST", "PATCH", "TRACE", "BREW"];
        let method = *bytes.one_of(&methods);
        let mut path = self.row(&mut bytes).path.to_owned();
        let some = String::from_utf8_lossy(bytes.take(40)).into_owned();
        let parts = [
            "@current",
            "@me",
            "-1",
            "0",
            "18446744073709551616",
            "%00",
            "%ff",
            "..",
            "",
            "%2F",
            "é",
        ];
        let parts: Vec<&str> = parts.into_iter().chain([some.as_str()]).collect();
        while let Some((before, rest)) = path.split_once('{') {
            let after = rest.split_once('}').map_or("", |(_, after)| after);
            path = format!("{before}{}{after}", bytes.one_of(&parts));
        }
        let method = method.parse().expect("a method");
        self.ask(&method, &path, Some(&self.key), &[], bytes.rest().to_vec());
    }

    /// Any query on any list or object.
    fn queries(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let rows: Vec<&RouteSpec> =
            self.rows.iter().filter(|row| row.method == Method::GET).collect();
        let row = rows[bytes.below(rows.len())];
        let known = row.query.iter().map(|parameter| parameter.name);
        let names: Vec<&str> = known
            .chain(["limit", "offset", "search", "order", "token", "format", "page"])
            .collect();
        let values = [
            "",
            "0",
            "-1",
            "1e9",
            "99999999999999999999",
            "%",
            "%zz",
            "%00",
            "%ff%fe",
            "true",
            "null",
        ];
        let mut path = self.fill(row.path) + "?";
        for _ in 0..=bytes.below(4) {
            let name = bytes.one_of(&names);
            let _ = match bytes.below(2) {
                0 => write!(path, "{name}={}&", bytes.one_of(&values)),
                _ => write!(path, "{name}={}&", String::from_utf8_lossy(bytes.take(24))),
            };
        }
        self.ask(&row.method, &path, Some(&self.key), &[], "");
    }

    /// Any values for the headers that the service reads.
    fn headers(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let names = [
            "if-match",
            "if-none-match",
            "idempotency-key",
            "content-type",
            "content-encoding",
            "accept",
            "accept-encoding",
            "range",
            "host",
            "origin",
            "x-forwarded-for",
            "forwarded",
            "x-forwarded-proto",
            "x-request-id",
            "access-control-request-method",
            "expect",
        ];
        let row = self.row(&mut bytes);
        let values: [&[u8]; 10] = [
            b"*",
            b"\"1-0000000000000000\"",
            b"W/\"1-0\"",
            b"\"",
            b"",
            b"application/json",
            b"application/json; charset=\"",
            b"gzip;q=2, *;q=x",
            b"bytes=0-",
            b"\xff\xfe",
        ];
        let mut sent = vec![("content-type", b"application/json".as_slice())];
        for _ in 0..=bytes.below(4) {
            let name = *bytes.one_of(&names);
            let value = match bytes.below(2) {
                0 => *bytes.one_of(&values),
                _ => bytes.take(40),
            };
            sent.push((name, value));
        }
        self.ask(&row.method, &self.fill(row.path), Some(&self.key), &sent, bytes.rest().to_vec());
    }

    /// Any query of an export, or a nearly valid one.
    fn hogql(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let query = match bytes.below(3) {
            0 => String::from_utf8_lossy(bytes.rest()).into_owned(),
            1 => {
                let words = bytes.rest().iter().map(|byte| WORDS[usize::from(*byte) % WORDS.len()]);
                words.collect::<Vec<_>>().join(" ")
            }
            _ => {
                let deep = bytes.below(12_000);
                let word = *bytes.one_of(&["(", "NOT ", "-", "[", "a(", "CASE WHEN "]);
                format!("SELECT {} FROM events", word.repeat(deep))
            }
        };
        let sent = json!({
            "name": "A", "destination": { "type": "NoOp", "config": {} }, "interval": "hour",
            "hogql_query": query,
        });
        let path = self.fill("/api/projects/{project_id}/batch_exports/");
        let headers = [("content-type", b"application/json".as_slice())];
        self.ask(&Method::POST, &path, Some(&self.key), &headers, sent.to_string());
    }

    /// Any bytes as a form, or nearly valid fields. What a form contains is read back from its text. A page refuses the
    /// form, or sends it to the API as JSON.
    fn forms(&self, data: &[u8]) {
        if let Ok(form) = Form::parse(data, 100) {
            let pair = |(name, value): (&str, &str)| {
                format!("{}={}", encode(name.as_bytes()), encode(value.as_bytes()))
            };
            let text = form.fields().map(pair).collect::<Vec<_>>().join("&");
            let again = Form::parse(text.as_bytes(), 100);
            assert!(again.is_ok_and(|again| form.fields().eq(again.fields())), "{text}");
        }
        let mut bytes = Bytes(data);
        let (path, names) = bytes.one_of(&self.pages);
        let values = ["", "true", "0", "-1", "1e400", "{}", "[", "null", "S3", "command", "\r\n"];
        let mut form = String::new();
        for _ in 0..bytes.below(12) {
            let name = bytes.one_of(names);
            let value = match bytes.below(2) {
                0 => bytes.one_of(&values).as_bytes(),
                _ => bytes.take(24),
            };
            let _ = write!(form, "{}={}&", encode(name.as_bytes()), encode(value));
        }
        let form = [form.as_bytes(), bytes.rest()].concat();
        let cookie = ("cookie", self.cookie.as_bytes());
        let headers: Vec<_> = FORM_HEADERS.into_iter().chain([cookie]).collect();
        let (status, _) = self.ask(&Method::POST, path, None, &headers, form);
        assert!([200, 303, 400, 412, 413, 422].contains(&status), "{path}: {status}");
    }

    /// An export with changed bytes and a matching hash. The import fails, or creates a consistent file.
    fn imports(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let folder = TempDir::new().expect("a folder");
        let exporting = ExportOptions {
            registry: record_registry(),
            secrets: bytes.below(2) == 1,
            organization: None,
            folder: folder.path().to_owned(),
            progress: Progress::silent(),
        };
        let export = self.runtime.block_on(self.app.store().export(exporting)).expect("an export");
        let mut all = Vec::new();
        export.write_to(&mut all).expect("its lines");
        let end = all.iter().position(|byte| *byte == b'\n').expect("a first line");
        let mut lines = all.split_off(end + 1);
        for _ in 0..=bytes.below(3) {
            let at = bytes.below(lines.len());
            match bytes.below(3) {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, b"\"{}[]0,\n\x00"[bytes.below(9)]),
                _ => lines[at] = u8::try_from(bytes.next()).unwrap_or(0),
            }
        }
        let mut hasher = blake3::Hasher::new();
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let line: Value = serde_json::from_slice(line).unwrap_or(Value::Null);
            hasher.update(&canonical_line(&line).expect("a line"));
        }
        let mut header: Value = serde_json::from_slice(&all).expect("a header");
        header["blake3"] = json!(hasher.finalize().to_hex().as_str());
        let path = folder.path().join("imported.redb");
        let text = [header.to_string().as_bytes(), b"\n", lines.as_slice()].concat();
        let draw = Seed::generate().rng();
        if import(&path, text.as_slice(), &record_registry(), draw, &Progress::silent()).is_err() {
            assert!(!path.exists(), "a failed import left a file");
            return;
        }
        let _entered = self.runtime.enter();
        let store = Store::open(&path, 1 << 20).expect("an imported file opens");
        let found = self
            .runtime
            .block_on(store.check(record_registry(), Progress::silent()))
            .expect("a check");
        assert_eq!(found.problem_count, 0, "{:?}", found.problems);
        self.runtime.block_on(store.close());
    }

    /// Any certificate, or a nearly valid one.
    fn certificates(&self, data: &[u8]) {
        let mut bytes = Bytes(data);
        let mut der = STANDARD.decode(CERTIFICATE).expect("a certificate");
        let how = bytes.below(4);
        match how {
            0 => der = bytes.rest().to_vec(),
            1 => der.truncate(bytes.below(der.len())),
            _ => {
                for _ in 0..=bytes.below(6) {
                    let at = bytes.below(der.len());
                    der[at] = u8::try_from(bytes.next()).unwrap_or(0);
                }
            }
        }
        let base64 = STANDARD.encode(&der);
        let text = match bytes.below(3) {
            0 => String::from_utf8_lossy(&der).into_owned(),
            1 => base64,
            _ => format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----"),
        };
        let path = self.fill("/api/organizations/{organization_id}/domains/{id}/");
        let headers = [("content-type", b"application/json".as_slice())];
        let sent = json!({ "saml_x509_cert": text }).to_string();
        let (status, body) = self.ask(&Method::PATCH, &path, Some(&self.key), &headers, sent);
        assert!([200, 400].contains(&status), "{status} {body}");
    }

    /// Asserts that the data file is consistent.
    pub fn check(&self) {
        let findings = perform(&self.app, Operation::Check, Progress::silent());
        let findings = self.runtime.block_on(findings).expect("a check");
        assert_eq!(findings["problem_count"], 0, "{findings}");
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.runtime.block_on(self.app.close());
    }
}

/// Returns an unusual field value.
fn unusual(bytes: &mut Bytes<'_>) -> Value {
    let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    match bytes.below(24) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(0),
        3 => json!(-1),
        4 => json!(i64::MIN),
        5 => json!(u64::MAX),
        6 => json!(1e308),
        7 => json!(-0.0),
        8 => json!(21.0),
        9 => json!(""),
        10 => json!(" \t\n "),
        11 => json!("\u{0}"),
        12 => json!("x".repeat(bytes.below(40_000))),
        13 => json!("\u{202e}\u{feff}\u{1f980}"),
        14 => json!([]),
        15 => json!({}),
        16 => nested(bytes.below(130)),
        17 => json!([null, {}, [], "", 1]),
        18 => {
            json!({ "id": 1, "level": "admin", "type": "S3", "config": null, "text": { "body": "" } })
        }
        19 => json!("9999-12-31T23:59:59.999999+23:59"),
        20 => json!("18446744073709551616"),
        21 => json!({ "": { "": { "": "" } } }),
        22 => json!(vec![json!("a"); bytes.below(2000)]),
        _ => json!(String::from_utf8_lossy(bytes.take(30))),
    }
}

/// Returns a random part of a value, or the value itself.
fn part<'v>(value: &'v mut Value, bytes: &mut Bytes<'_>) -> &'v mut Value {
    let mut at = value;
    for _ in 0..bytes.below(4) {
        let inner = match at {
            Value::Object(members) if !members.is_empty() => bytes.below(members.len()),
            Value::Array(items) if !items.is_empty() => bytes.below(items.len()),
            _ => break,
        };
        at = match at {
            Value::Object(members) => members.values_mut().nth(inner).expect("index in range"),
            Value::Array(items) => &mut items[inner],
            other => other,
        };
    }
    at
}
