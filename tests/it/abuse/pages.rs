//! One expensive public page does not take the pages of other tenants.
