//! The import of one organization into a workspace in use.
//!
//! The export is read and checked, and compared with this workspace, before anything is written. Then its records are
//! added in bounded transactions. The organization becomes visible with the last one.

use std::io::BufRead;
use std::sync::Arc;

use serde::Serialize;

use crate::base::error::{Error, Result};
use crate::base::tasks::run_blocking;
use crate::fair::low_priority::{Priority, run_low_priority};
use crate::ids::{OrganizationId, ProjectId};
use crate::resources::cascade_delete;
use crate::resources::record_registry;
use crate::resources::relocation::{Batches, Plan, select};
use crate::resources::shared::import_mark::Attempt;
use crate::store::{OpenError, Progress, Snapshot, StagedExport, WriteTx, folder_of};

use super::App;

/// An imported organization.
#[derive(Debug, Clone, Serialize)]
pub struct ImportedOrganization {
    /// The id of the organization.
    pub id: OrganizationId,
    /// Its name.
    pub name: String,
    /// Its slug. It differs from that in the export if that one is in use here.
    pub slug: String,
    /// Its projects.
    pub projects: Vec<ProjectId>,
    /// How many lines the export has, not counting the first.
    pub lines: u64,
    /// How many accounts were created.
    pub accounts_created: usize,
    /// How many users had an account here, which was kept.
    pub accounts_kept: usize,
    /// How many API keys were added.
    pub keys: usize,
    /// How many API keys of the export are not valid here.
    pub keys_left_out: usize,
    /// Whether the export contained secrets.
    pub secrets: bool,
}

impl App {
    /// Imports the export of one organization. `existing` accepts that users of the export have accounts here whose
    /// address is unverified.
    ///
    /// # Errors
    /// When the export is refused or conflicts with this workspace, or when the data cannot be written. Nothing of the
    /// organization is left then.
    pub async fn import_organization(
        &self,
        from: impl BufRead + Send + 'static,
        existing: bool,
        progress: Progress,
    ) -> Result<ImportedOrganization, OpenError> {
        let prepared = self.prepare_import(from, existing, progress.clone()).await?;
        // The records can be read as long as the staged export exists.
        let (staged, records, plan) = prepared;
        let (lines, secrets) = (staged.lines, staged.secrets);
        let (organization, now) = (plan.organization, self.now());
        let attempt = Attempt { organization, id: self.seed().rng().uuid(now) };
        self.store().write(move |tx| attempt.begin(tx, now)).await?;
        let batches = Batches::new(Arc::clone(&plan), records);
        let slug = match self.add_batches(batches, attempt, (lines, &progress)).await {
            Ok(slug) => slug,
            Err(error) => {
                tracing::warn!(%organization, %error, "an import failed; deleting what it added");
                self.undo_import(attempt).await;
                return Err(error.into());
            }
        };
        if let Err(error) = self.forget_accounts(organization).await {
            tracing::warn!(%organization, %error, "marks of an import are left for the background task");
        }
        tracing::info!(%organization, lines, "imported an organization");
        Ok(ImportedOrganization {
            id: organization,
            name: plan.name.clone(),
            slug,
            projects: plan.projects.clone(),
            lines,
            accounts_created: plan.accounts_created,
            accounts_kept: plan.users.len(),
            keys: plan.keys.len(),
            keys_left_out: plan.keys_left_out,
            secrets,
        })
    }

    /// Reads an export and decides what to add, without a change of this workspace. Returns the export, its records, and what
    /// to add.
    async fn prepare_import(
        &self,
        from: impl BufRead + Send + 'static,
        existing: bool,
        progress: Progress,
    ) -> Result<(StagedExport, Arc<Snapshot>, Arc<Plan>), OpenError> {
        let store = self.store().clone();
        store.refresh().await?;
        let secret = store.signing_secret()?;
        let folder = folder_of(store.path()).to_owned();
        let draw = self.seed().rng();
        let read = move || {
            let how = (&record_registry(), select as _);
            StagedExport::read(from, &folder, how, (secret, draw), &progress)
        };
        let staged = run_low_priority(Priority::Upkeep, read).await??;
        let here = store.fresh().await?;
        let plan = move || {
            let records = staged.records()?;
            let plan = Plan::new(&staged, &records, &here, existing)?;
            Ok((staged, records, Arc::new(plan)))
        };
        run_low_priority(Priority::Upkeep, plan).await?
    }

    /// Adds the records. Returns the slug that the organization has here.
    async fn add_batches(
        &self,
        mut batches: Batches,
        attempt: Attempt,
        (lines, progress): (u64, &Progress),
    ) -> Result<String> {
        let mut steps = progress.begin("adding", lines);
        loop {
            let read = move || batches.read_next().map(|batch| (batch, batches));
            let (batch, rest) = run_blocking(read).await??;
            batches = rest;
            let Some(batch) = batch else { break };
            let (now, added) = (self.now(), batch.len());
            self.store().write(move |tx| batch.add(tx, attempt, now)).await?;
            (0..added).for_each(|_| steps.advance());
        }
        let last = batches.last()?;
        self.store().write(move |tx| last.complete(tx, attempt)).await
    }

    /// Deletes what a failed import added. If that fails too, the background task of a server completes it.
    async fn undo_import(&self, attempt: Attempt) {
        let undo = async {
            self.store().write(move |tx| attempt.abandon(tx)).await?;
            while self.store().write(cascade_delete::delete_batch).await? {}
            Ok::<_, Error>(())
        };
        if let Err(error) = undo.await {
            tracing::warn!(%error, "what a failed import added is left for the background task");
        }
    }

    /// Deletes the marks of the accounts that a completed import created.
    async fn forget_accounts(&self, organization: OrganizationId) -> Result<()> {
        let forget = move |tx: &mut WriteTx<'_>| cascade_delete::forget_accounts(tx, organization);
        while self.store().write(forget).await? {}
        Ok(())
    }
}
