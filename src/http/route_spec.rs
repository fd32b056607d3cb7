//! An operation of the API, as its entry in the route table declares it.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::Method;
use axum::response::Response;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;

use crate::app::App;
use crate::auth::Requirements;
use crate::base::error::Result;
use crate::input::{FieldType, Input, Schema};

/// An operation of the API.
#[derive(Clone, Default)]
pub struct RouteSpec {
    /// The HTTP method.
    pub method: Method,
    /// The path template, with its trailing slash.
    pub path: &'static str,
    /// The operation id in PostHog's schema, such as `dashboards_retrieve`.
    pub operation: &'static str,
    /// The resource that the operation belongs to.
    pub resource: ResourceInfo,
    /// The access rules.
    pub requirements: Requirements,
    /// A sentence for the document.
    pub summary: &'static str,
    /// The status of a success.
    pub status: u16,
    /// The request body, if it has one.
    pub body: Option<BodySpec>,
    /// An example of the request body, as JSON.
    pub example: &'static str,
    /// The response body, if it has one.
    pub response: Option<ResponseSpec>,
    /// Whether the response has no version and so no `ETag`.
    pub unversioned: bool,
    /// Whether a `Dry-Run` is refused, because what the operation changes is in no transaction.
    pub no_dry_run: bool,
    /// Whether a POST changes nothing, so that an `Idempotency-Key` has no effect.
    pub only_reads: bool,
    /// The content types of a response that is not JSON.
    pub media_types: &'static [&'static str],
    /// The path parameters besides the organization and the project.
    pub in_path: Vec<Parameter>,
    /// The query parameters besides `limit` and `offset`.
    pub query: Vec<Parameter>,
    /// Possible statuses that do not follow from the rest of the row.
    pub extra_statuses: Vec<u16>,
}

/// A page or an action of the console. It is not in the OpenAPI document.
#[derive(Debug, Clone)]
pub struct PageSpec {
    /// The HTTP method.
    pub method: Method,
    /// The path template.
    pub path: &'static str,
    /// The sessions that may open it.
    pub access: PageAccess,
    /// Answers the methods that the path lacks. The router adds `Allow`.
    pub other_method: fn(&App, Request) -> Response,
}

/// The sessions that may open a page of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageAccess {
    /// No session is needed.
    Public,
    /// Any session.
    Session,
    /// A session of a link that `steward console --operator` printed.
    Operator,
}

/// A tag of the document: a group of operations on one resource.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResourceInfo {
    /// The resource's name in URLs.
    pub name: &'static str,
    /// A sentence that describes the resource.
    pub description: &'static str,
}

/// A request body.
#[derive(Clone, Copy)]
pub struct BodySpec {
    /// The schema's name in the document.
    pub name: &'static str,
    /// The schema of one object.
    pub schema: fn() -> Schema,
    /// The most objects in an array, if the operation also takes an array.
    pub max_items: Option<usize>,
}

/// A response body.
#[derive(Clone, Copy)]
pub struct ResponseSpec {
    /// Whether it is one object, a page or an array.
    pub cardinality: Cardinality,
    /// The schema's name in the document.
    pub name: fn() -> Cow<'static, str>,
    /// The schema of one object.
    pub schema: fn() -> RefOr<Schema>,
    /// Adds the schemas that it refers to.
    pub schemas: fn(&mut Vec<(String, RefOr<Schema>)>),
}

/// The number of objects in a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// One object.
    One,
    /// A page of objects in the list envelope.
    Page,
    /// An array of all objects.
    All,
}

/// A parameter of the path or of the query.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// The name in the path's template or in the query.
    pub name: &'static str,
    /// A sentence for the document.
    pub description: &'static str,
    /// The schema of the value.
    pub schema: fn() -> RefOr<Schema>,
}

/// The value of a path parameter, which [`PathParam`](super::path::PathParam) extracts.
pub trait PathParameter: Sized {
    /// The name in the path's template.
    const NAME: &'static str;
    /// A sentence for the document.
    const DESCRIPTION: &'static str;

    /// Returns the schema of the value.
    fn schema() -> RefOr<Schema>;

    /// Parses the percent-decoded text in the path.
    ///
    /// # Errors
    /// 404 if the text is not a value.
    fn parse(text: &str) -> Result<Self>;
}

