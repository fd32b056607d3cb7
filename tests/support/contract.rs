//! Checks every response in the tests against the OpenAPI document.
//!
//! Requests are not checked. The service accepts more than the document describes ("true" for a boolean, unknown
//! members), and tests send invalid requests on purpose.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::sync::{Arc, Mutex, OnceLock};

use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, Method};
use jsonschema::{Draft, Registry, Validator};
use serde_json::{Value, json};
use steward::testing::http::build_document;
use steward::testing::router::routes;

/// The URI of the document, for references in it.
const DOCUMENT_URI: &str = "urn:steward:openapi";

/// The document, parsed once per process.
pub struct Contract {
    pub document: Value,
    registry: Registry<'static>,
    operations: Vec<Operation>,
    /// The validators that were built, by the pointers of their schemas.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// An operation of the document.
pub struct Operation {
    pub method: String,
    pub path: String,
    /// The operation's location in the document, as a JSON pointer.
    pub pointer: String,
    queries: BTreeSet<String>,
    answers: BTreeMap<u16, ResponseContract>,
}

/// The documented responses with one status.
struct ResponseContract {
    /// The content types. Empty if the body is empty.
    media: BTreeMap<String, String>,
    headers: BTreeMap<String, HeaderContract>,
}

/// A documented response header.
struct HeaderContract {
    always: bool,
    schema: Validator,
}

/// Returns the contract of this version.
pub fn contract() -> &'static Contract {
    static CONTRACT: OnceLock<Contract> = OnceLock::new();
    CONTRACT.get_or_init(|| Contract::of(build_document(routes().specs())))
}

/// Query parameters that no operation declares: the service ignores them, and links repeat them.
const UNKNOWN: [&str; 8] = ["AFTER", "LIMIT", "SEARCH", "a", "b", "empty", "seek", "unknown"];

/// Headers that belong to the API: a response may only have them if they are declared.
const DECLARED_HEADERS: [&str; 8] = [
    "allow",
    "dry-run",
    "etag",
    "idempotent-replayed",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "retry-after",
];

impl Contract {
    fn of(document: Value) -> Self {
        let registry = Registry::new()
            .draft(Draft::Draft202012)
            .add(DOCUMENT_URI, document.clone())
            .expect("a place of its own")
            .prepare()
            .expect("references that resolve");
        let mut operations = Vec::new();
        for (path, item) in document["paths"].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("operations") {
                let pointer = format!("/paths/{}/{method}", path.replace('/', "~1"));
                operations.push(Operation::of(&document, path, method, pointer, operation));
            }
        }
        Self { document, registry, operations, validators: Mutex::default() }
    }

    /// Returns all operations.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Returns a validator of the schema at this JSON pointer of the document.
    pub fn schema(&self, pointer: &str) -> Arc<Validator> {
        if let Some(built) = self.validators.lock().expect("no panic").get(pointer) {
            return Arc::clone(built);
        }
        let schema = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_registry(&self.registry)
            .should_validate_formats(true)
            .build(&json!({ "$ref": format!("{DOCUMENT_URI}#{}", fragment(pointer)) }))
            .unwrap_or_else(|error| panic!("{pointer}: {error}"));
        let schema = Arc::new(schema);
        let mut validators = self.validators.lock().expect("no panic");
        Arc::clone(validators.entry(pointer.to_owned()).or_insert(schema))
    }

    /// Asserts that a response conforms to the document.
    #[track_caller]
    pub fn check(&self, request: (&Method, &str), status: u16, headers: &HeaderMap, body: &[u8]) {
        let (method, uri) = request;
        let asked = format!("{method} {uri}: {status} {}", String::from_utf8_lossy(body));
        assert!(headers.contains_key("x-request-id"), "{asked}: no X-Request-Id");
        // The pages of the console are not in the document, and neither is the way from the root to them.
        if uri.starts_with("/console") || (uri == "/" && status == 303) {
            return;
        }
        let body = &*plain(headers, body);
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        // The document names the paths of projects by one of their two spellings.
        let path = &path.replacen("/api/environments", "/api/projects", 1);
        let head = method == Method::HEAD;
        let wanted = if head { "get" } else { &method.as_str().to_lowercase() };
        match self.operations.iter().filter(|it| it.leads(path)).max_by_key(|it| it.literals()) {
            None => assert!([404, 429].contains(&status), "{asked}: no such path"),
            Some(found) if !self.operations.iter().any(|it| it.is(found, wanted)) => {
                let refused = (400..500).contains(&status);
                // A CORS preflight is answered before the route is looked up.
                let optioned = method == Method::OPTIONS && [200, 204].contains(&status);
                assert!(refused || optioned || status == 503, "{asked}: no such operation");
            }
            Some(found) => {
                let operation = self.operations.iter().find(|it| it.is(found, wanted));
                let operation = operation.expect("one of this method");
                let promise = operation.answers.get(&status);
                let promise = promise.unwrap_or_else(|| panic!("{asked}: not declared"));
                if status == 200 {
                    operation.knows(query, &asked);
                }
                if status == 200 && headers.contains_key("dry-run") {
                    promise.check_headers(headers, &asked);
                    return self.check_dry_run(operation, body, &asked);
                }
                let schema = || self.schema(&operation.pointer_to(status));
                return promise.check(headers, body, head, schema, &asked);
            }
        }
        if status >= 400 && !head {
            valid(&self.schema("/components/schemas/Error"), body, &asked);
        }
    }

    /// Asserts that the body conforms to the schema of a dry run, and the response in it to that of the operation.
    #[track_caller]
    fn check_dry_run(&self, operation: &Operation, body: &[u8], asked: &str) {
        valid(&self.schema("/components/schemas/DryRunResult"), body, asked);
        let body: Value = serde_json::from_slice(body).expect("JSON");
        let status = u16::try_from(body["status"].as_u64().expect("a status")).expect("a status");
        let promise = operation.answers.get(&status);
        let promise = promise.unwrap_or_else(|| panic!("{asked}: {status} is not declared"));
        if promise.media.is_empty() {
            assert_eq!(body["response"], Value::Null, "{asked}: there should be no body");
        } else {
            let schema = self.schema(&operation.pointer_to(status));
            valid(&schema, body["response"].to_string().as_bytes(), asked);
        }
    }
}

