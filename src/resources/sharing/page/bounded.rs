//! Text of a bounded length, written piece by piece.

use std::io;

/// Text that grows to its limit; what would go beyond it fails to be written.
pub(super) struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Bounded {
    /// No text yet, and at most `most` bytes of it.
    pub(super) fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most }
    }

    /// What was written; none where that is no text.
    pub(super) fn text(self) -> Option<String> {
        String::from_utf8(self.bytes).ok()
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
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
    fn text_grows_to_its_limit_and_no_further() {
        let mut out = Bounded::new(4);
        assert!(out.write_all(b"abc").is_ok());
        assert!(out.write_all(b"de").is_err());
        assert!(out.write_all(b"d").is_ok());
        assert!(out.write_all(b"e").is_err());
        assert_eq!(out.text().as_deref(), Some("abcd"));
    }
}
