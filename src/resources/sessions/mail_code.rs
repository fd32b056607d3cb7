//! The secrets of a sign-in by mail: the nonce that the browser keeps in a cookie, and the code that the mail contains; and
//! that mail, which contains no text of any user. The file stores a keyed digest of each secret. A cookie also keeps the
//! proof that a user has signed in in the browser.

use std::net::IpAddr;

use askama::Template;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::mail::compose::{MailContent, MailKind};
use crate::resources::shared::prelude::*;

use super::session_text::{SecretDigest, SessionKeys, decode};

/// The number of characters of a code. Each has 5 random bits.
const CODE_LENGTH: usize = 8;
/// The characters of a code: without I, L, O and U, which look like others.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// The nonce of a browser that asked for a mail. Only this browser can use the code. Not `Debug`, so that logs cannot
/// contain it.
#[derive(Clone, Copy)]
pub struct BrowserNonce([u8; 32]);

impl BrowserNonce {
    /// Draws a nonce.
    pub fn generate(rng: &mut SeededRng) -> Self {
        Self(rng.bytes())
    }

    /// Parses the text of a nonce. Returns `None` if its form is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        decode(text).map(Self)
    }

    /// Returns the text, in base64url. It is a credential.
    pub fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }
}

/// The code of a mail. Not `Debug`, so that logs cannot contain it.
pub struct MailCode([u8; CODE_LENGTH]);

impl MailCode {
    /// Draws a code.
    pub fn generate(rng: &mut SeededRng) -> Self {
        let mut code = [0; CODE_LENGTH];
        for (character, random) in code.iter_mut().zip(rng.bytes()) {
            let index = usize::from(random) % ALPHABET.len();
            *character = ALPHABET.get(index).copied().unwrap_or_default();
        }
        Self(code)
    }

    /// Parses a code as people type it: in any case, with spaces and hyphens, and with letters that look like digits.
    /// Returns `None` if its form is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let typed = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let meant = typed.map(|c| match c.to_ascii_uppercase() {
            'O' => b'0',
            'I' | 'L' => b'1',
            other => u8::try_from(other).unwrap_or_default(),
        });
        let code: Vec<u8> = meant.take(CODE_LENGTH + 1).collect();
        let is_known = code.iter().all(|character| ALPHABET.contains(character));
        code.try_into().ok().filter(|_| is_known).map(Self)
    }

    /// Returns the code in two groups: `ABCD-EFGH`.
    pub fn grouped(&self) -> String {
        let (first, second) = self.0.split_at(CODE_LENGTH / 2);
        format!("{}-{}", String::from_utf8_lossy(first), String::from_utf8_lossy(second))
    }
}

/// The proof that a user has signed in in a browser: a keyed digest of the user's id. Mails for such a browser count apart, so
/// strangers cannot use them up. The proof is no credential: it signs nobody in.
#[derive(Clone, Copy)]
pub struct KnownBrowser([u8; 32]);

impl KnownBrowser {
    /// Parses the text of a proof. Returns `None` if its form is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        decode(text).map(Self)
    }

    /// Returns the text, in base64url.
    pub fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.0)
    }
}

impl SessionKeys {
    /// Returns the proof that a user has signed in in a browser.
    pub fn known_browser(&self, user: UserId) -> KnownBrowser {
        KnownBrowser(self.hash(*b"visited", &[&user.0.to_be_bytes()]))
    }

    /// Returns whether the proof is for this user.
    pub fn is_known_browser(&self, proof: &KnownBrowser, user: UserId) -> bool {
        self.known_browser(user).0.ct_eq(&proof.0).into()
    }

    /// Returns the digest by which the request of the browser with this nonce is found.
    pub fn browser_digest(&self, nonce: &BrowserNonce) -> SecretDigest {
        SecretDigest(self.hash(*b"browser", &[&nonce.0]))
    }

    /// Returns the digest that verifies the code of a browser's request.
    pub fn mail_code_digest(&self, browser: &SecretDigest, code: &MailCode) -> SecretDigest {
        SecretDigest(self.hash(*b"by mail", &[&browser.0, &code.0]))
    }
}