impl Operation {
    fn of(document: &Value, path: &str, method: &str, pointer: String, operation: &Value) -> Self {
        let resolved = |value: &Value| match value["$ref"].as_str() {
            Some(place) => document.pointer(&place[1..]).expect("what is referred to").clone(),
            None => value.clone(),
        };
        let parameters = operation["parameters"].as_array().into_iter().flatten().map(resolved);
        let queries = parameters.filter(|parameter| parameter["in"] == "query");
        let queries = queries.map(|one| one["name"].as_str().expect("a name").to_owned()).collect();
        let responses = operation["responses"].as_object().expect("responses");
        let answers = responses
            .iter()
            .map(|(status, response)| {
                let response = resolved(response);
                let content = response["content"].as_object();
                let media = content.into_iter().flatten().map(|(media, _)| {
                    let media = media.to_owned();
                    (media.clone(), media.replace('/', "~1"))
                });
                let headers = response["headers"].as_object().into_iter().flatten();
                let headers = headers.map(|(name, header)| {
                    let header = resolved(header);
                    let schema = jsonschema::draft202012::new(&header["schema"]);
                    let schema = schema.expect("the schema of a header");
                    let always = header["required"] == true;
                    (name.to_lowercase(), HeaderContract { always, schema })
                });
                let promise =
                    ResponseContract { media: media.collect(), headers: headers.collect() };
                (status.parse().expect("a status"), promise)
            })
            .collect();
        Self { method: method.to_owned(), path: path.to_owned(), pointer, queries, answers }
    }

    /// Returns the method and path: `GET /api/users/@me/`.
    pub fn name(&self) -> String {
        format!("{} {}", self.method.to_uppercase(), self.path)
    }

