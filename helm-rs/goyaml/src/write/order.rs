//! The order of map keys, after go-yaml's `sorter.go`: numbers inside of keys count as numbers.
//!
//! The comparison is not transitive: `v1 < v1alpha1 < v2`, yet a set such as `v1, v1alpha1,
//! v1beta1, v2, v10` has circles. Go sorts such a set in an order that depends on its map's random
//! iteration order. Here the result depends on the keys alone and is one that Go may come to: each
//! key is not less than the one in front of it.

use bstr::ByteSlice as _;

use super::Dialect;
use crate::unicode::{is_digit, is_letter};

/// Sorts entries by their keys.
pub(super) fn sort_entries<K: AsRef<[u8]>, V>(entries: &mut Vec<(K, V)>, dialect: Dialect) {
    let less = |a: &(K, V), b: &(K, V)| key_less(a.0.as_ref(), b.0.as_ref(), dialect);
    if entries.windows(2).all(|pair| !matches!(pair, [a, b] if less(b, a))) {
        return;
    }
    // The starting order decides where the comparison does not.
    if !entries.is_sorted_by(|a, b| a.0.as_ref() <= b.0.as_ref()) {
        entries.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
    }
    *entries = merge_sort(std::mem::take(entries), &less);
}

/// A plain merge sort: unlike the standard library's, it copes with an order that has circles.
fn merge_sort<T>(items: Vec<T>, less: &impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut runs: Vec<Vec<T>> = items.into_iter().map(|item| vec![item]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut rest = runs.into_iter();
        while let Some(left) = rest.next() {
            merged.push(match rest.next() {
                Some(right) => merge(left, right, less),
                None => left,
            });
        }
        runs = merged;
    }
    runs.pop().unwrap_or_default()
}

fn merge<T>(left: Vec<T>, right: Vec<T>, less: &impl Fn(&T, &T) -> bool) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let from = if less(b, a) { &mut right } else { &mut left };
        merged.extend(from.next());
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

/// `keyList.Less` for two strings.
pub(super) fn key_less(a: &[u8], b: &[u8], dialect: Dialect) -> bool {
    // Most keys differ in a letter behind a common ASCII prefix, or one continues the other.
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if let (Some(&next_a), Some(&next_b)) = (a.get(common), b.get(common))
        && next_a.is_ascii_alphabetic()
        && next_b.is_ascii_alphabetic()
    {
        return next_a < next_b;
    }
    if a.is_ascii() && b.is_ascii() {
        return chars_less(a, b, common, |&byte| char::from(byte), dialect);
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let common = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
    chars_less(&a, &b, common, |&c| c, dialect)
}

/// Compares texts that are equal up to `common`.
fn chars_less<C>(
    a: &[C],
    b: &[C],
    common: usize,
    char_of: impl Fn(&C) -> char,
    dialect: Dialect,
) -> bool {
    let at = |text: &[C], index: usize| text.get(index).map(&char_of);
    let (Some(next_a), Some(next_b)) = (at(a, common), at(b, common)) else {
        return a.len() < b.len();
    };
    let behind_digit = common.checked_sub(1).and_then(|last| at(a, last)).is_some_and(is_digit);
    match (is_letter(next_a), is_letter(next_b)) {
        (true, true) => return next_a < next_b,
        (false, false) => {}
        // v3 puts "a1b" in front of "a12".
        (a_is_letter, _) if dialect == Dialect::V3 && behind_digit => return a_is_letter,
        (_, b_is_letter) => return b_is_letter,
    }
    // Zeros at the start of a number say nothing; behind another digit they do.
    let mut start = 0;
    if next_a == '0' || next_b == '0' {
        let before = a.get(..common).unwrap_or_default().iter().rev().map(&char_of);
        if before.take_while(|&c| is_digit(c)).any(|c| c != '0') {
            start = 1;
        }
    }
    let number = |text: &[C]| {
        let digits = text.iter().skip(common).map(&char_of).take_while(|&c| is_digit(c));
        digits.fold((start, 0), |(value, length): (i64, usize), digit| {
            let digit = i64::from(u32::from(digit)) - i64::from(u32::from('0'));
            (value.wrapping_mul(10).wrapping_add(digit), length + 1)
        })
    };
    let ((number_a, length_a), (number_b, length_b)) = (number(a), number(b));
    if number_a != number_b {
        return number_a < number_b;
    }
    if length_a != length_b {
        return length_a < length_b;
    }
    next_a < next_b
}
