//! Random primes for key generation, which is where charts with certificates spend their
//! time: a sieve over an interval, then tests whose bases cost almost nothing.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{CheckedAdd as _, Odd, Uint};
use num_bigint::BigUint;

/// How many odd numbers are looked at from each random start. About one in 355 of 1024
/// bits is a prime, one in 710 of 2048.
const WINDOW: usize = 8192;
/// Numbers with a prime factor below this are sieved out.
const SIEVE_LIMIT: usize = 1 << 16;

/// The odd primes below [`SIEVE_LIMIT`].
pub(super) struct SmallPrimes(Vec<u32>);

impl SmallPrimes {
    pub(super) fn new() -> Self {
        let mut composite = vec![false; SIEVE_LIMIT];
        let mut primes = Vec::with_capacity(6542);
        for number in (3..SIEVE_LIMIT).step_by(2) {
            if composite.get(number).copied().unwrap_or(true) {
                continue;
            }
            primes.push(number as u32);
            for multiple in (number * number..SIEVE_LIMIT).step_by(2 * number) {
                if let Some(mark) = composite.get_mut(multiple) {
                    *mark = true;
                }
            }
        }
        Self(primes)
    }
}

/// A random number of exactly `64 * LIMBS` bits whose top two bits are set, so that the
/// product of two of them has the full length.
fn random_start<const LIMBS: usize>(random: &mut ChaCha20Rng) -> Uint<LIMBS> {
    let mut words = [0_u64; LIMBS];
    for word in &mut words {
        *word = random.next_u64();
    }
    if let Some(top) = words.last_mut() {
        *top |= 3 << 62;
    }
    if let Some(bottom) = words.first_mut() {
        *bottom |= 1;
    }
    from_words(&words)
}

fn from_words<const LIMBS: usize>(words: &[u64; LIMBS]) -> Uint<LIMBS> {
    let bytes: Vec<u8> = words.iter().rev().flat_map(|word| word.to_be_bytes()).collect();
    Uint::from_be_slice(&bytes)
}

fn to_big<const LIMBS: usize>(number: &Uint<LIMBS>) -> BigUint {
    let words = number.to_words();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    BigUint::from_bytes_le(&bytes)
}

/// A random prime of `64 * LIMBS` bits that is not 1 modulo `exponent`, where `exponent`
/// is an odd prime or 1 for no such wish.
pub(super) fn random_prime<const LIMBS: usize>(
    random: &mut ChaCha20Rng,
    small: &SmallPrimes,
    exponent: u64,
) -> BigUint {
    loop {
        let start = random_start::<LIMBS>(random);
        let words: Vec<u64> = start.to_words().iter().copied().collect();
        let composite = sieve(&words, small);
        for (k, composite) in composite.iter().enumerate() {
            if *composite {
                continue;
            }
            let Some(candidate) = start.checked_add(&Uint::from_u64(2 * k as u64)).into_option()
            else {
                break;
            };
            if is_prime(&candidate) {
                let prime = to_big(&candidate);
                if exponent > 1 && &prime % exponent == BigUint::from(1_u8) {
                    continue;
                }
                return prime;
            }
        }
    }
}

/// Which of the numbers `start + 2k` have a small factor.
fn sieve(words: &[u64], small: &SmallPrimes) -> Vec<bool> {
    let mut composite = vec![false; WINDOW];
    for pair in small.0.chunks(2) {
        // One long division serves two primes.
        let product = pair.iter().map(|&prime| u64::from(prime)).product::<u64>();
        let mut remainder = 0_u64;
        for word in words.iter().rev() {
            remainder = (remainder << 32 | word >> 32) % product;
            remainder = (remainder << 32 | (word & 0xffff_ffff)) % product;
        }
        for &prime in pair {
            let prime = u64::from(prime);
            // The first k with start + 2k = 0 modulo the prime.
            let rest = (prime - remainder % prime) % prime;
            let first = u64::midpoint(rest, if rest.is_multiple_of(2) { 0 } else { prime });
            let mut k = first as usize;
            while let Some(mark) = composite.get_mut(k) {
                *mark = true;
                k += prime as usize;
            }
        }
    }
    composite
}

/// Miller and Rabin's test to the bases 2, 3, 5, 7 and 11. The candidates are random, not
/// chosen by anyone; for such numbers of 1024 bits already the first base errs less than
/// once in 2^40.
pub(super) fn is_prime<const LIMBS: usize>(candidate: &Uint<LIMBS>) -> bool {
    let Some(odd) = Odd::new(*candidate).into_option() else { return false };
    let params = FixedMontyParams::new_vartime(odd);
    let one = FixedMontyForm::one(&params);
    let minus_one = FixedMontyForm::zero(&params) - one;
    let less_one = candidate.wrapping_sub(&Uint::ONE);
    let twos = less_one.trailing_zeros_vartime();
    let exponent = less_one.shr_vartime(twos);
    let bits = exponent.bit_width_vartime();
    let passes = |multiply: fn(&Form<LIMBS>) -> Form<LIMBS>| {
        // Left to right: squarings, and products with the base, which are additions.
        let mut power = one;
        for bit in (0..bits).rev() {
            power = power.square();
            if exponent.bit_vartime(bit) {
                power = multiply(&power);
            }
        }
        if power == one || power == minus_one {
            return true;
        }
        (1..twos).any(|_| {
            power = power.square();
            power == minus_one
        })
    };
    passes(FixedMontyForm::double)
        && passes(|x| x.double() + *x)
        && passes(|x| x.double().double() + *x)
        && passes(|x| x.double().double().double() - *x)
        && passes(|x| x.double().double().double() + x.double() + *x)
}

type Form<const LIMBS: usize> = FixedMontyForm<LIMBS>;
