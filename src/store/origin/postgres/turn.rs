//! The right to be next: a transaction that has locked the head.

use futures_util::future::join3;

use uuid::Uuid;

use crate::store::values::position::Position;

use super::super::{Commit, Fault, Outcome, Rows, Take, Turn};
use super::columns::parameter;
use super::failure::Failure;
use super::link::{ANSWER, Link};
use super::{Postgres, read, sql, whole, write};

/// A transaction that has locked the head. Dropping it rolls the transaction back.
pub(super) struct HeldTurn<'o> {
    origin: &'o Postgres,
    /// Present until the turn ends.
    link: Option<Link>,
}

impl<'o> HeldTurn<'o> {
    /// Waits for the lock, then reads what changed.
    pub(super) fn begin(
        origin: &'o Postgres,
        known: Position,
        take: &mut Take<'_>,
    ) -> Result<(Position, Self), Fault> {
        let question = |failure: Failure| failure.of_question();
        let mut link = origin.link()?;
        // Both are prepared, so that each is one message, and the lock is sent first. The question begins when the head
        // is locked, and sees the state of that moment.
        let lock = link.prepared(sql::LOCK_HEAD).map_err(question)?;
        let since = link.prepared(sql::SINCE).map_err(question)?;
        let asking = async {
            let client = link.client();
            let begin = client.batch_execute(sql::BEGIN);
            let lock = client.query_opt(&lock, &[]);
            let changes = client.query_raw(&since, [parameter(known.seq)]);
            let (begun, locked, changes) = join3(begin, lock, changes).await;
            begun?;
            locked?;
            changes
        };
        let changes = link.wait(ANSWER, asking).map_err(question)?;
        let head = read::hand_over(&link, changes, known, take)?;
        Ok((head, Self { origin, link: Some(link) }))
    }
}

impl Turn for HeldTurn<'_> {
    fn extend(&self) -> Result<(), Fault> {
        let over = || Fault::Away("the turn has ended".to_owned());
        let link = self.link.as_ref().filter(|link| link.is_open()).ok_or_else(over)?;
        link.run(sql::LONG_WAIT).map_err(|failure| failure.of_question())
    }

    fn commit(mut self: Box<Self>, commit: &Commit<'_>) -> Result<Outcome, Fault> {
        // Without a link, or if the database has ended the session, the turn is over and nothing was sent.
        let Some(mut link) = self.link.take().filter(Link::is_open) else {
            return Ok(Outcome::Overtaken);
        };
        let outcome = write::commit_in_transaction(&mut link, &self.origin.node, commit)?;
        self.origin.idle().push(link);
        Ok(outcome)
    }

    fn replace(mut self: Box<Self>, name: Uuid, rows: &mut Rows<'_>) -> Result<Position, Fault> {
        let over = || Fault::Away("the turn has ended".to_owned());
        let mut link = self.link.take().filter(Link::is_open).ok_or_else(over)?;
        let position = whole::replace(&mut link, &self.origin.node, name, rows)?;
        self.origin.idle().push(link);
        Ok(position)
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.link.take()
            && link.run("ROLLBACK").is_ok()
        {
            self.origin.idle().push(link);
        }
    }
}
