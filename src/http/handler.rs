//! The handlers of the API: functions whose parameters are taken from the request.
//!
//! Only what takes the parameters is compiled for each handler. What is around it is compiled once.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::app::App;
use crate::base::error::Result;

use super::body::{BodyLimits, read_json};
use super::extract::{Extract, ReceivedRequest};
use super::route_guard::release_snapshot;

/// A function that answers requests. `T` is the tuple of its parameters.
pub trait Handler<T>: Send + Sync + 'static {
    /// The result of the function.
    type Output: IntoResponse + 'static;

    /// The maximum size, in bytes, of the body that the function takes; `None` if it takes none.
    const MAX_BODY: Option<usize>;

    /// Takes the parameters from the request, and calls the function.
    ///
    /// # Errors
    /// The errors of the parameters.
    fn call(&self, request: &mut ReceivedRequest) -> Result<BoxFuture<'static, Self::Output>>;
}

macro_rules! impl_handler {
    ($($parameter:ident)*) => {
        impl<F, A, $($parameter,)*> Handler<($($parameter,)*)> for F
        where
            F: FnOnce($($parameter),*) -> A + Clone + Send + Sync + 'static,
            A: Future<Output: IntoResponse + 'static> + Send + 'static,
            $($parameter: Extract,)*
        {
            type Output = A::Output;

            const MAX_BODY: Option<usize> = {
                let max: Option<usize> = None;
                $(let max = if $parameter::MAX_BODY.is_some() { $parameter::MAX_BODY } else { max };)*
                max
            };

            #[allow(unused_variables, reason = "a handler may have no parameters")]
            fn call(&self, request: &mut ReceivedRequest) -> Result<BoxFuture<'static, A::Output>> {
                Ok(self.clone()($($parameter::extract(request)?),*).boxed())
            }
        }
    };
}

impl_handler!();
impl_handler!(P1);
impl_handler!(P1 P2);
impl_handler!(P1 P2 P3);
impl_handler!(P1 P2 P3 P4);

/// Calls a handler.
type Call = dyn Fn(&mut ReceivedRequest) -> Result<BoxFuture<'static, Response>> + Send + Sync;

/// A handler of any type.
#[derive(Clone)]
pub(super) struct AnyHandler {
    max_body: Option<usize>,
    call: Arc<Call>,
}

impl AnyHandler {
    pub(super) fn new<T, H: Handler<T>>(handler: H) -> Self {
        let call =
            Arc::new(move |request: &mut ReceivedRequest| handler.call(request).map(into_response));
        Self { max_body: H::MAX_BODY, call }
    }

    /// Answers a request. The handler begins when its body has arrived.
    pub(super) async fn respond(&self, app: App, request: Request) -> Response {
        let answer = match receive(app, request, self.max_body).await {
            Ok(mut request) => (self.call)(&mut request),
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => answer.await,
            Err(error) => error.into_response(),
        }
    }
}

fn into_response<R: IntoResponse + 'static>(
    answer: BoxFuture<'static, R>,
) -> BoxFuture<'static, Response> {
    answer.map(IntoResponse::into_response).boxed()
}

/// Reads the body of a request if its handler takes it, and holds no snapshot until it has arrived.
async fn receive(app: App, request: Request, max_body: Option<usize>) -> Result<ReceivedRequest> {
    let (mut parts, body) = request.into_parts();
    let Some(max_body) = max_body else {
        return Ok(ReceivedRequest { app, parts, body: Value::Null });
    };
    release_snapshot(&mut parts);
    let BodyLimits { max_bytes, timeout } = BodyLimits::of(&app);
    let limits = BodyLimits { max_bytes: max_bytes.min(max_body), timeout };
    // Boxed, because every request would have room for it.
    let sent = read_json(&parts, body, limits).boxed().await?;
    Ok(ReceivedRequest { app, parts, body: sent.unwrap_or_else(|| Value::Object(Map::new())) })
}
