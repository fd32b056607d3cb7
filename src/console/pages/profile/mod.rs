//! The user's own account.

use super::form_page::FormPage;
use super::prelude::*;

const PROFILE: &str = "/console/profile/";

const UPDATE: &str = "users_partial_update";

const FORM: FormSpec = FormSpec::change(
    "Save",
    &[
        Input::new("first_name").label("Given name"),
        Input::new("last_name").label("Family name"),
        Input::new("role_at_organization").label("Role").hint("Your role in the organization."),
        Input::new("theme_mode")
            .label("Theme")
            .hint("Without one, the console follows your system."),
        Input::new("toolbar_mode").heading("Stored for programs"),
        Input::new("anonymize_data"),
        Input::new("notification_settings").label("Notifications"),
        Input::new("events_column_config"),
        Input::new("has_seen_product_intro_for"),
        Input::new("hedgehog_config"),
    ],
);

pub(super) fn routes(pages: &mut Pages<'_>) {
    pages.form(PROFILE, page, save);
}

fn operation() -> Operation {
    Operation::new(UPDATE, [])
}

async fn page(request: SignedIn) -> PageResult {
    let user = request.api.get_versioned("/api/users/@me/").await?;
    let form = FORM.filled(&request, &operation(), PROFILE, &user)?;
    let nothing = Write::new(UPDATE, []).body(json!({}));
    let refusal = request.api.refusal(&nothing).await?;
    show(&request, form.refused_for(refusal)).await
}

async fn save(request: SignedIn) -> PageResult {
    match FORM.sent(&request, operation(), PROFILE)?.send(&request).await? {
        Outcome::Done(_) => finish(PROFILE, "profile-saved"),
        Outcome::Again(form) => show(&request, *form).await,
    }
}

async fn show(request: &SignedIn, form: Form) -> PageResult {
    let lede =
        "What others see of you, and what programs that show the workspace remember for you.";
    let page = FormPage::new("Profile", form).with_lede(lede);
    page.show(request).await
}
