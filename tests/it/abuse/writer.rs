//! Heavy writes of one tenant do not hold up the writes of others.
