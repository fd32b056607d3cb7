//! The public page of a dashboard or an insight: its link, and buttons to enable, rotate and disable it.

use crate::console::origin::local_base;
use crate::console::pages::prelude::*;

use super::{DASHBOARD, INSIGHT, Shareable, ShareableKind};

const SHARING: [(&str, &ShareableKind); 2] = [
    ("/console/projects/{project_id}/dashboards/{id}/sharing/", DASHBOARD),
    ("/console/projects/{project_id}/insights/{id}/sharing/", INSIGHT),
];

pub(super) fn routes(pages: &mut Pages<'_>) {
    for (path, kind) in SHARING {
        let show = move |request, feedback| show(request, kind, feedback);
        pages.page(path, show, move |request| apply(request, kind));
    }
}

#[derive(Deserialize)]
struct Sharing {
    created_at: Option<String>,
    enabled: bool,
    access_token: Option<String>,
}

#[derive(Template)]
#[template(path = "console/pages/shareable/sharing.html")]
struct SharingPage {
    kind: &'static ShareableKind,
    object: ObjectPath,
    name: String,
    is_enabled: bool,
    /// When the page was first enabled.
    since: Option<String>,
    /// The public link, if the session may know it.
    link: Option<String>,
    /// The base of the link, if it works on this machine only.
    local_base: Option<String>,
    tiles: usize,
    may_share: bool,
    /// Why the session may not share, although its key may.
    reason: Option<String>,
    /// The `Idempotency-Key` of the buttons.
    once: String,
    command: Command,
}

async fn apply(request: SignedIn, kind: &'static ShareableKind) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let form = &request.visit.form;
    let (write, notice) = match form.value("action") {
        "enable" => (kind.enable(&object, true), "page-enabled"),
        "disable" => (kind.enable(&object, false), "page-disabled"),
        "rotate" => (object.write(kind.rotate_link), "link-replaced"),
        _ => return Err(Error::not_found().into()),
    };
    match request.api.attempt(&write.once(form.value(ONCE))).await? {
        Ok(_) => finish(&object.page("sharing/"), notice),
        Err(refusal) => show(request, kind, refusal.into()).await,
    }
}

async fn show(request: SignedIn, kind: &'static ShareableKind, feedback: Feedback) -> PageResult {
    let object = ObjectPath::of(&request.visit, kind.objects)?;
    let path = object.api("sharing/");
    let found: Shareable = request.api.get(&object.api("")).await?;
    let sharing: Sharing = request.api.get(&path).await?;
    let is_enabled = sharing.enabled;
    let change = kind.enable(&object, !is_enabled);
    let reason = if kind.is_insight {
        request.api.refusal(&change).await?
    } else {
        found.reason_not_to_share(is_enabled).map(str::to_owned)
    };
    let may_share = reason.is_none() && request.api.may(&change.operation).await?;
    let name = kind.name(&found).to_owned();
    let title = if kind.is_insight { "Sharing".to_owned() } else { format!("Sharing of {name}") };
    let token = sharing.access_token.filter(|_| is_enabled);
    let page = SharingPage {
        kind,
        name,
        is_enabled,
        since: sharing.created_at,
        link: token.map(|token| format!("{}/shared/{token}/", request.visit.base_url())),
        local_base: local_base(&request.visit.base_url()),
        tiles: found.tiles.len(),
        // The command of the button, or else of the page itself.
        command: if may_share && !kind.is_insight {
            Command::write(&request, &change)?
        } else {
            Command::get(&request.visit, &path)
        },
        may_share,
        reason,
        once: once_key(),
        object,
    };
    feedback.show(&request, title, &page).await
}

impl ShareableKind {
    /// Returns the request that enables or disables the public page.
    fn enable(&self, object: &ObjectPath, is_enabled: bool) -> Write {
        object.write(self.share).body(json!({ "enabled": is_enabled }))
    }
}

impl Shareable {
    /// Whether a tile shows an insight that the session may not view.
    fn shows_hidden_insight(&self) -> bool {
        self.tiles.iter().filter_map(|tile| tile.insight.as_ref()).any(TileInsight::is_hidden)
    }

    /// Returns why the session cannot share the dashboard.
    fn reason_not_to_share(&self, is_enabled: bool) -> Option<&'static str> {
        if !self.rights.may_edit() {
            Some("Only users who may edit the dashboard can share it.")
        } else if !is_enabled && self.shows_hidden_insight() {
            Some(
                "The dashboard shows an insight that you may not view. Only users who may view all its insights can share it.",
            )
        } else {
            None
        }
    }
}
