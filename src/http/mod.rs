//! The HTTP toolkit: what every noun shares on the wire. It knows no noun.

pub mod answer;
pub mod around;
pub mod body;
pub mod budget;
pub mod client;
mod conditional;
mod constant;
pub mod cors;
pub mod delivery;
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
mod overload;
pub mod page;
pub mod path;
mod query;
mod request_memory;
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
