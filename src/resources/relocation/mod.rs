//! Moving one organization to another installation: which of its records an export contains, and how an import adds them
//! to a workspace in use.

mod batches;
mod plan;
mod selection;

pub use batches::Batches;
pub use plan::{Accounts, Plan};
pub use selection::select;
