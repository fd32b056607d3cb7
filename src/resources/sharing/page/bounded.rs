//! A buffer for text of limited length.

use std::io;

/// A buffer that refuses writes beyond its limit.
pub(super) struct BoundedText {
    bytes: Vec<u8>,
    limit: usize,
}

impl BoundedText {
    /// Returns an empty buffer that holds at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    /// Returns the text; `None` if the bytes are not valid UTF-8.
    pub(super) fn text(self) -> Option<String> {
        String::from_utf8(self.bytes).ok()
    }
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bounded_text_grows_up_to_its_limit() {
        let mut out = BoundedText::new(4);
        assert!(out.write_all(b"abc").is_ok());
        assert!(out.write_all(b"de").is_err());
        assert!(out.write_all(b"d").is_ok());
        assert!(out.write_all(b"e").is_err());
        assert_eq!(out.text().as_deref(), Some("abcd"));
    }
}
