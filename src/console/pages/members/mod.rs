//! The members of an organization, with search and their levels.

mod member;

use std::collections::HashMap;

use askama::Template;
use axum::http::Method;

use crate::console::assets::icon;
use crate::console::layout::{self, Command, Frame, In, Section, with_notice};
use crate::console::list::List;
use crate::console::operation::{Operation, Write};
use crate::console::paging::Paging;
use crate::console::query::Query;
use crate::console::redirection::see_other;
use crate::console::registry::{PageResult, Pages};
use crate::console::visit::{SignedIn, Visit};
use crate::error::{Error, Result};

pub(super) use member::{Member, MemberRights, own_uuid};

const LIST: &str = "/console/organizations/{organization_id}/members/";

/// The number of members on a page.
const PAGE_SIZE: u64 = 50;

/// Adds the page and its action to the route table.
pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.signed_in(Method::GET, LIST, list);
    pages.signed_in(Method::POST, LIST, change_level);
}

/// A member on the page.
struct Row {
    member: Member,
    is_own: bool,
    rights: MemberRights,
}

#[derive(Template)]
#[template(path = "console/pages/members/page.html")]
struct MembersPage {
    base: String,
    /// The URL of this page of the list, which forms are sent to.
    here: String,
    search: String,
    rows: Vec<Row>,
    paging: Paging,
    /// The page of invites, if the session may invite.
    invites: Option<String>,
    command: Command,
}

async fn list(request: SignedIn) -> PageResult {
    show(&request, None).await
}

async fn change_level(request: SignedIn) -> PageResult {
    let organization = super::organization_id(&request.visit)?;
    let form = &request.visit.form;
    let write = Write::new("members_partial_update", [&organization, form.value("user")]);
    let write = write.body(member::level_body(form.value("level")));
    match request.api.attempt(&write).await? {
        Ok(_) => {
            let here = url(&request.visit, &organization, Paging::offset(&request.visit));
            Ok(see_other(&with_notice(&here, "level-saved"))?)
        }
        Err(refusal) => show(&request, Some(refusal)).await,
    }
}

async fn show(request: &SignedIn, refusal: Option<Error>) -> PageResult {
    let organization = super::organization_id(&request.visit)?;
    let (offset, search) = (Paging::offset(&request.visit), request.visit.query("search").trim());
    let query = Query::of([("limit", PAGE_SIZE.to_string().as_str()), ("search", search)]);
    let path = query.at(offset).url(&format!("/api/organizations/{organization}/members/"));
    let found: List<Member> = request.api.get(&path).await?;
    let url = |offset| url(&request.visit, &organization, offset);
    let paging = Paging::new(&request.visit, found.results.len(), found.count, PAGE_SIZE, url)?;
    let base = format!("/console/organizations/{organization}/members/");
    let invite = Operation::new("invites_create", [&organization]);
    let invites = request.api.may(&invite).await?;
    let invites = invites.then(|| format!("/console/organizations/{organization}/invites/"));
    let frame = Frame::load(request, Section::Members, In::Organization(&organization)).await?;
    let frame = frame.titled("Members").with_refusal(refusal);
    let page = MembersPage {
        base,
        here: url(offset),
        search: search.to_owned(),
        rows: rows(request, &organization, found.results).await?,
        paging,
        invites,
        command: Command::get(&request.visit, &path),
    };
    Ok(layout::page(&frame, &page)?)
}

/// Returns the URL of the part of the list that begins at `offset`, with the search of the request.
fn url(visit: &Visit, organization: &str, offset: u64) -> String {
    let query = Query::of([("search", visit.query("search").trim())]).at(offset);
    query.url(&format!("/console/organizations/{organization}/members/"))
}

/// Returns the rows. To the API, the other members of one level are alike.
async fn rows(request: &SignedIn, organization: &str, members: Vec<Member>) -> Result<Vec<Row>> {
    let own = own_uuid(request, organization).await?;
    let mut known: HashMap<(bool, u8), MemberRights> = HashMap::new();
    let mut rows = Vec::new();
    for member in members {
        let is_own = own.as_ref() == Some(&member.user.uuid);
        let kind = (is_own, member.level);
        let rights = match known.get(&kind) {
            Some(rights) => rights.clone(),
            None => MemberRights::load(request, organization, &member).await?,
        };
        known.insert(kind, rights.clone());
        rows.push(Row { member, is_own, rights });
    }
    Ok(rows)
}
