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

pub use gate::{
    Admitted, Anywhere, Ask, Caller, Changing, InOrganization, InProject, PathIds, Place,
};
pub use needs::{Needs, Target};
