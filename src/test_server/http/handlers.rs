//! What the control plane does for each of its calls.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::base::error::Result;
use crate::base::json::{Array, WriteJson, WrittenBy, output};
use crate::base::tasks::run_to_end;
use crate::exchange::response::{ApiResponse, ApiResult};
use crate::http::body::JsonBody;
use crate::http::path::PathParam;
use crate::http::query::QueryParams;
use crate::input::{Email, Input};
use crate::operator::{self, Operation};
use crate::store::Progress;
use crate::test_server::clock::{self, ClockChange};
use crate::test_server::dns::{DnsAnswer, DnsName, RecordName};
use crate::test_server::faults::FaultRules;
use crate::test_server::journal::{RequestFilter, RequestWait};
use crate::test_server::mails::Mail;
use crate::test_server::people::{TestKey, TestOrganization, create_key, create_organization};
use crate::test_server::snapshots::{SnapshotBody, SnapshotName};

use super::Control;

pub(super) async fn show(control: Control) -> ApiResult {
    let now = control.stage.app().await.now();
    control.ready.at(now).to_json(1024).map(ApiResponse::Json)
}

pub(super) async fn reset(control: Control) -> ApiResult {
    control.stage.reset().await.map(|()| ApiResponse::NoContent)
}

output! {
    /// All snapshots.
    pub(super) struct SnapshotsBody<'a> {
        /// The snapshots by name.
        results: WrittenBy<'a> as Vec<SnapshotBody>,
    }
}

pub(super) async fn list(control: Control) -> ApiResult {
    let mut all = Some(control.stage.snapshots().list()?);
    let results = WrittenBy(&mut |out| {
        let mut all = all.take().into_iter().flatten();
        Array::write(out, |array| all.try_for_each(|one| array.push(one)))
    });
    SnapshotsBody { results }.to_json(256).map(ApiResponse::Json)
}

pub(super) async fn retrieve(control: Control, name: PathParam<SnapshotName>) -> ApiResult {
    let SnapshotName(name) = name.0?;
    control.stage.snapshots().show(&name)?.to_json(128).map(ApiResponse::Json)
}

pub(super) async fn save(control: Control, name: PathParam<SnapshotName>) -> Result<Response> {
    let SnapshotName(name) = name.0?;
    let is_new = control.stage.save_as(name.clone()).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    with_status(status, control.stage.snapshots().show(&name)?)
}

pub(super) async fn delete(control: Control, name: PathParam<SnapshotName>) -> ApiResult {
    let SnapshotName(name) = name.0?;
    control.stage.snapshots().remove(&name).map(|()| ApiResponse::NoContent)
}

pub(super) async fn restore(control: Control, name: PathParam<SnapshotName>) -> ApiResult {
    let SnapshotName(name) = name.0?;
    control.stage.restore(&name).await.map(|()| ApiResponse::NoContent)
}

pub(super) async fn show_clock(control: Control) -> ApiResult {
    clock::show(&control.stage.environment().clock).to_json(64).map(ApiResponse::Json)
}

pub(super) async fn set_clock(control: Control, JsonBody(sent): JsonBody) -> ApiResult {
    let change = ClockChange::parse(&sent)?;
    let done = run_to_end(async move {
        let entered = control.stage.enter().await;
        let environment = control.stage.environment();
        let _alone = environment.moving.lock().await;
        clock::set(&entered.app, &environment.clock, &environment.mails, change).await
    });
    done.await??.to_json(128).map(ApiResponse::Json)
}

output! {
    /// Mails.
    pub(super) struct MailsBody as TestMails {
        /// Their number.
        count: usize,
        /// The mails, oldest first.
        results: Vec<Arc<Mail>> as Vec<Mail>,
    }
}

output! {
    /// The faults.
    pub(super) struct FaultsBody as TestFaults {
        /// The rules as they were sent, each with its `id`, and how many requests or mails it has `seen` and `applied` to.
        results: Value as Vec<Object>,
    }
}

pub(super) async fn list_faults(control: Control) -> ApiResult {
    let results = control.stage.environment().faults.shown();
    FaultsBody { results }.to_json(1024).map(ApiResponse::Json)
}

