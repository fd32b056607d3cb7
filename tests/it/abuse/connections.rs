//! One address does not take the connections of the others.
