//! Long reads end with their clients and are shared out by organization.
