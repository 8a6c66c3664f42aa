//! Counting and dropping bytes of large texts.

use std::borrow::Cow;

/// How many of the bytes `is_counted` picks.
///
/// Sums of bytes, each of no more than 255 ones, are what a processor adds many at a time.
pub(crate) fn count(text: &[u8], is_counted: impl Fn(u8) -> bool) -> usize {
    let one = |byte: &u8| u8::from(is_counted(*byte));
    text.chunks(usize::from(u8::MAX))
        .map(|part| usize::from(part.iter().map(one).sum::<u8>()))
        .sum()
}

/// The bytes that `is_dropped` does not pick; the same text when it picks none.
pub(crate) fn without(text: &[u8], is_dropped: impl Fn(u8) -> bool) -> Cow<'_, [u8]> {
    if count(text, &is_dropped) == 0 {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.iter().copied().filter(|byte| !is_dropped(*byte)).collect())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::{count, without};

    #[test]
    fn counts_beyond_one_byte_and_drops() {
        for length in [0, 1, 254, 255, 256, 1000] {
            let text = "a".repeat(length) + "b";
            assert_eq!(count(text.as_bytes(), |byte| byte == b'a'), length);
            assert_eq!(without(text.as_bytes(), |byte| byte == b'a').as_ref(), b"b");
        }
        assert!(matches!(without(b"ab", |byte| byte == b'\n'), Cow::Borrowed(b"ab")));
    }
}
