//! A workspace whose domain a real DNS server can verify.

use crate::support::dns::Dns;
use crate::support::prelude::*;

use super::add;

/// A workspace with one unverified domain, `corp.example`, and its DNS server.
pub(super) struct Scene {
    pub(super) dns: Dns,
    pub(super) workspace: Workspace,
    pub(super) domain: Value,
    pub(super) path: String,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let dns = Dns::start().await;
        let config = dns.config();
        Self::with(dns, config).await
    }

    pub(super) async fn with(dns: Dns, config: Config) -> Self {
        let workspace = Workspace::with(config).await;
        let (domain, path) = add(&workspace, "corp.example").await;
        Self { dns, workspace, domain, path }
    }

    pub(super) fn challenge(&self) -> &str {
        self.domain["verification_challenge"].as_str().expect("a challenge")
    }
}
