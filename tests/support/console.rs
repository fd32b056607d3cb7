//! A browser without scripts that opens pages of the console: it keeps the cookies, and sends what browsers send.

use axum::http::{HeaderMap, Method};
use steward::testing::resources::members::Level;

use super::{TestClient, TestResponse, Workspace};

/// The headers of a form that a page of the console sends.
pub const FORM: [(&str, &str); 2] =
    [("sec-fetch-site", "same-origin"), ("content-type", "application/x-www-form-urlencoded")];

/// A browser.
#[derive(Clone)]
pub struct Visitor {
    client: TestClient,
    /// The cookie of the session, as the browser sends it.
    pub cookie: Option<String>,
    /// The cookie of a request for a sign-in mail, as the browser sends it.
    pub mail_cookie: Option<String>,
    /// The cookie that proves that a user has signed in in the browser, as the browser sends it.
    pub known_cookie: Option<String>,
    /// The address that a trusted proxy names.
    pub address: Option<String>,
}

/// A page.
pub struct Page {
    pub status: u16,
    pub headers: HeaderMap,
    pub html: String,
}

impl Page {
    fn of(answer: TestResponse) -> Self {
        let html = String::from_utf8(answer.bytes).expect("UTF-8");
        Self { status: answer.status, headers: answer.headers, html }
    }

    /// Returns the target of a redirection.
    #[track_caller]
    pub fn location(&self) -> &str {
        assert_eq!(self.status, 303, "{}", self.html);
        self.headers["location"].to_str().expect("text")
    }

    /// Asserts a page with this status and this heading.
    #[track_caller]
    pub fn assert_shows(&self, status: u16, heading: &str) -> &Self {
        assert_eq!(self.status, status, "{}", self.html);
        assert_eq!(self.headers["content-type"], "text/html; charset=utf-8");
        let heading_start = self.html.find("<h1").expect("a heading");
        let end = heading_start + self.html[heading_start..].find("</h1>").expect("its end");
        let shown = &self.html[heading_start..end];
        assert!(shown.ends_with(heading), "{shown}");
        self
    }

    /// Does what [`assert_shows`](Self::assert_shows) does, and returns the page.
    #[must_use]
    #[track_caller]
    pub fn showing(self, status: u16, heading: &str) -> Self {
        self.assert_shows(status, heading);
        self
    }

    /// Asserts a redirection to this page.
    #[track_caller]
    pub fn assert_leads_to(&self, target: &str) -> &Self {
        assert_eq!(self.location(), target);
        self
    }

    /// Asserts that the page contains all of these texts.
    #[track_caller]
    pub fn assert_has(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(self.html.contains(text), "{text}: {}", self.html);
        }
        self
    }

    /// Asserts that the page contains none of these texts.
    #[track_caller]
    pub fn assert_lacks(&self, texts: &[&str]) -> &Self {
        for text in texts {
            assert!(!self.html.contains(text), "{text}: {}", self.html);
        }
        self
    }

    /// Asserts that the error beside a field of the form `form` contains this text.
    #[track_caller]
    pub fn assert_field_error(&self, field: &str, text: &str) -> &Self {
        let error = self.between(&format!("id=\"form-{field}-error\">"), "</p>");
        assert!(error.contains(text), "{field}: {error}");
        self
    }

    /// Returns the part of the page between the first `start` and the next `end`, as a page.
    #[must_use]
    #[track_caller]
    pub fn part(&self, start: &str, end: &str) -> Self {
        let html = self.between(start, end).to_owned();
        Self { html, status: self.status, headers: self.headers.clone() }
    }

    /// Returns the text between the first `start` and the next `end`.
    #[track_caller]
    pub fn between(&self, start: &str, end: &str) -> &str {
        let (_, rest) =
            self.html.split_once(start).unwrap_or_else(|| panic!("{start}: {}", self.html));
        rest.split_once(end).expect("the end").0
    }
}

/// A form on a page, filled as a browser without scripts shows it.
#[derive(Debug, Clone)]
pub struct FilledForm {
    pub action: String,
    pub fields: Vec<(String, String)>,
}

impl FilledForm {
    /// Returns a form that has these fields.
    pub fn of(action: &str, fields: &[(&str, &str)]) -> Self {
        let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { action: action.to_owned(), fields: fields.collect() }
    }

