//! A tenant creates only so much.
