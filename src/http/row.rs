//! One operation of the API, as its line in the route table declares it.

use std::borrow::Cow;

use axum::http::Method;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;

use crate::access::Needs;
use crate::input::{Input, Schema};

/// One operation of the API.
#[derive(Clone)]
pub struct Row {
    /// Its method.
    pub method: Method,
    /// Its path, with the trailing slash.
    pub path: &'static str,
    /// Its name, as PostHog's schema has it: `dashboards_retrieve`.
    pub operation: &'static str,
    /// The noun that it is about.
    pub noun: Noun,
    /// What it asks of its caller.
    pub needs: Needs,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// The status of its success.
    pub status: u16,
    /// The body it takes.
    pub takes: Option<Body>,
    /// Such a body: JSON.
    pub example: &'static str,
    /// What it answers; none for an empty answer.
    pub gives: Option<Gives>,
    /// Whether what it answers has no version of its own.
    pub unversioned: bool,
    /// Other content types that it answers with, where it is no JSON.
    pub media: &'static [&'static str],
    /// The schema of the path's `{id}`.
    pub id: Option<fn() -> RefOr<Schema>>,
    /// What its query takes besides the page.
    pub query: Vec<Parameter>,
    /// Statuses that it may answer besides those which follow from the rest.
    pub may: Vec<u16>,
}

/// What a group of operations is about.
#[derive(Debug, Clone, Copy, Default)]
pub struct Noun {
    /// The URL's word for it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
}

/// A body that an operation takes.
#[derive(Clone, Copy)]
pub struct Body {
    /// Its name in the schema.
    pub name: &'static str,
    /// Its schema.
    pub schema: fn() -> Schema,
    /// How many of them one array may hold, where it takes an array too.
    pub most: Option<usize>,
}

/// What an operation answers.
#[derive(Clone, Copy)]
pub struct Gives {
    /// How many of it.
    pub many: Many,
    /// Its name in the schema.
    pub name: fn() -> Cow<'static, str>,
    /// Its schema.
    pub schema: fn() -> RefOr<Schema>,
    /// The schemas that it refers to.
    pub schemas: fn(&mut Vec<(String, RefOr<Schema>)>),
}

/// How many of something an operation answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Many {
    /// One.
    One,
    /// A page of them, in the envelope of lists.
    Page,
    /// All of them, as an array.
    All,
}

/// A parameter of a query.
#[derive(Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// The schema of its value.
    pub schema: fn() -> RefOr<Schema>,
}

impl Row {
    /// An operation that takes nothing and answers nothing with this status.
    pub fn new(
        (method, path): (Method, &'static str),
        operation: &'static str,
        noun: Noun,
        needs: Needs,
        status: u16,
    ) -> Self {
        Self {
            method,
            path,
            operation,
            noun,
            needs,
            summary: "",
            status,
            takes: None,
            example: "",
            gives: None,
            unversioned: false,
            media: &[],
            id: None,
            query: Vec::new(),
            may: Vec::new(),
        }
    }

    /// Whether it is open to everybody.
    pub fn is_public(&self) -> bool {
        self.needs.public.is_some()
    }

    /// Whether it looks at a key.
    pub fn keyed(&self) -> bool {
        !self.is_public() || self.needs.optional
    }

    /// Whether its answers carry an `ETag`: single objects do (decisions §1).
    pub fn is_tagged(&self) -> bool {
        let one = self.gives.is_some_and(|gives| gives.many == Many::One);
        one && self.keyed() && !self.unversioned
    }

    /// Whether it looks at `If-Match`.
    pub fn is_conditional(&self) -> bool {
        let changes = [Method::PATCH, Method::DELETE].contains(&self.method);
        changes && self.keyed() && self.status != 405
    }

    /// Says what the operation does, in a sentence.
    pub fn summary(&mut self, summary: &'static str) -> &mut Self {
        self.summary = summary;
        self
    }

    /// Says which body the operation takes.
    pub fn takes<I: Input>(&mut self) -> &mut Self {
        self.takes = Some(Body { name: I::NAME, schema: I::schema, most: None });
        self
    }

    /// Says that the operation takes one such body, or an array of up to `most`.
    pub fn takes_several<I: Input>(&mut self, most: usize) -> &mut Self {
        self.takes = Some(Body { name: I::NAME, schema: I::schema, most: Some(most) });
        self
    }

    /// Gives an example of the body: JSON.
    pub fn example(&mut self, example: &'static str) -> &mut Self {
        self.example = example;
        self
    }

    /// Says what the path's `{id}` is.
    pub fn id<T: ToSchema>(&mut self) -> &mut Self {
        self.id = Some(T::schema);
        self
    }

    /// Says that the query may hold this. What a value that is no `T` does, the handler decides: most pass it
    /// over, the activity log refuses it.
    pub fn query<T: ToSchema>(&mut self, name: &'static str, about: &'static str) -> &mut Self {
        self.query.push(Parameter { name, about, schema: T::schema });
        self
    }

    /// Says that success has this status and no body.
    pub fn empty(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self
    }

    /// Says that the operation always refuses, with this status and the error envelope.
    pub fn refuses(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self.may(status)
    }

    /// Says that the operation may answer with this status too, be it a refusal or a success without a body.
    pub fn may(&mut self, status: u16) -> &mut Self {
        self.may.push(status);
        self
    }

    /// Says how success looks: its status, and what the answer shows.
    pub fn answers<T: ToSchema>(&mut self, status: u16) -> &mut Self {
        self.status = status;
        self.gives::<T>(Many::One)
    }

    /// Says that what it answers has no version of its own, and so no `ETag`.
    pub fn unversioned(&mut self) -> &mut Self {
        self.unversioned = true;
        self
    }

    /// Says that success is a page of these.
    pub fn lists<T: ToSchema>(&mut self) -> &mut Self {
        self.gives::<T>(Many::Page)
    }

    /// Says that success is an array of all of these.
    pub fn answers_all<T: ToSchema>(&mut self) -> &mut Self {
        self.gives::<T>(Many::All)
    }

    /// Says that success may be of these types, which are no JSON.
    pub fn media(&mut self, types: &'static [&'static str]) -> &mut Self {
        self.media = types;
        self
    }

    fn gives<T: ToSchema>(&mut self, many: Many) -> &mut Self {
        self.gives = Some(Gives { many, name: T::name, schema: T::schema, schemas: T::schemas });
        self
    }
}
