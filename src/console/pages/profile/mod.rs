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
    pages.form(PROFILE, profile);
}

async fn profile(request: SignedIn) -> PageResult {
    let update = Operation::new(UPDATE, []);
    let form = if request.visit.sends_form() {
        match FORM.sent(&request, update, PROFILE)?.send(&request).await? {
            Outcome::Done(_) => return finish(PROFILE, "profile-saved"),
            Outcome::Again(form) => *form,
        }
    } else {
        let user = request.api.get_versioned("/api/users/@me/").await?;
        let form = FORM.filled(&request, &update, PROFILE, &user)?;
        let nothing = Write::new(UPDATE, []).body(json!({}));
        form.refused_for(request.api.refusal(&nothing).await?)
    };
    let lede =
        "What others see of you, and what programs that show the workspace remember for you.";
    FormPage::new("Profile", form).with_lede(lede).show(&request).await
}
