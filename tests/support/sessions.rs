//! Console sessions, created as the console creates them.

use std::net::{IpAddr, Ipv4Addr};

use steward::testing::resources::sessions::Fields;

use super::{TestClient, Workspace};

pub const SESSIONS: &str = "/api/users/@me/sessions/";
pub const USER_AGENT: &str = "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0";

/// A session, and a client that makes requests in it.
pub struct SignedIn {
    /// The text that a browser would keep.
    pub text: String,
    pub client: TestClient,
    id: String,
}

impl SignedIn {
    /// Returns the session with this text.
    pub fn of(workspace: &Workspace, text: String) -> Self {
        let session = workspace.app.verify_session(&text).expect("a session");
        let id = session.id.to_string();
        Self { text, client: workspace.in_session(session), id }
    }

    pub fn id(&self) -> String {
        self.id.clone()
    }

    /// Returns the path of the session.
    pub fn path(&self) -> String {
        format!("{SESSIONS}{}/", self.id)
    }
}

/// Returns the browser that signs in.
pub fn browser() -> Fields {
    Fields::new(USER_AGENT, IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7)))
}

/// Signs in with an API key.
pub async fn sign_in(workspace: &Workspace, key: &str) -> SignedIn {
    let text = workspace.app.sign_in_with_key(key, browser(), None).await.expect("a session");
    SignedIn::of(workspace, text.encode())
}

/// Signs in as the first user with a sign-in link.
pub async fn sign_in_by_link(workspace: &Workspace) -> SignedIn {
    let user = workspace.made.user_id;
    let link = workspace.app.create_sign_in_link(user, false).await.expect("a link");
    let text =
        workspace.app.sign_in_with_link(&link.code, browser(), None).await.expect("a session");
    SignedIn::of(workspace, text.encode())
}