pub(super) async fn set_faults(control: Control, JsonBody(sent): JsonBody) -> ApiResult {
    let rules = FaultRules::parse(&sent)?;
    control.stage.environment().replace_faults(&sent, rules)?;
    list_faults(control).await
}

pub(super) async fn clear_faults(control: Control) -> ApiResult {
    control.stage.environment().faults.clear();
    Ok(ApiResponse::NoContent)
}

pub(super) async fn list_requests(control: Control, query: QueryParams) -> ApiResult {
    let sent = query.pairs().map(|(name, value)| (name.to_owned(), Value::from(value)));
    let filter = RequestFilter::parse(&sent.collect())?;
    control.stage.environment().journal.list(&filter).to_json(65_536).map(ApiResponse::Json)
}

pub(super) async fn clear_requests(control: Control) -> ApiResult {
    control.stage.environment().journal.clear();
    Ok(ApiResponse::NoContent)
}

pub(super) async fn wait_for_requests(
    control: Control,
    JsonBody(sent): JsonBody,
) -> Result<Response> {
    let wait = RequestWait::parse(&sent)?;
    let journal = &control.stage.environment().journal;
    let status =
        if journal.wait(&wait).await { StatusCode::OK } else { StatusCode::REQUEST_TIMEOUT };
    with_status(status, journal.list(&wait.r#match))
}

pub(super) async fn list_mails(control: Control, query: QueryParams) -> ApiResult {
    let to = query.read::<Email>("to")?;
    control.stage.enter().await.app.settle_mails().await;
    let results = control.stage.environment().mails.list(to.as_deref());
    MailsBody { count: results.len(), results }.to_json(4096).map(ApiResponse::Json)
}

pub(super) async fn clear_mails(control: Control, query: QueryParams) -> ApiResult {
    let to = query.read::<Email>("to")?;
    control.stage.enter().await.app.settle_mails().await;
    control.stage.environment().mails.clear(to.as_deref());
    Ok(ApiResponse::NoContent)
}

output! {
    /// Names of DNS records.
    pub(super) struct NamesBody as TestDnsNames {
        /// The names in order.
        results: Vec<DnsName>,
    }
}

pub(super) async fn list_names(control: Control) -> ApiResult {
    let results = control.stage.environment().dns.save().into_values().collect();
    NamesBody { results }.to_json(256).map(ApiResponse::Json)
}

pub(super) async fn clear_names(control: Control) -> ApiResult {
    control.stage.environment().dns.clear();
    Ok(ApiResponse::NoContent)
}

pub(super) async fn set_name(
    control: Control,
    name: PathParam<RecordName>,
    JsonBody(sent): JsonBody,
) -> ApiResult {
    let answer = DnsAnswer::parse(&sent)?;
    control.stage.environment().dns.put(name.0?, answer).map(|()| ApiResponse::NoContent)
}

pub(super) async fn delete_name(control: Control, name: PathParam<RecordName>) -> ApiResult {
    control.stage.environment().dns.remove(&name.0?).map(|()| ApiResponse::NoContent)
}

pub(super) async fn add_organization(
    control: Control,
    JsonBody(sent): JsonBody,
) -> Result<Response> {
    let new = TestOrganization::parse(&sent)?;
    let entered = control.stage.enter().await;
    with_status(StatusCode::CREATED, create_organization(&entered.app, new).await?)
}

pub(super) async fn add_key(control: Control, JsonBody(sent): JsonBody) -> Result<Response> {
    let new = TestKey::parse(&sent)?;
    let entered = control.stage.enter().await;
    with_status(StatusCode::CREATED, create_key(&entered.app, new).await?)
}

/// Returns a body without a version.
fn with_status(status: StatusCode, body: impl WriteJson) -> Result<Response> {
    let json = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((status, json, body.to_json(512)?).into_response())
}

/// Leads to the page that asks before it signs in, with a link that works once.
pub(super) async fn open_console(control: Control, query: QueryParams) -> Result<Response> {
    let email = query.read::<Email>("email")?;
    let entered = control.stage.enter().await;
    let link = Operation::ConsoleLink { email, is_operator: false, existing: true };
    let made = operator::perform(&entered.app, link, Progress::silent()).await?;
    let url = made.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok((StatusCode::SEE_OTHER, [(LOCATION, url)]).into_response())
}