    /// Types a text into a field, or chooses it.
    #[must_use]
    pub fn with(mut self, name: &str, text: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self.fields.push((name.to_owned(), text.to_owned()));
        self
    }

    /// Checks a further box of a field.
    #[must_use]
    pub fn and(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the checked boxes of a field.
    #[must_use]
    pub fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.fields.iter().filter(|(known, _)| known == name);
        fields.map(|(_, value)| value.as_str()).collect()
    }

    /// Removes a field, as a browser does for an unchecked box.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.fields.retain(|(known, _)| known != name);
        self
    }

    /// Returns the value of a field.
    #[track_caller]
    pub fn value(&self, name: &str) -> &str {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found.map_or_else(|| panic!("no field {name}: {:?}", self.fields), |(_, value)| value)
    }
}

impl Page {
    /// Returns the form with this id.
    #[track_caller]
    pub fn form(&self, id: &str) -> FilledForm {
        let mark = format!(" id=\"{id}\">");
        let form = self
            .form_texts()
            .find(|form| form.split('\n').next().is_some_and(|tag| tag.ends_with(&mark)));
        fill(form.unwrap_or_else(|| panic!("no form {id}: {}", self.html)))
    }

    /// Returns the first form that is sent to a path with this end.
    #[track_caller]
    pub fn form_to(&self, end: &str) -> FilledForm {
        let form = self.forms().into_iter().find(|form| form.action.ends_with(end));
        form.unwrap_or_else(|| panic!("no form to {end}: {}", self.html))
    }

    /// Returns all forms that change something.
    pub fn forms(&self) -> Vec<FilledForm> {
        let changes =
            |form: &&str| form.split('>').next().is_some_and(|tag| tag.contains("method=\"post\""));
        self.form_texts().filter(changes).map(fill).collect()
    }

    fn form_texts(&self) -> impl Iterator<Item = &str> {
        let forms = self.html.split("<form ").skip(1);
        forms.map(|rest| rest.split("</form>").next().unwrap_or_default())
    }

    /// Returns every form that changes something, once for each of its buttons and actions, with all rows selected.
    pub fn buttons(&self) -> Vec<FilledForm> {
        let mut found: Vec<FormParts> = Vec::new();
        for (index, piece) in self.html.split("<form ").enumerate() {
            let (form, rest) = match index {
                0 => ("", piece),
                _ => piece.split_once("</form>").expect("the end of a form"),
            };
            if index > 0 {
                found.push(FormParts::of(form));
            }
            for (text, enclosing) in [(form, index.checked_sub(1)), (rest, None)] {
                for tag in text.split('<').skip(1) {
                    let head = tag.split('>').next().unwrap_or_default();
                    let named = attribute(head, "form");
                    let by_id = named.and_then(|id| found.iter().position(|one| one.id == id));
                    if let Some(form) = by_id.or(enclosing).and_then(|at| found.get_mut(at)) {
                        form.add(head);
                    }
                }
            }
        }
        found.into_iter().filter(|form| form.is_post).flat_map(FormParts::presses).collect()
    }

    /// Returns the commands that the page shows instead of sending a form. None if the form would send no request.
    #[track_caller]
    pub fn commands(&self) -> Vec<String> {
        self.assert_shows(200, "As a command");
        let Some((_, rest)) = self.html.split_once("id=\"commands\">\n<pre><code dir=\"ltr\">")
        else {
            let nothing = "id=\"commands\">There is nothing to change";
            assert!(self.html.contains(nothing), "{}", self.html);
            return Vec::new();
        };
        let (text, _) = rest.split_once("</code>").expect("the end");
        let text = unescape(text);
        text.split("\ncurl ")
            .map(|one| format!("curl {}", one.trim_start_matches("curl ")))
            .collect()
    }

    /// Returns the command that the page shows instead of sending a form.
    #[track_caller]
    pub fn command(&self) -> String {
        let commands = self.commands();
        let [command] = commands.as_slice() else { panic!("{commands:?}") };
        command.clone()
    }

