//! Texts: the Markdown that tiles show (facts-dashboards §7). Tiles of several dashboards may show the
//! same one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::InProject;
use crate::error::Result;
use crate::ids::{OrganizationId, ProjectId, TextId, UserId};
use crate::json::Object;
use crate::patch::Patch;
use crate::resources::projects::Project;
use crate::resources::users::{self, Embedder};
use crate::store::{Owner, Record, Reference, Row, Table, Tx, WriteTx};
use crate::time::Timestamp;

use super::tiles;

/// A text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// What rules decide by.
    pub head: Head,
    /// What tiles show of it.
    pub shown: Shown,
}

/// What rules decide by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The organization of its project.
    pub organization: OrganizationId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// Its number.
    pub id: TextId,
    /// Who wrote it.
    pub created_by: Option<UserId>,
    /// Who changed it last; none where nobody did.
    pub last_modified_by: Option<UserId>,
}

/// The text's own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TextFixed)]
pub struct Shown {
    /// Its number.
    pub id: TextId,
    /// The Markdown.
    pub body: Option<String>,
    /// When it was written, or changed.
    pub last_modified_at: Timestamp,
    /// Its project.
    pub team: ProjectId,
}

/// A text, as a tile shows it.
#[derive(ToSchema)]
#[schema(as = Text)]
pub struct TextBody {
    /// Its own fields.
    #[serde(flatten)]
    pub own: Shown,
    /// Who wrote it.
    pub created_by: Option<users::Shown>,
    /// Who changed it last; null where nobody did.
    pub last_modified_by: Option<users::Shown>,
}

impl Record for Text {
    const TABLE: Table = Table::Texts;
    type Key = (ProjectId, TextId);
    type Head = Head;
    type Shown = Shown;

    fn key(&self) -> Self::Key {
        (self.head.project, self.head.id)
    }

    fn parts(&self) -> (&Head, &Shown) {
        (&self.head, &self.shown)
    }

    fn join(head: Head, shown: Shown) -> Self {
        Self { head, shown }
    }

    fn owner(&self, _: &impl Tx) -> Result<Option<Owner>> {
        Ok(Some(self.head.organization.owner()))
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference::to::<Project>(&(self.head.organization, self.head.project))]
    }
}

/// Writes a text of the caller's.
///
/// # Errors
/// 500 or 503 when the file cannot be read or written.
pub fn create(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    body: Option<String>,
    now: Timestamp,
) -> Result<TextId> {
    let project = place.project.id;
    let id = TextId(tx.next_number(Table::Texts)?);
    tx.put(&Text {
        head: Head {
            organization: place.project.organization,
            project,
            id,
            created_by: Some(place.member.user),
            last_modified_by: None,
        },
        shown: Shown { id, body, last_modified_at: now, team: project },
    })?;
    Ok(id)
}

/// Changes a text for the caller: everywhere it is shown.
///
/// # Errors
/// 404 when there is none; 500 or 503 when the file cannot be read or written.
pub(super) fn edit(
    tx: &mut WriteTx<'_>,
    place: &InProject,
    id: TextId,
    body: Patch<String>,
    now: Timestamp,
) -> Result<()> {
    let key = (place.project.id, id);
    let before = size(tx, &key)?;
    let mut text: Text = tx.get(&key)?;
    body.apply(&mut text.shown.body);
    text.shown.last_modified_at = now;
    text.head.last_modified_by = Some(place.member.user);
    tx.put(&text)?;
    let after = size(tx, &key)?;
    tiles::resize_text(tx, key, before, after)
}

/// How many bytes of JSON a text has; none if there is no such text.
fn size(tx: &impl Tx, key: &(ProjectId, TextId)) -> Result<usize> {
    Ok(tx.view::<Text, _>(key, |row| Ok(row.shown.len()))?.unwrap_or(0))
}

/// Copies a text.
///
/// # Errors
/// 404 when there is none; 500 or 503 when the file cannot be read or written.
pub fn copy(tx: &mut WriteTx<'_>, place: &InProject, id: TextId, now: Timestamp) -> Result<TextId> {
    let Text { shown, .. } = tx.get(&(place.project.id, id))?;
    create(tx, place, shown.body, now)
}

/// Appends a text as a tile shows it.
///
/// # Errors
/// 500 or 503 when the file cannot be read.
pub(super) fn write(
    tx: &impl Tx,
    row: &Row<'_, Text>,
    users: &mut Embedder,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Head { created_by, last_modified_by, .. } = row.head;
    Object::begin(out)
        .splice(row.shown)
        .with("created_by", |out| users.write(tx, created_by, out))?
        .with("last_modified_by", |out| users.write(tx, last_modified_by, out))?
        .end();
    Ok(())
}