/// The mail as plain text.
#[derive(Template)]
#[template(path = "sessions/letter/sign_in.txt")]
struct SignInText<'l> {
    service: &'l str,
    url: String,
    code: String,
    ip_address: IpAddr,
    expires_at: String,
}

#[derive(Template)]
#[template(path = "sessions/letter/sign_in.html")]
struct SignInHtml<'l> {
    it: &'l SignInText<'l>,
}

/// Renders the mail with a code for the browser at `ip_address`. `service` is the scheme and host of the service, and
/// `page` the URL of the page that takes the code. The code stands in the fragment of the link, which browsers do not send.
///
/// # Errors
/// 500 if a template fails.
pub fn render_mail(
    service: &str,
    page: &str,
    code: &MailCode,
    ip_address: IpAddr,
    expires_at: Timestamp,
) -> Result<MailContent> {
    let code = code.grouped();
    let url = format!("{page}#{code}");
    let expires_at = expires_at.minute();
    let it = SignInText { service, url: url.clone(), code, ip_address, expires_at };
    let head = (MailKind::SignIn, "Sign in to Steward".to_owned());
    MailContent::render(head, Some(url), &it, &SignInHtml { it: &it })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::secret::{Seed, SigningSecret};

    fn keys() -> SessionKeys {
        SessionKeys::new(&SigningSecret::from_parts([7; 32], None)).expect("a key")
    }

    #[test]
    fn code_is_understood_as_people_type_it() {
        let typed = |text: &str| MailCode::parse(text).map(|code| code.grouped());
        for text in ["AB01-CD1Z", "ab01cd1z", " abol cdiz ", "A-B-O-I-C-D-L-Z\n"] {
            assert_eq!(typed(text).as_deref(), Some("AB01-CD1Z"), "{text}");
        }
        for text in ["", "AB01-CD1", "AB01-CD1ZZ", "AB01-CDUZ", "AB01-CD!Z", "ÄB01-CD1Z"] {
            assert_eq!(typed(text), None, "{text}");
        }
    }

    #[test]
    fn digest_of_a_code_belongs_to_one_browser() {
        let (keys, mut rng) = (keys(), Seed::generate().rng());
        let code = MailCode::generate(&mut rng);
        let [one, other] = [(); 2].map(|()| keys.browser_digest(&BrowserNonce::generate(&mut rng)));
        let digest = keys.mail_code_digest(&one, &code);
        assert!(digest.matches(&keys.mail_code_digest(&one, &code)));
        assert!(!digest.matches(&keys.mail_code_digest(&other, &code)));
    }

    #[test]
    fn proof_is_for_one_user() {
        let keys = keys();
        let proof = keys.known_browser(UserId(1));
        let parsed = KnownBrowser::parse(&proof.encode()).expect("its own text");
        assert!(keys.is_known_browser(&parsed, UserId(1)));
        assert!(!keys.is_known_browser(&proof, UserId(2)));
        keys.renew(&SigningSecret::from_parts([7; 32], Some([8; 32]))).expect("another key");
        assert!(!keys.is_known_browser(&proof, UserId(1)));
    }

    proptest! {
        #[test]
        fn generated_secrets_parse_back(_ in 0..64) {
            let mut rng = Seed::generate().rng();
            let code = MailCode::generate(&mut rng).grouped();
            prop_assert_eq!(MailCode::parse(&code).expect("a code").grouped(), code);
            let nonce = BrowserNonce::generate(&mut rng).encode();
            prop_assert_eq!(BrowserNonce::parse(&nonce).expect("a nonce").encode(), nonce);
        }

        #[test]
        fn parsing_arbitrary_secrets_does_not_panic(text in ".*") {
            prop_assert!(BrowserNonce::parse(&text).is_none_or(|nonce| nonce.encode() == text));
            prop_assert!(KnownBrowser::parse(&text).is_none_or(|proof| proof.encode() == text));
            prop_assert!(MailCode::parse(&text).is_none_or(|code| code.grouped().len() == 9));
        }
    }
}
