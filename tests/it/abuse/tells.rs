//! No answer carries an id, name or count of what its caller may not see.
