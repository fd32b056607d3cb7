//! Signing in to the console and out again. Log lines name the session and the user, never a secret.

use crate::base::error::{Error, Result};
use crate::base::secret::encode_base62;
use crate::base::time::Timestamp;
use crate::fair::fair_queue::Consumer;
use crate::ids::UserId;
use crate::resources::sessions::{
    self, BrowserNonce, Fields, KnownBrowser, MailCode, NewSession, SecretDigest, SessionText,
    VerifiedSession,
};
use crate::resources::users;
use crate::store::WriteTx;

use super::App;
use super::changes::{Author, WriteOptions};

/// Creates a session, unless what the client sent is not valid.
type CreateSession =
    Box<dyn Fn(&mut WriteTx<'_>, &NewSession, Timestamp) -> Result<Option<VerifiedSession>> + Send>;

/// A new sign-in link.
pub struct NewLink {
    /// The code. It is a credential.
    pub code: String,
    /// When the link expires.
    pub expires_at: Timestamp,
}

impl App {
    /// Verifies the text of a session.
    #[doc(hidden)]
    pub fn verify_session(&self, text: &str) -> Result<VerifiedSession> {
        let tx = self.store().snapshot()?;
        sessions::verify(&*tx, &self.0.signing.sessions, text, self.now())
    }

    /// Creates a session that is bound to the key with this text, and ends the session `replaced`. Counts as a request of
    /// the key.
    ///
    /// # Errors
    /// 401 with the same text for every reason if the key is not valid; 429 if the key exceeds a limit; 503 if the
    /// transaction cannot be committed.
    #[doc(hidden)]
    pub async fn sign_in_with_key(
        &self,
        text: &str,
        client: Fields,
        replaced: Option<&VerifiedSession>,
    ) -> Result<SessionText> {
        let tx = self.store().fresh().await?;
        let key = self.key_cache().verify(&tx, text)?;
        drop(tx);
        self.rate_limiter().check_key(key.key())?;
        let rule: CreateSession = Box::new(move |tx, new, now| {
            sessions::create_for_key(tx, key.key(), key.hash(), new, now).map(Some)
        });
        self.sign_in("key", client, replaced, rule).await
    }

    /// Creates a session from the sign-in link with this code, which is then used up, and ends the session `replaced`.
    ///
    /// # Errors
    /// 401 if the link is not valid; 503 if the transaction cannot be committed.
    #[doc(hidden)]
    pub async fn sign_in_with_link(
        &self,
        code: &str,
        client: Fields,
        replaced: Option<&VerifiedSession>,
    ) -> Result<SessionText> {
        let code = self.code_digest(code);
        let rule: CreateSession =
            Box::new(move |tx, new, now| sessions::create_from_link(tx, code, new, now).map(Some));
        self.sign_in("link", client, replaced, rule).await
    }

    /// Creates a session from the code of a mail, which is then used up, and ends the session `replaced`. `nonce` is that
    /// of the browser that asked for the mail.
    ///
    /// # Errors
    /// 401 with the same text for every reason if the code is not valid; 503 if the transaction cannot be committed.
    #[doc(hidden)]
    pub async fn sign_in_with_mail(
        &self,
        nonce: &str,
        code: &str,
        client: Fields,
        replaced: Option<&VerifiedSession>,
    ) -> Result<SessionText> {
        let nonce = BrowserNonce::parse(nonce).ok_or_else(invalid_code)?;
        let code = MailCode::parse(code).ok_or_else(invalid_code)?;
        let keys = &self.0.signing.sessions;
        let browser = keys.browser_digest(&nonce);
        let code = keys.mail_code_digest(&browser, &code);
        let tx = self.store().fresh().await?;
        if !sessions::find_open_request(&*tx, browser, self.now())? {
            return Err(invalid_code());
        }
        drop(tx);
        let client = Fields { is_by_mail: true, ..client };
        let rule: CreateSession =
            Box::new(move |tx, new, now| sessions::create_from_mail(tx, browser, code, new, now));
        self.sign_in("mail", client, replaced, rule).await
    }

    /// Returns the proof that the user of a new session has signed in in a browser. Returns `None` if the session has ended.
    pub(crate) fn known_browser(&self, text: &SessionText) -> Result<Option<KnownBrowser>> {
        match self.verify_session(&text.encode()) {
            Ok(session) => Ok(Some(self.0.signing.sessions.known_browser(session.user))),
            Err(error) if error.status() == 401 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a session if `rule` does. The transaction is committed even if it does not.
    async fn sign_in(
        &self,
        source: &'static str,
        client: Fields,
        replaced: Option<&VerifiedSession>,
        rule: CreateSession,
    ) -> Result<SessionText> {
        let text = SessionText::generate(&mut self.seed().rng(), self.now());
        let options = WriteOptions::of_small_write(Consumer::from_address(client.ip_address));
        let new = NewSession::new(&self.0.signing.sessions, &text, client, replaced);
        let write =
            self.write(options, move |tx, now| Ok((Author::default(), rule(tx, &new, now)?)));
        let session = write.await?.0.ok_or_else(invalid_code)?;
        tracing::info!(session = %session.id, user = %session.user, source, "signed in to the console");
        Ok(text)
    }

    /// Ends the session of a request. It needs no permission.
    ///
    /// # Errors
    /// 404 if the session has ended; 503 if the transaction cannot be committed.
    #[doc(hidden)]
    pub async fn sign_out(&self, session: &VerifiedSession) -> Result<()> {
        let (id, user) = (session.id, session.user);
        let options = WriteOptions::of_small_write(Consumer::User(user.0));
        self.write(options, move |tx, now| {
            Ok((Author::default(), sessions::end(tx, user, id, now)?))
        })
        .await?;
        tracing::info!(session = %id, %user, "signed out of the console");
        Ok(())
    }

    /// Creates a sign-in link for a user.
    ///
    /// # Errors
    /// 400 if the user is deactivated, 404 if it does not exist; 503 if the transaction cannot be committed.
    #[doc(hidden)]
    pub async fn create_sign_in_link(&self, user: UserId, is_operator: bool) -> Result<NewLink> {
        let code = encode_base62(&self.seed().rng().bytes());
        let digest = self.code_digest(&code);
        let create =
            self.operate(move |tx, now| sessions::create_link(tx, digest, user, is_operator, now));
        let expires_at = create.await?;
        tracing::info!(%user, is_operator, "created a sign-in link");
        Ok(NewLink { code, expires_at })
    }

    /// Returns the user that the sign-in link with this code signs in. The link stays valid.
    ///
    /// # Errors
    /// 401 if the link is not valid.
    #[doc(hidden)]
    pub fn find_sign_in_link(&self, code: &str) -> Result<users::Fields> {
        sessions::find_link(&*self.store().snapshot()?, self.code_digest(code), self.now())
    }

    fn code_digest(&self, code: &str) -> SecretDigest {
        self.0.signing.sessions.code_digest(code)
    }
}

fn invalid_code() -> Error {
    Error::authentication_failed_as("The code is invalid, has expired or was used.")
}