    /// Returns the targets of all links, without fragments.
    pub fn links(&self) -> Vec<String> {
        let links = self.html.split(" href=\"").skip(1);
        let links = links.filter_map(|rest| rest.split('"').next());
        let links = links.map(unescape);
        links.map(|link| link.split('#').next().unwrap_or_default().to_owned()).collect()
    }
}

/// A form with what can be pressed and chosen in it.
struct FormParts {
    id: String,
    is_post: bool,
    filled: FilledForm,
    /// The names and values of its buttons, apart from those that only show something.
    buttons: Vec<Option<(String, String)>>,
    /// The ids of its rows.
    rows: Vec<String>,
    /// The actions that it offers for the rows.
    actions: Vec<String>,
    /// The name of the last select.
    select: String,
}

impl FormParts {
    fn of(form: &str) -> Self {
        let head = format!(" {}", form.split('>').next().unwrap_or_default());
        Self {
            id: attribute(&head, "id").unwrap_or_default().to_owned(),
            is_post: head.contains(" method=\"post\""),
            filled: fill(form),
            buttons: Vec::new(),
            rows: Vec::new(),
            actions: Vec::new(),
            select: String::new(),
        }
    }

    /// Adds an element of the form, which may stand elsewhere on the page.
    fn add(&mut self, head: &str) {
        let (name, value) = (attribute(head, "name"), attribute(head, "value").map(unescape));
        let value = value.unwrap_or_default();
        match head.split(' ').next().unwrap_or_default() {
            "button" if attribute(head, "type") == Some("button") => {}
            "button" if name.is_some_and(|name| name.starts_with('_')) => {}
            "button" => self.buttons.push(name.map(|name| (name.to_owned(), value))),
            "input" if name == Some("id") => self.rows.push(value),
            "select" => name.unwrap_or_default().clone_into(&mut self.select),
            "option" if self.filled.fields.iter().any(|(name, _)| name == "action") => {
                self.actions.push(value);
            }
            "option" => self.choose(value),
            _ => {}
        }
    }

    /// Chooses an option if the page has chosen none. A rule is for everyone unless somebody is chosen.
    fn choose(&mut self, option: String) {
        if ["organization_member", "role"].contains(&self.select.as_str()) {
            return;
        }
        let mut fields = self.filled.fields.iter_mut();
        let chosen = fields.find(|(name, value)| *name == self.select && value.is_empty());
        if let Some((_, value)) = chosen {
            *value = option;
        }
    }

    /// Returns what the browser sends for each button and each action.
    fn presses(self) -> Vec<FilledForm> {
        let Self { filled, mut buttons, rows, actions, .. } = self;
        let filled = rows.iter().fold(filled.without("id"), |form, row| form.and("id", row));
        buttons.sort();
        buttons.dedup();
        let mut presses = Vec::new();
        for button in buttons {
            match button {
                Some((name, value)) => presses.push(filled.clone().and(&name, &value)),
                None if actions.is_empty() => presses.push(filled.clone()),
                None => {
                    presses.extend(actions.iter().map(|one| filled.clone().with("action", one)));
                }
            }
        }
        presses
    }
}

/// Reads a form as a browser without scripts shows it.
#[track_caller]
fn fill(form: &str) -> FilledForm {
    let form = format!(" {form}");
    let form = form.as_str();
    let action = unescape(attribute(form, "action").expect("an action"));
    let mut fields = Vec::new();
    for tag in form.split('<').skip(1) {
        let (head, text) = tag.split_once('>').expect("the end of a tag");
        let Some(name) = attribute(head, "name") else {
            // An option belongs to the last select.
            if head.starts_with("option") && head.ends_with(" selected") {
                let value = unescape(attribute(head, "value").expect("a value"));
                let (_, last): &mut (String, String) = fields.last_mut().expect("a select");
                *last = value;
            }
            continue;
        };
        let value = match head.split(' ').next().unwrap_or_default() {
            "button" => continue,
            "textarea" => text.strip_prefix('\n').unwrap_or(text),
            "input" if head.contains("type=\"checkbox\"") && !head.contains(" checked") => {
                continue;
            }
            _ => attribute(head, "value").unwrap_or_default(),
        };
        fields.push((name.to_owned(), unescape(value)));
    }
    FilledForm { action, fields }
}

fn attribute<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let (_, rest) = head.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

