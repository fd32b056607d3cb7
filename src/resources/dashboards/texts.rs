//! Texts: the Markdown on text tiles. Tiles of several dashboards can show the same text.

use crate::auth::InProject;
use crate::resources::projects::Project;
use crate::resources::shared::prelude::*;
use crate::resources::users::{self, EmbeddedUser, EmbeddedUsers};

/// A Markdown text on one or more tiles.
pub type Text = RecordOf<Meta, Fields>;

/// Fields of a text that access checks read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The organization of the project.
    pub organization: OrganizationId,
    /// The project of the text.
    pub project: ProjectId,
    /// The ID of the text.
    pub id: TextId,
    /// The user who created the text.
    pub created_by: Option<UserId>,
    /// The user who last changed the text; none if it never changed.
    pub last_modified_by: Option<UserId>,
}

/// The stored fields of a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = TextFixed)]
pub struct Fields {
    /// Numeric ID.
    pub id: TextId,
    /// Markdown.
    pub body: Option<String>,
    /// When the text was created or last changed.
    pub last_modified_at: Timestamp,
    /// The project of the text.
    pub team: ProjectId,
}

output! {
    /// A text on a tile.
    pub struct TextBody<'a> as Text {
        /// The stored fields.
        ..own: JsonText<'a, Fields> as Fields,
        /// The user who created the text.
        created_by: EmbeddedUser as Option<users::Fields>,
        /// The user who last changed the text; null if it never changed.
        last_modified_by: EmbeddedUser as Option<users::Fields>,
    }
}

impl_record!(Text {
    table: Texts,
    key: |text| -> (ProjectId, TextId) { (text.meta.project, text.meta.id) },
    parts: meta: Meta, fields: Fields,
    owner: |text, _| Ok(Some(text.meta.organization.owner())),
    references: |text| [Reference::to::<Project>(&(text.meta.organization, text.meta.project))],
});

/// Creates a text of the caller.
pub fn create(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    body: Option<String>,
    now: Timestamp,
) -> Result<TextId> {
    let project = tenant.project.id;
    let id = TextId(tx.next_number(Table::Texts)?);
    tx.put(&Text {
        meta: Meta {
            organization: tenant.project.organization,
            project,
            id,
            created_by: Some(tenant.member.user),
            last_modified_by: None,
        },
        fields: Fields { id, body, last_modified_at: now, team: project },
    })?;
    Ok(id)
}

/// Updates a text. Every tile that shows the text shows the change.
///
/// # Errors
/// 404 if the text does not exist.
pub(super) fn edit(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: TextId,
    body: Option<String>,
    now: Timestamp,
) -> Result<()> {
    let mut text: Text = tx.get(&(tenant.project.id, id))?;
    text.fields.body = body;
    text.fields.last_modified_at = now;
    text.meta.last_modified_by = Some(tenant.member.user);
    tx.put(&text)
}

/// Copies a text. The caller is the creator of the copy.
///
/// # Errors
/// 404 if the text does not exist.
pub fn copy(
    tx: &mut WriteTx<'_>,
    tenant: &InProject,
    id: TextId,
    now: Timestamp,
) -> Result<TextId> {
    let Text { fields, .. } = tx.get(&(tenant.project.id, id))?;
    create(tx, tenant, fields.body, now)
}

/// Returns the JSON of a text.
pub(super) fn body<'a>(
    tx: &dyn Raw,
    row: &Row<'a, Text>,
    users: &mut EmbeddedUsers,
) -> Result<TextBody<'a>> {
    Ok(TextBody {
        own: row.json(),
        created_by: users.find(tx, row.meta.created_by)?,
        last_modified_by: users.find(tx, row.meta.last_modified_by)?,
    })
}
