//! A tenant stores only so many bytes.
