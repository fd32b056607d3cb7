//! The HTTP toolkit: what every noun shares on the wire. It knows no noun.

pub mod answer;
pub mod around;
pub mod body;
pub mod client;
mod conditional;
pub mod cors;
mod error;
pub mod exposition;
pub mod front;
mod guards;
pub mod html;
pub mod limits;
pub mod logging;
pub mod metered;
pub mod negotiate;
mod once;
pub mod openapi;
pub mod opening;
pub mod page;
pub mod path;
mod query;
pub mod routes;
mod row;
pub mod server;
mod socket;
pub mod tls;

use axum::extract::FromRef;

use crate::state::App;

use body::BodyLimits;

impl FromRef<App> for BodyLimits {
    fn from_ref(app: &App) -> Self {
        Self { max_bytes: app.config().max_body, timeout: app.config().body_timeout }
    }
}