impl RouteSpec {
    /// Creates an operation without request and response bodies.
    pub fn new(
        (method, path): (Method, &'static str),
        operation: &'static str,
        resource: ResourceInfo,
        requirements: Requirements,
        status: u16,
    ) -> Self {
        Self { method, path, operation, resource, requirements, status, ..Self::default() }
    }

    /// Whether the operation needs no key.
    pub fn is_public(&self) -> bool {
        self.requirements.public.is_some()
    }

    /// Whether the operation reads the key, if one is sent.
    pub fn reads_key(&self) -> bool {
        !self.is_public() || self.requirements.optional
    }

    /// Whether successful responses carry an `ETag`. Single objects do.
    pub fn has_etag(&self) -> bool {
        let one = self.response.is_some_and(|gives| gives.cardinality == Cardinality::One);
        one && self.reads_key() && !self.unversioned
    }

    /// Whether the operation honours `If-Match`.
    pub fn accepts_if_match(&self) -> bool {
        let changes = match self.method {
            Method::PATCH | Method::DELETE => true,
            Method::PUT => self.has_etag(),
            _ => false,
        };
        changes && self.reads_key() && self.status != 405
    }

    /// Whether the operation honours `Idempotency-Key`.
    pub fn accepts_idempotency_key(&self) -> bool {
        self.method == Method::POST && self.reads_key() && !self.only_reads
    }

    /// Whether the operation honours `Dry-Run`. Every operation that may change something does.
    pub fn accepts_dry_run(&self) -> bool {
        !self.method.is_safe() && self.status != 405 && !self.no_dry_run
    }

    /// Whether the response to a dry run has the same status as the operation's own success.
    pub fn has_dry_run_in_success(&self) -> bool {
        self.accepts_dry_run() && self.status == 200
    }

    /// Sets the summary, one sentence.
    pub fn summary(&mut self, summary: &'static str) -> &mut Self {
        self.summary = summary;
        self
    }

    /// Sets the request body to one `I`.
    pub fn body<I: Input>(&mut self) -> &mut Self {
        self.body = Some(BodySpec { name: I::NAME, schema: I::schema, max_items: None });
        self
    }

    /// Sets the request body to one `I` or an array of at most `most`.
    pub fn body_or_array<I: Input>(&mut self, most: usize) -> &mut Self {
        self.body = Some(BodySpec { name: I::NAME, schema: I::schema, max_items: Some(most) });
        self
    }

    /// Sets an example of the request body, as JSON.
    pub fn example(&mut self, example: &'static str) -> &mut Self {
        self.example = example;
        self
    }

    /// Sets the type of the path's `{id}`.
    pub fn id<T: ToSchema>(&mut self) -> &mut Self {
        self.in_path.push(Parameter { name: "id", description: "The id.", schema: T::schema });
        self
    }

    /// Adds the path parameter `P`.
    pub fn in_path<P: PathParameter>(&mut self) -> &mut Self {
        let (name, description) = (P::NAME, P::DESCRIPTION);
        self.in_path.push(Parameter { name, description, schema: P::schema });
        self
    }

    /// Adds a query parameter. The handler refuses a value that is not a `T`: see
    /// [`QueryParams`](super::query::QueryParams).
    pub fn query<T: ToSchema>(
        &mut self,
        name: &'static str,
        description: &'static str,
    ) -> &mut Self {
        self.query.push(Parameter { name, description, schema: T::schema });
        self
    }

    /// Adds a query parameter that the handler reads as an `F`.
    pub fn query_as<F: FieldType>(
        &mut self,
        name: &'static str,
        description: &'static str,
    ) -> &mut Self {
        self.query.push(Parameter { name, description, schema: || F::schema().into() });
        self
    }

    /// Sets the status of a success without a body.
    pub fn returns_empty(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self
    }

    /// Declares that the operation always fails with this status.
    pub fn always_fails(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self.may_return(status)
    }

    /// Adds a possible status: an error, or a success without a body.
    pub fn may_return(&mut self, status: u16) -> &mut Self {
        self.extra_statuses.push(status);
        self
    }

    /// Sets the status and the body of a success.
    pub fn returns<T: ToSchema>(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self.set_response::<T>(Cardinality::One)
    }

    /// Sets the body of a success with status 200 that has no version and so no `ETag`.
    pub fn returns_unversioned<T: ToSchema>(&mut self) -> &mut Self {
        self.unversioned = true;
        self.returns::<T>(200)
    }

    /// Declares that a POST changes nothing, and sets its status to 200.
    pub fn only_reads(&mut self) -> &mut Self {
        self.only_reads = true;
        self.status = 200;
        self
    }

    /// Sets the response to a page of `T`.
    pub fn returns_page<T: ToSchema>(&mut self) -> &mut Self {
        self.set_response::<T>(Cardinality::Page)
    }

    /// Sets the response to an array of all `T`.
    pub fn returns_all<T: ToSchema>(&mut self) -> &mut Self {
        self.set_response::<T>(Cardinality::All)
    }

    /// Sets the content types of a response that is not JSON.
    pub fn media_types(&mut self, types: &'static [&'static str]) -> &mut Self {
        self.media_types = types;
        self
    }

    fn set_response<T: ToSchema>(&mut self, cardinality: Cardinality) -> &mut Self {
        self.response = Some(ResponseSpec {
            cardinality,
            name: T::name,
            schema: T::schema,
            schemas: T::schemas,
        });
        self
    }
}
