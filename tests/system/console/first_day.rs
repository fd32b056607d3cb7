//! What a new user does first, by keyboard alone.

use crate::prelude::*;

/// The most presses of Tab from one control to another.
const MAX_TABS: usize = 250;

/// A person in front of a browser who uses no mouse.
struct Person {
    browser: Browser,
}

impl Person {
    async fn new() -> Self {
        let browser = browser().await;
        browser.keep_focus().await;
        Self { browser }
    }

    /// Moves the focus to the first of these controls with Tab. Asserts that each control on the way shows its focus.
    async fn focus(&self, selector: &str) {
        let state = format!(
            "const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect(); \
             const isShown = one.checkVisibility({{ visibilityProperty: true, opacityProperty: true }}) && box.width > 1 \
               && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth; \
             const isMarked = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; \
             return [one.matches(`{selector}`), one === document.body || isShown && isMarked, \
               `${{isShown}} ${{style.outline}} ${{one.outerHTML.slice(0, 200)}}`]"
        );
        for _ in 0..MAX_TABS {
            let found = self.browser.run(&state).await;
            assert_eq!(found[1], true, "the focus is not visible: {}", found[2]);
            if found[0] == true {
                return;
            }
            self.browser.press_tab().await;
        }
        panic!("Tab does not reach {selector}");
    }

    /// Presses a button or follows a link.
    async fn press(&self, selector: &str) {
        self.focus(selector).await;
        self.browser.press(Key::Enter).await;
    }

    /// Presses a button or follows a link, and reads the page with this title.
    async fn opens(&self, selector: &str, title: &str) {
        self.press(selector).await;
        self.reads(title).await;
    }

    /// Types into an empty field. A space checks a box.
    async fn fill(&self, selector: &str, text: &str) {
        self.focus(selector).await;
        self.browser.type_text(text).await;
    }

    /// Chooses an option of a list, which the arrow keys reach from the first one.
    async fn choose(&self, selector: &str, value: &str) {
        self.focus(selector).await;
        for _ in 0..20 {
            if self.browser.run("return document.activeElement.value").await == value {
                return;
            }
            self.browser.press(Key::Down).await;
        }
        panic!("the arrow keys do not reach {value}");
    }

    /// Waits for the page with this title, and asserts that nothing is wrong with it.
    async fn reads(&self, title: &str) {
        shown(&self.browser, title).await;
        assert_sound(&self.browser, title).await;
    }

    async fn reads_notice(&self, text: &str) {
        assert_eq!(self.browser.text("[data-notice] p").await, text);
    }
}

/// Signs in with a key, past the content that a screen reader would repeat.
async fn sign_in(person: &Person, site: &Site) {
    site.visit(&person.browser, "sign_in/").await;
    person.fill("#key", &site.workspace.made.api_key).await;
    person.opens("button.go", "Home").await;
    person.press("a.skip").await;
    let inside = "document.activeElement.id === 'main'";
    person.browser.wait_until("the link skips to the content", inside).await;
}

/// Creates a dashboard from a template, adds a text and makes it public.
async fn share_a_dashboard(person: &Person) {
    person.opens("nav.side a[href$='/dashboards/']", "Dashboards").await;
    person.opens("main .actions a.go", "New dashboard").await;
    person.press(".tabs a[href$='from=template']").await;
    person.browser.text("#form-use_template").await;
    person.choose("#form-use_template", "WEBSITE_TRAFFIC").await;
    person.opens("#form .bar button.go", "Website traffic").await;
    person.reads_notice("Dashboard created.").await;
    person.opens("main .actions a.go", "Add a text").await;
    person.fill("#form textarea", "# Read this first").await;
    person.opens("#form .bar button.go", "Website traffic").await;
    assert_eq!(person.browser.text(".tile .text h2").await, "Read this first");
    person.opens("main .actions a[href$='/sharing/']", "Sharing of Website traffic").await;
    person.press("button[value=enable]").await;
    let link = person.browser.text("#link").await;
    assert!(link.contains("/shared/"), "{link}");
}

async fn create_a_key(person: &Person) {
    person.opens("nav.side a[href='/console/keys/']", "API keys").await;
    person.opens("main .b.go", "New API key").await;
    person.press("button[value='dashboards']").await;
    let chosen = "document.querySelector(\"input[value='dashboard:write']\").checked";
    person.browser.wait_until("the preset is chosen", chosen).await;
    person.fill("#form-label", "Nightly report").await;
    person.opens("#form .bar button.go", "API key created").await;
    assert!(person.browser.text("#value").await.starts_with("phx_"));
}

/// Changes two settings, and sets them back from the log.
async fn change_and_revert(person: &Person, site: &Site) {
    let project = format!("/api/projects/{}/", site.workspace.made.project_id);
    let read = async || -> Value {
        let project = site.workspace.owner.get(&project).await.ok();
        json!([project["anonymize_ips"], project["week_start_day"]])
    };
    let before = read().await;
    person.opens("nav.side a[href$='/settings/'][href*='/projects/']", "Project settings").await;
    person.fill("#form-anonymize_ips", " ").await;
    person.choose("#form-week_start_day", "1").await;
    person.press("#form .bar button.go").await;
    person.reads_notice("Settings saved.").await;
    assert_eq!(read().await, json!([true, 1]));
    person.opens("nav.side a[href$='/activity/'][href*='/projects/']", "Activity").await;
    person.opens(".feed a[href*=revert]", "Revert this change?").await;
    person.press("#form button.go").await;
    person.reads_notice("Change reverted.").await;
    assert_eq!(read().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_day_is_possible_by_keyboard_alone() {
    let site = Site::new().await;
    let person = Person::new().await;
    sign_in(&person, &site).await;
    share_a_dashboard(&person).await;
    create_a_key(&person).await;
    change_and_revert(&person, &site).await;
}
