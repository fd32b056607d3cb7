//! Nobody holds an address before its owner does.
