//! Pages in a real browser.

mod docs;
mod shared;
mod signup;
