//! The names that most handlers of resources use.

pub(crate) use crate::app::{App, ReadAccess, WriteAccess};
pub(crate) use crate::auth::{Caller, Global, InOrganization, InProject, Requirements};
pub(crate) use crate::base::error::{Error, Result};
pub(crate) use crate::base::time::Timestamp;
pub(crate) use crate::exchange::etag::Versioned;
pub(crate) use crate::exchange::response::{ApiResponse, ApiResult};
pub(crate) use crate::input::Parsed;
pub(crate) use crate::store::{Order, Raw, Tx, Window};

pub(crate) use super::body::{IgnoredBody, JsonBody};
pub(crate) use super::paging::PageParams;
pub(crate) use super::path::{PathId, PathParam};
pub(crate) use super::query::QueryParams;
pub(crate) use super::routes::{PathParameter, RouteSpec, Routes};
