//! Making keys does not hold up the verification of other users' keys.
