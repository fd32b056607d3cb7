//! Authentication and authorization: verified API keys and console sessions, and the authorization of every request.
//!
//! Handlers and rules never compare scopes or levels themselves. They call this module, or take a proof
//! (`ReadAccess`) that the caller was authorized.

pub mod authorization;
pub mod authorize;
mod caller;
pub mod key_cache;
mod key_reach;
mod requirements;
pub mod tenant;

pub use authorization::Authorization;
pub use caller::{Caller, CallerKey, Credential};
pub use key_reach::KeyReach;
pub use requirements::{PathTarget, Requirements};
pub use tenant::{Global, InOrganization, InProject, PublicAccess, Tenant};
