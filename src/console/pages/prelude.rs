//! The names that most pages use.

pub(super) use askama::Template;
pub(super) use axum::http::StatusCode;
pub(super) use serde::Deserialize;
pub(super) use serde_json::{Map, Value, json};

pub(super) use crate::base::error::{Error, Result};
pub(super) use crate::base::time::Timestamp;
pub(super) use crate::console::api::{Operation, Versioned, Write};
pub(super) use crate::console::assets::icon;
pub(super) use crate::console::failure::Failure;
pub(super) use crate::console::form::{
    Choice, Confirm, Feedback, Form, FormSpec, Input, ONCE, Shape, answered_before, once_key,
};
pub(super) use crate::console::headers::{see_other, status_of};
pub(super) use crate::console::layout::{self, Command, Frame, Undo, with_notice, with_notice_of};
pub(super) use crate::console::model::{
    BatchExport, Dashboard, Domain, Invite, Key, List, Member, Organization, Person, Project,
    Rights, Role, Tile, TileInsight, User,
};
pub(super) use crate::console::paging::{
    Choices, LIMIT, ListFilters, ListPage, ListSpec, OFFSET, Paging, is_one_of, list_page,
};
pub(super) use crate::console::registry::{PageResult, Pages};
pub(super) use crate::console::urls::Query;
pub(super) use crate::console::visit::{SignedIn, Visit};
pub(super) use crate::fair::low_priority::{Priority, run_low_priority};

pub(super) use super::object::{
    BATCH_EXPORTS, DASHBOARDS, DOMAINS, INSIGHTS, INVITES, MEMBERS, ObjectPath, ROLES,
    confirm_delete, page_of,
};
pub(super) use super::{
    BulkFeedback, Chosen, FormPage, MAX_OBJECTS, Refusals, excerpt, finish, press, submit,
};