fn unescape(text: &str) -> String {
    let pairs = [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

impl Workspace {
    /// Returns the address of a page of the console about the first organization.
    pub fn page(&self, rest: &str) -> String {
        format!("/console/organizations/{}/{rest}", self.made.organization_id)
    }
}

impl Visitor {
    /// Sends a form of a page.
    pub async fn submit(&mut self, form: &FilledForm) -> Page {
        let fields: Vec<_> =
            form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.post(&form.action, &fields).await
    }

    /// Returns a browser that is not signed in.
    pub fn new(workspace: &Workspace) -> Self {
        Self {
            client: workspace.anonymous(),
            cookie: None,
            mail_cookie: None,
            known_cookie: None,
            address: None,
        }
    }

    /// Returns a browser that signed in with this API key.
    pub async fn with_key(workspace: &Workspace, key: &str) -> Self {
        let mut visitor = Self::new(workspace);
        let page = visitor.post("/console/sign_in/", &[("key", key)]).await;
        assert_eq!(page.location(), "/console/");
        visitor
    }

    /// Creates a key of this user with these scopes. Returns a browser that it signed in.
    pub async fn with_scopes(workspace: &Workspace, email: &str, scopes: &[&str]) -> Self {
        Self::with_key(workspace, &workspace.key(email, scopes).await.key.expect("a key")).await
    }

    /// Creates a member of the first organization. Returns a browser in which the member is signed in.
    pub async fn member(workspace: &Workspace, name: &str, level: Level) -> Self {
        Self::with_key(workspace, &workspace.member(name, level).await.key.expect("a key")).await
    }

    /// Creates a workspace. Returns it and a browser that the owner's key signed in.
    pub async fn in_new_workspace() -> (Workspace, Self) {
        let workspace = Workspace::new().await;
        let owner = Self::owner(&workspace).await;
        (workspace, owner)
    }

    /// Returns a browser that the owner's key signed in.
    pub async fn owner(workspace: &Workspace) -> Self {
        Self::with_key(workspace, &workspace.made.api_key).await
    }

    /// Returns a browser that a link signed in as the first user.
    pub async fn with_link(workspace: &Workspace, is_operator: bool) -> Self {
        let user = workspace.made.user_id;
        let link = workspace.app.create_sign_in_link(user, is_operator).await.expect("a link");
        let mut visitor = Self::new(workspace);
        let page = visitor.post("/console/enter/confirm/", &[("code", &link.code)]).await;
        assert_eq!(page.location(), "/console/");
        visitor
    }

    /// Returns the browser with its cookies, for the same file that is served again.
    pub fn at(self, workspace: &Workspace) -> Self {
        Self { client: workspace.anonymous(), ..self }
    }

    pub async fn get(&self, path: &str) -> Page {
        self.fetch(Method::GET, path, &[], "").await
    }

    /// Opens a page, and asserts that it has this heading.
    pub async fn open(&self, path: &str, heading: &str) -> Page {
        let page = self.get(path).await;
        page.assert_shows(200, heading);
        page
    }

    /// Sends a form from a page of the console, and keeps the cookies of the response.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body =
            url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let page = self.fetch(Method::POST, path, &FORM, &body).await;
        for set in page.headers.get_all("set-cookie") {
            let set = set.to_str().expect("text");
            let (pair, _) = set.split_once(';').expect("attributes");
            let kept = (!pair.ends_with('=')).then(|| pair.to_owned());
            if pair.contains("steward-mail") {
                self.mail_cookie = kept;
            } else if pair.contains("steward-known") {
                self.known_cookie = kept;
            } else {
                self.cookie = kept;
            }
        }
        page
    }

    /// Sends a request with these headers.
    pub async fn fetch(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Page {
        let mut headers = headers.to_vec();
        let cookies =
            [&self.cookie, &self.mail_cookie, &self.known_cookie].into_iter().flatten().cloned();
        let cookies: Vec<_> = cookies.collect();
        let cookies = cookies.join("; ");
        headers.extend((!cookies.is_empty()).then_some(("cookie", cookies.as_str())));
        headers.extend(self.address.as_deref().map(|address| ("x-forwarded-for", address)));
        Page::of(self.client.fetch(method, path, &headers, body.to_owned()).await)
    }
}
