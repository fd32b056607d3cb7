//! Who is asking, and may they: keys, the gate in front of every route, and levels.
//!
//! Handlers and rules never compare scopes or levels; they ask here, or hold a proof
//! ([`Admitted`]) that the gate let the caller in.

pub mod gate;
pub mod hash;
pub mod key;
pub mod levels;
pub mod matches;
mod needs;
pub mod place;

pub use gate::{Ask, Caller, PathIds};
pub use needs::{Needs, Target};
pub use place::{Admitted, Anywhere, Changing, InOrganization, InProject, Place, Visitor};
