//! Authentication and authorization: API keys, the authorization of every request, and access levels.
//!
//! Handlers and rules never compare scopes or levels themselves. They call this module, or take a proof
//! ([`ReadAccess`]) that the caller was authorized.

pub mod authorize;
pub mod key_cache;
pub mod key_hasher;
pub mod key_text;
pub mod levels;
mod requirements;
pub mod tenant;

pub use authorize::{AuthRequest, Caller, PathIds};
pub use requirements::{PathTarget, Requirements};
pub use tenant::{
    Global, InOrganization, InProject, PublicAccess, ReadAccess, Tenant, WriteAccess,
};
