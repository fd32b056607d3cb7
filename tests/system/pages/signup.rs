//! Tests of the signup page in a real browser.

use crate::prelude::*;

/// Follows the link of the page, and asserts that it opens the console as this user.
async fn assert_in_console(browser: &Browser, email: &str) {
    browser.click("#next:not([hidden]) a").await;
    let home = "document.readyState === 'complete' && document.title === 'Home · Steward'";
    browser.wait_until("the console", home).await;
    let shown = browser.run("return document.querySelector('#you p').textContent").await;
    assert!(shown.as_str().expect("a text").contains(email), "{shown}");
}

#[tokio::test]
async fn new_user_joins_in_the_browser() {
    let Served { site, server, key: owner, .. } = Served::with(&[]);
    let organization = "/api/organizations/@current/";
    let link = |email: &str| {
        let sent = json!({ "target_email": email, "first_name": "Ann" });
        let made = server.post(&format!("{organization}invites/"), &owner, &sent).ok();
        made["accept_url"].as_str().expect("a link").to_owned()
    };
    let me = |key: &str| server.get("/api/users/@me/", key).ok();
    let name = "<img src=x onerror=document.title='broken'> & Co";
    server.send("PATCH", organization, &owner, Some(&json!({ "name": name }))).ok();
    let browser = Browser::open().await;
    browser.visit(&link("ann@x.example")).await;
    assert_eq!(browser.text("#form:not([hidden]) button").await, "Join");
    assert_eq!(browser.text("#title").await, format!("Join {name}"));
    assert_eq!(browser.text("#status").await, format!("ann@x.example is invited to {name}."));
    browser.fill("#first_name", "Anna").await;
    browser.fill("#last_name", "Lee").await;
    browser.click("#form button").await;
    let key = browser.text("#made:not([hidden]) output").await;
    assert_eq!(browser.text("#title").await, format!("Welcome to {name}"));
    let joined = me(&key);
    let purpose = browser.text("#made p").await;
    assert!(purpose.contains("shown only once") && purpose.contains("Programs"), "{purpose}");
    browser.click("#copy").await;
    let copied = "['Copied', 'Copy'].includes(document.getElementById('copy').textContent) && \
                  (document.getElementById('copy').textContent === 'Copied' || String(getSelection()).startsWith('phx_'))";
    browser.wait_until("the key is copied or selected", copied).await;
    let shown = json!([joined["email"], joined["first_name"], joined["last_name"]]);
    assert_eq!(shown, json!(["ann@x.example", "Anna", "Lee"]));
    // Joining has signed in to the console.
    assert_in_console(&browser, "ann@x.example").await;

    // A user with an account must enter its API key. The key of another account fails.
    let other = site.json(&["user", "create", "--email", "bob@x.example"]);
    assert_eq!(other["membership_id"], Value::Null);
    let bob = ["key", "create", "--email", "bob@x.example", "--label", "x", "--scope", "*"];
    let bob = site.json(&bob)["value"].as_str().expect("a key").to_owned();
    browser.visit(&link("bob@x.example")).await;
    browser.text("#account:not([hidden]) label").await;
    browser.fill("#key", &owner).await;
    browser.click("#form button").await;
    let other = "This invite is intended for another email address.";
    assert_eq!(browser.text("#status.bad").await, other);
    browser.fill("#key", &bob).await;
    browser.click("#form button").await;
    browser.text("#form[hidden]").await;
    assert_eq!(browser.text("#status").await, "You have joined as bob@x.example.");
    assert_eq!(me(&bob)["organization"]["name"], name);
    assert_in_console(&browser, "bob@x.example").await;

    // A link with a changed token.
    browser.visit(&link("cat@x.example").replace("token=", "token=x")).await;
    assert_eq!(browser.text("#status.bad").await, "The provided invite ID is not valid.");

    // Without scripts, the page does not seem to load for ever.
    browser.refuse_scripts().await;
    browser.visit(&link("dan@x.example")).await;
    let seems_to_load = "return document.getElementById('status').checkVisibility()";
    assert_eq!(browser.run(seems_to_load).await, false);
    assert_eq!(me(&owner)["email"], OWNER);
}
