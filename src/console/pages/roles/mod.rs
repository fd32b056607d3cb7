//! The roles of an organization: their list with a form that creates one, and the name and the members of a role.

use std::collections::HashSet;

use super::people::MemberSearch;
use super::prelude::*;

const FORM: FormSpec = FormSpec::create("Create", &[Input::new("name").label("Name")]);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form("/console/organizations/{organization_id}/roles/", &list_roles);
    pages.page("/console/organizations/{organization_id}/roles/{id}/", &show, &rename);
    pages.post("/console/organizations/{organization_id}/roles/{id}/add/", &add);
    pages.post(REMOVE, &remove);
    pages.form("/console/organizations/{organization_id}/roles/{id}/delete/", &|request| {
        let (rest, destroy, notice) = ("?basic=true", "roles_destroy", "role-deleted");
        confirm_delete(request, ROLES, [rest, "name"], destroy, notice, DELETION)
    });
}

#[derive(Template)]
#[template(path = "console/pages/roles/list.html")]
struct RolesPage {
    base: String,
    list: ListPage<Role>,
    /// The form of a new role, if the session may create one.
    form: Option<Form>,
}

async fn list_roles(request: SignedIn) -> PageResult {
    let organization = request.visit.organization_id()?;
    let base = ROLES.list(&organization);
    let create = Operation::new("roles_create", [&organization]);
    let mut feedback = Feedback::default();
    if request.visit.sends_form() {
        match FORM.sent(&request, create.clone(), &base)?.send(&request).await? {
            Ok(role) => return finish(&page_of(&base, &role), "role-created"),
            Err(form) => feedback = form.into(),
        }
    }
    let empty = Versioned::default();
    let form = FORM.offered(&request, &create, &base, &empty, &mut feedback).await?;
    let api_query = Query::of([("basic", "true"), LIMIT]);
    let list = ListSpec { api_query, ..ListSpec::new(ROLES.api(&organization), &base) };
    let list = list_page(&request, list).await.read()?;
    feedback.show(&request, "Roles", &RolesPage { base, list, form }).await
}

const REMOVE: &str =
    "/console/organizations/{organization_id}/roles/{id}/members/{membership_id}/remove/";

const NAME: FormSpec = FormSpec::change("Rename", &[Input::new("name").label("Name")]);
const MEMBER: FormSpec =
    FormSpec::create("Add", &[Input::new("user_uuid").label("Member")]).with_id("add");

/// The operation that renames a role.
const RENAME: &str = "roles_partial_update";
/// The operation that adds a member.
const ADD_MEMBER: &str = "roles_role_memberships_create";

#[derive(Deserialize)]
struct RoleMember {
    id: String,
    user: User,
    joined_at: String,
}

#[derive(Template)]
#[template(path = "console/pages/roles/one.html")]
struct RolePage {
    object: ObjectPath,
    role: Role,
    list: ListPage<RoleMember>,
    may_see_members: bool,
    may_remove: bool,
    may_delete: bool,
    /// The form of the name, if the session may rename the role.
    name_form: Option<Form>,
    /// The members that can be added, if the session may add members.
    candidates: Option<Candidates>,
}

async fn rename(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    let page = object.page("");
    let sent = NAME.sent(&request, object.operation(RENAME), &page)?;
    submit(request, sent, &page, "role-saved", &show).await
}

async fn add(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    let sent = MEMBER.sent(&request, object.operation(ADD_MEMBER), &object.page("add/"))?;
    submit(request, sent, &object.page(""), "member-added", &show).await
}

async fn show(request: SignedIn, mut feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    let found = request.api.get_versioned(&object.api("?basic=true")).await?;
    let role: Role = serde_json::from_value(found.body.clone()).map_err(Error::internal)?;
    let list = ListSpec::new(object.api("role_memberships/"), &object.page(""));
    let list = list_page(&request, list).await.read()?;
    let (rename, action) = (object.operation(RENAME), object.page(""));
    let name_form = NAME.offered(&request, &rename, &action, &found, &mut feedback).await?;
    let candidates = Candidates::load(&request, &object, &mut feedback).await?;
    let remove =
        Operation::new("roles_role_memberships_destroy", [&object.tenant, &object.id, &object.id]);
    let member = Operation::new("members_retrieve", [&object.tenant, "@me"]);
    let page = RolePage {
        may_see_members: request.api.may(&member).await?,
        may_remove: request.api.may(&remove).await?,
        may_delete: request.api.may(&object.operation("roles_destroy")).await?,
        list,
        object,
        role,
        name_form,
        candidates,
    };
    feedback.show(&request, &page.role.name, &page).await
}

async fn remove(request: SignedIn) -> PageResult {
    let object = ObjectPath::of(&request.visit, ROLES)?;
    let membership = request.visit.uuid("membership_id")?;
    let ids = [object.tenant.as_str(), &object.id, &membership];
    let write = Write::new("roles_role_memberships_destroy", ids);
    press(request, write, &object.page(""), "member-removed", &show).await
}

/// The consequences of a deletion.
const DELETION: &str = "The access rules that name the role are deleted too. Members who see a private project only through the \
                        role do not see it any more.";

/// The parameter of the query with the search.
const SEARCH: &str = "member";

/// The maximum number of members of the role that are left out of the choice. The API refuses to add the others again.
const MAX_LEFT_OUT: u64 = 1000;

/// Members that a search found, without those of the role.
struct Candidates {
    search: MemberSearch,
    is_empty: bool,
    /// The form that adds one: as it was sent, or a new one unless there is no member to choose.
    form: Option<Form>,
}

impl Candidates {
    /// Searches the organization for members who are not in the role, if the session may add members.
    ///
    /// # Errors
    /// The errors of the API, except refusals.
    async fn load(
        request: &SignedIn,
        role: &ObjectPath,
        feedback: &mut Feedback,
    ) -> Result<Option<Self>> {
        let (add, action, empty) =
            (role.operation(ADD_MEMBER), role.page("add/"), Versioned::default());
        let form = MEMBER.offered(request, &add, &action, &empty, feedback).await?;
        let Some(form) = form else { return Ok(None) };
        let search = MemberSearch::of(&request.visit, SEARCH, &role.page(""), "candidates");
        let (search, found) = search.find(request, &role.tenant).await?;
        let path = role.api(&format!("role_memberships/?limit={MAX_LEFT_OUT}"));
        let in_role: List<RoleMember> = request.api.get(&path).await.read()?;
        let in_role: HashSet<_> = in_role.results.into_iter().map(|one| one.user.uuid).collect();
        let users = found.results.into_iter().map(|member| member.user);
        let users = users.filter(|user| !in_role.contains(&user.uuid));
        let choices: Vec<_> =
            users.map(|user| Choice::new(user.uuid.as_str(), user.person.label())).collect();
        let is_empty = choices.is_empty();
        let is_shown = form.is_sent || !is_empty;
        let form = is_shown.then(|| form.with_choices("user_uuid", choices));
        Ok(Some(Self { search, is_empty, form }))
    }
}
