//! Where a route leads, and the proofs that the gate let a caller in there.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::etag::Expected;
use crate::fair::Consumer;
use crate::idempotency::Sent;
use crate::resources::members::Membership;
use crate::resources::projects;
use crate::store::Snapshot;

use super::gate::{Ask, Caller, Granted};

/// Where a route leads, as a type: a handler that holds one has a caller who may be there.
pub trait Place: Clone + Send + Sync + Sized + 'static {
    /// The place that was granted.
    ///
    /// # Errors
    /// 500 where the route's path does not lead there, which is a defect of the route table.
    fn of(granted: &Granted) -> Result<Self>;
}

/// No organization or project in particular.
#[derive(Debug, Clone, Copy)]
pub struct Anywhere;

impl Place for Anywhere {
    fn of(_: &Granted) -> Result<Self> {
        Ok(Self)
    }
}

/// In an organization that the caller belongs to.
#[derive(Debug, Clone)]
pub struct InOrganization {
    /// The caller's membership of it.
    pub member: Membership,
}

impl Place for InOrganization {
    fn of(granted: &Granted) -> Result<Self> {
        let member = granted.member.clone();
        Ok(Self {
            member: member.ok_or_else(|| Error::internal("the path names no organization"))?,
        })
    }
}

/// In, or at, a project that the caller may see.
#[derive(Debug, Clone)]
pub struct InProject {
    /// The caller's membership of its organization.
    pub member: Membership,
    /// The project.
    pub project: projects::Head,
}

impl Place for InProject {
    fn of(granted: &Granted) -> Result<Self> {
        let InOrganization { member } = InOrganization::of(granted)?;
        let project = granted.project.clone();
        let project = project.ok_or_else(|| Error::internal("the path names no project"))?;
        Ok(Self { member, project })
    }
}

/// Proof that the gate let the caller in to a place, and the snapshot in which it did: the one that the
/// whole answer is read from.
pub struct Admitted<P> {
    /// Who is asking.
    pub caller: Caller,
    /// Where.
    pub place: P,
    /// The tenant that the request works for.
    pub consumer: Consumer,
    /// What the answer is read from.
    pub tx: Arc<Snapshot>,
}

/// Proof that the gate let the caller in to a place, for a change there. It holds no snapshot: a body may
/// be slow to come, and the change asks the gate anew.
pub struct Changing<P> {
    /// The question, for asking again inside the write.
    pub ask: Arc<Ask>,
    /// What the request expects of what it is to change.
    pub expected: Expected,
    /// The request, where it is to be done once.
    pub once: Option<Sent>,
    /// The tenant that the request works for.
    pub consumer: Consumer,
    /// Reserves memory for a large answer, in bytes, in place of what was reserved before; 503 when there is no room.
    pub reserve: Box<dyn Fn(usize) -> Result<()> + Send + Sync>,
    /// Where it leads.
    pub place: PhantomData<P>,
}

impl<P> Changing<P> {
    /// The same, where what the body leaves out is taken from the presented key: then the request is another for a
    /// key that holds something else.
    #[must_use]
    pub fn inheriting(self) -> Self {
        Self { once: self.once.map(Sent::inheriting), ..self }
    }
}

/// Somebody at a route that is open to everybody, who may have sent a key.
pub struct Visitor {
    /// The question, for asking again inside a write; none where no key was sent.
    pub ask: Option<Arc<Ask>>,
    /// Who is asking, where a key was sent.
    pub caller: Option<Caller>,
    /// The request, where it is to be done once; who is asking counts as a part of its body.
    pub once: Option<Sent>,
    /// The tenant that the request works for: the key's, or the client's address where no key was sent.
    pub consumer: Consumer,
}