    /// Returns what the document says about the operation.
    pub fn told(&self) -> &'static Value {
        contract().document.pointer(&self.pointer).expect("an operation")
    }

    /// Returns the responses of success with their status.
    pub fn successes(&self) -> impl Iterator<Item = (&'static str, &'static Value)> {
        let responses = self.told()["responses"].as_object().expect("responses").iter();
        let responses = responses.map(|(status, response)| (status.as_str(), response));
        responses.filter(|(status, _)| status.starts_with('2'))
    }

    /// Returns whether a path matches the template, with or without the slash at the end.
    fn leads(&self, path: &str) -> bool {
        let parts = |path: &'_ str| -> Vec<String> {
            let decoded = |part: &str| part.replace("%40", "@");
            path.trim_end_matches('/').split('/').map(decoded).collect()
        };
        let (own, asked) = (parts(&self.path), parts(path));
        let fits = |(own, asked): (&String, &String)| {
            if own.starts_with('{') { !asked.is_empty() } else { own == asked }
        };
        own.len() == asked.len() && own.iter().zip(&asked).all(fits)
    }

    /// Returns the number of literal parts of the path. If several templates match, the one with the most is right.
    fn literals(&self) -> usize {
        self.path.split('/').filter(|part| !part.starts_with('{')).count()
    }

    fn is(&self, other: &Self, method: &str) -> bool {
        self.path == other.path && self.method == method
    }

    /// Asserts that the operation declares the parameters of a test's query.
    #[track_caller]
    fn knows(&self, query: &str, asked: &str) {
        for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
            let known = self.queries.contains(&*name) || UNKNOWN.contains(&&*name);
            assert!(known, "{asked}: the query's `{name}` is not declared");
        }
    }

    /// Returns the location of the schema of JSON responses with this status.
    fn pointer_to(&self, status: u16) -> String {
        let response = format!("{}/responses/{status}", self.pointer);
        let document = &contract().document;
        let response = match document.pointer(&response).and_then(|it| it["$ref"].as_str()) {
            Some(place) => place[1..].to_owned(),
            None => response,
        };
        format!("{response}/content/application~1json/schema")
    }
}

impl ResponseContract {
    #[track_caller]
    fn check(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        head: bool,
        schema: impl FnOnce() -> Arc<Validator>,
        asked: &str,
    ) {
        self.check_headers(headers, asked);
        let sent = headers.get(CONTENT_TYPE).map(|media| media.to_str().expect("a content type"));
        let sent = sent.map(|media| media.split(';').next().expect("a first part").trim());
        if self.media.is_empty() {
            assert!(sent.is_none() && body.is_empty(), "{asked}: there should be no body");
            return;
        }
        let media = sent.unwrap_or_else(|| panic!("{asked}: no content type"));
        assert!(self.media.contains_key(media), "{asked}: {media} is not declared");
        if media == "application/json" && !head {
            valid(&schema(), body, asked);
        }
    }

    #[track_caller]
    fn check_headers(&self, headers: &HeaderMap, asked: &str) {
        for (name, promised) in &self.headers {
            let Some(value) = headers.get(name) else {
                assert!(!promised.always, "{asked}: no {name}");
                continue;
            };
            let text = value.to_str().expect("a text");
            let number = text.parse::<u64>().map(Value::from);
            let fits = promised.schema.is_valid(&json!(text))
                || number.is_ok_and(|number| promised.schema.is_valid(&number));
            assert!(fits, "{asked}: {name}: {text}");
        }
        for name in DECLARED_HEADERS {
            let told = self.headers.contains_key(name) || !headers.contains_key(name);
            assert!(told, "{asked}: {name} is not declared");
        }
    }
}

/// Returns the body without compression.
fn plain<'b>(headers: &HeaderMap, body: &'b [u8]) -> Cow<'b, [u8]> {
    if body.is_empty() || headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding != "gzip") {
        return Cow::Borrowed(body);
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("gzip");
    Cow::Owned(plain)
}

#[track_caller]
fn valid(schema: &Validator, body: &[u8], asked: &str) {
    let body: Value = serde_json::from_slice(body).unwrap_or_else(|_| panic!("{asked}: no JSON"));
    let errors = schema.iter_errors(&body);
    let errors: Vec<_> = errors.map(|it| format!("{it} at {}", it.instance_path())).collect();
    assert!(errors.is_empty(), "{asked}\ndoes not conform to the document: {errors:#?}");
}

/// Escapes a JSON pointer for the fragment of a URL.
fn fragment(pointer: &str) -> String {
    pointer.replace('%', "%25").replace('{', "%7B").replace('}', "%7D")
}
