//! Keys whose bytes sort in the order of their values.
//!
//! A key consists of parts. The first part is the tenant, if the table has one. So all records of an
//! organization or project are adjacent, and a prefix of parts is a range of the table.

use crate::base::time::Timestamp;

/// A value that can be part of a key.
///
/// `a < b` exactly when the bytes of `a` sort before the bytes of `b`, also inside a longer key: no encoding
/// is a prefix of another.
pub trait Key: Sized {
    /// Appends the bytes of this value.
    fn write(&self, out: &mut Vec<u8>);

    /// Takes a value from the front of `input`. Returns `None` if the bytes do not encode one.
    fn read(input: &mut &[u8]) -> Option<Self>;

    /// Returns the bytes of this value alone.
    fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        self.write(&mut out);
        out
    }
}

/// Takes `N` bytes from the front of `input`. Returns `None` if there are fewer.
pub fn take_bytes<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*head)
}

/// Returns the least byte string that sorts after everything that begins with `prefix`. Returns `None` if
/// there is no such string, because all bytes of `prefix` are 255.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}

impl Key for () {
    fn write(&self, _: &mut Vec<u8>) {}

    fn read(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Key for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        take_bytes::<1>(input).map(|[byte]| byte)
    }
}

impl Key for u64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        take_bytes(input).map(Self::from_be_bytes)
    }
}

impl Key for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        match u8::read(input)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

/// Timestamps sort by time, also those before 1970.
impl Key for Timestamp {
    fn write(&self, out: &mut Vec<u8>) {
        (self.micros().cast_unsigned() ^ (1 << 63)).write(out);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        u64::read(input).map(|raw| Self::from_micros((raw ^ (1 << 63)).cast_signed()))
    }
}

/// Strings sort by their bytes. A NUL is encoded as 0 255 and the end as 0 0, so "a" sorts before "a\0" and
/// before "ab", whatever follows in the key.
impl Key for String {
    fn write(&self, out: &mut Vec<u8>) {
        for byte in self.as_bytes().iter().copied() {
            out.push(byte);
            if byte == 0 {
                out.push(u8::MAX);
            }
        }
        out.extend_from_slice(&[0, 0]);
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let mut text = Vec::new();
        loop {
            match u8::read(input)? {
                0 => match u8::read(input)? {
                    0 => return Self::from_utf8(text).ok(),
                    u8::MAX => text.push(0),
                    _ => return None,
                },
                byte => text.push(byte),
            }
        }
    }
}

/// `None` sorts last, because the lists of the API sort null last; see `docs/spec/paging.md`.
impl<T: Key> Key for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_none().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        if bool::read(input)? { Some(None) } else { T::read(input).map(Some) }
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),+);)*) => {$(
        impl<$($part: Key),+> Key for ($($part,)+) {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$at.write(out);)+
            }

            fn read(input: &mut &[u8]) -> Option<Self> {
                Some(($($part::read(input)?,)+))
            }
        }
    )*};
}

tuples! {
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round_trips<K: Key + PartialEq + std::fmt::Debug>(value: &K) {
        let bytes = value.encoded();
        let mut input = bytes.as_slice();
        assert_eq!(K::read(&mut input).as_ref(), Some(value));
        assert!(input.is_empty());
    }

    type Sample = (u64, bool, Option<String>, i64);

    fn as_key((id, flag, name, micros): Sample) -> (u64, bool, Option<String>, Timestamp) {
        (id, flag, name, Timestamp::from_micros(micros))
    }

    /// The order of the values themselves: null last, everything else in its natural order.
    fn as_order((id, flag, name, micros): Sample) -> (u64, bool, bool, Option<String>, i64) {
        (id, flag, name.is_none(), name, micros)
    }

    proptest! {
        #[test]
        fn encoded_keys_sort_like_their_values(
            a in (0u64..3, any::<bool>(), proptest::option::of("[\\x00ab\u{1f600}]{0,3}"), any::<i64>()),
            b in (0u64..3, any::<bool>(), proptest::option::of("[\\x00ab\u{1f600}]{0,3}"), any::<i64>()),
        ) {
            let bytes = as_key(a.clone()).encoded().cmp(&as_key(b.clone()).encoded());
            prop_assert_eq!(bytes, as_order(a).cmp(&as_order(b)));
        }

        #[test]
        fn every_key_decodes_to_its_value(a in (any::<u64>(), any::<bool>(), proptest::option::of(".*"), any::<i64>())) {
            round_trips(&as_key(a));
        }

        #[test]
        fn decoding_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = <(u64, bool, Option<String>, Timestamp)>::read(&mut bytes.as_slice());
        }

        #[test]
        fn prefix_end_is_greater_than_every_key_with_the_prefix(
            prefix in proptest::collection::vec(any::<u8>(), 1..6),
            rest in proptest::collection::vec(any::<u8>(), 0..6),
        ) {
            let whole = [prefix.clone(), rest].concat();
            if let Some(end) = prefix_end(&prefix) {
                prop_assert!(whole < end && prefix < end);
            } else {
                prop_assert!(prefix.iter().all(|byte| *byte == u8::MAX));
            }
        }
    }
}
