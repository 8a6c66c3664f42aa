//! Random strings, numbers and identifiers (`goutils/cryptorandomstringutils.go`,
//! `sprig/crypto.go`, `sprig/functions.go`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gotemplate::{CallError, Function, FunctionMap, Runtime};

use super::limits::check_bytes;
use crate::render::host::Host;

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const LETTERS_AND_DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// `count` characters out of `alphabet`; nothing for a count below one, since sprig drops
/// the error that goutils has for it.
fn characters(
    runtime: &mut dyn Runtime,
    count: i64,
    alphabet: &[u8],
) -> Result<Vec<u8>, CallError> {
    let count = usize::try_from(count).unwrap_or(0);
    check_bytes(Some(count))?;
    let host = Host::of(runtime)?;
    let alphabet_length = alphabet.len() as u64;
    let one = |_| {
        let index = host.random_below(alphabet_length) as usize;
        alphabet.get(index).copied().unwrap_or(b'0')
    };
    Ok((0..count).map(one).collect())
}

fn rand_alpha_num(runtime: &mut dyn Runtime, count: i64) -> Result<Vec<u8>, CallError> {
    characters(runtime, count, LETTERS_AND_DIGITS)
}

fn rand_alpha(runtime: &mut dyn Runtime, count: i64) -> Result<Vec<u8>, CallError> {
    characters(runtime, count, LETTERS)
}

fn rand_numeric(runtime: &mut dyn Runtime, count: i64) -> Result<Vec<u8>, CallError> {
    characters(runtime, count, DIGITS)
}

/// Characters from the space to `~`.
fn rand_ascii(runtime: &mut dyn Runtime, count: i64) -> Result<Vec<u8>, CallError> {
    let alphabet: Vec<u8> = (b' '..=b'~').collect();
    characters(runtime, count, &alphabet)
}

fn rand_bytes(runtime: &mut dyn Runtime, count: i64) -> Result<String, CallError> {
    let count = usize::try_from(count)
        .map_err(|_| CallError::from("runtime error: makeslice: len out of range"))?;
    check_bytes(count.checked_mul(2))?;
    let mut bytes = vec![0; count];
    Host::of(runtime)?.fill_random(&mut bytes);
    Ok(STANDARD.encode(bytes))
}

/// Go's `rand.Intn(max-min) + min`, wrapping as Go's integers do.
fn rand_int(runtime: &mut dyn Runtime, min: i64, max: i64) -> Result<i64, CallError> {
    let width = max.wrapping_sub(min);
    if width <= 0 {
        return Err(CallError::from("invalid argument to Intn"));
    }
    Ok(min.wrapping_add(Host::of(runtime)?.random_below(width as u64) as i64))
}

fn uuid_v4(runtime: &mut dyn Runtime) -> Result<String, CallError> {
    let mut bytes = [0; 16];
    Host::of(runtime)?.fill_random(&mut bytes);
    let mut number = u128::from_be_bytes(bytes);
    // Version 4, variant 10.
    number = number & !(0xf << 76) | (0x4 << 76);
    number = number & !(0x3 << 62) | (0x2 << 62);
    let hex = format!("{number:032x}");
    let mut out = String::with_capacity(36);
    for (i, digit) in hex.chars().enumerate() {
        if matches!(i, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(digit);
    }
    Ok(out)
}

pub(super) fn register(functions: &mut FunctionMap) {
    functions.extend([
        ("randAlphaNum", Function::new(rand_alpha_num)),
        ("randAlpha", Function::new(rand_alpha)),
        ("randAscii", Function::new(rand_ascii)),
        ("randBytes", Function::new(rand_bytes)),
        ("randInt", Function::new(rand_int)),
        ("randNumeric", Function::new(rand_numeric)),
        ("uuidv4", Function::new(uuid_v4)),
    ]);
}
