//! The names that most resources use.

pub(crate) use serde::{Deserialize, Serialize};
pub(crate) use serde_json::{Map, Value, json};
pub(crate) use utoipa::ToSchema;
pub(crate) use utoipa::openapi::RefOr;
pub(crate) use uuid::Uuid;

pub(crate) use crate::base::error::{Error, Result};
pub(crate) use crate::base::json::{Array, JsonItems, JsonText, WriteJson, WrittenBy, output};
pub(crate) use crate::base::patch::Patch;
pub(crate) use crate::base::secret::SeededRng;
pub(crate) use crate::base::time::Timestamp;
pub(crate) use crate::exchange::etag::Versioned;
pub(crate) use crate::ids::{
    ActivityId, DashboardId, InsightId, MembershipId, OrganizationId, ProjectId, RoleId, TextId,
    TileId, UserId,
};
pub(crate) use crate::input::{
    Field, FieldType, JsonObject, Parsed, Schema, does_not_exist, input, invalid, missing,
};
pub(crate) use crate::store::{
    Index, Key, Order, Raw, Record, RecordOf, Redaction, Reference, Row, Table, Tx, Window,
    WriteTx, continue_if, impl_record,
};

pub(crate) use super::access_objects::{Kind, Object};
pub(crate) use super::loggable::{LogEntity, Loggable};
pub(crate) use super::pending_deletion::PendingDeletion;
pub(crate) use super::reading::{collect, parse_fields};
pub(crate) use super::registration::{RegisteredRecord, record};
