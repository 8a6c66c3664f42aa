//! DSA keys, which sprig can generate and read but nothing can sign certificates with.

use chacha20::ChaCha20Rng;
use chacha20::rand_core::Rng as _;
use crypto_bigint::Uint;
use num_bigint::BigUint;

use super::der::{self, Reader};
use super::primes::{SmallPrimes, is_prime, random_prime};

/// A DSA private key in sprig's own order: p, q, g, y, x.
#[derive(Clone)]
pub(super) struct DsaKey {
    numbers: [BigUint; 5],
}

/// Bits of p; q has 256 (`dsa.L2048N256`).
const P_BITS: u64 = 2048;

impl DsaKey {
    /// Parameters and key as Go's `dsa.GenerateParameters` and `GenerateKey` choose them.
    #[expect(clippy::many_single_char_names, reason = "the standard's names")]
    pub(super) fn generate(random: &mut ChaCha20Rng) -> Self {
        let small = SmallPrimes::new();
        let one = BigUint::from(1_u8);
        loop {
            let q = random_prime::<4>(random, &small, 1);
            // A few thousand tries find a p, unless this q is unlucky.
            let Some(p) = (0..8192).find_map(|_| candidate(random, &q)) else { continue };
            let power = (&p - &one) / &q;
            let Some(g) =
                (2_u8..100).map(|h| BigUint::from(h).modpow(&power, &p)).find(|g| *g > one)
            else {
                continue;
            };
            let x = loop {
                let mut bytes = [0; 32];
                random.fill_bytes(&mut bytes);
                let x = BigUint::from_bytes_be(&bytes);
                if x != BigUint::ZERO && x < q {
                    break x;
                }
            };
            let y = g.modpow(&x, &p);
            return Self { numbers: [p, q, g, y, x] };
        }
    }

    /// Sprig's `DSAKeyFormat`.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let mut parts = der::integer(&BigUint::ZERO);
        parts.extend(self.numbers.iter().flat_map(der::integer));
        der::element(der::SEQUENCE, &parts)
    }

    pub(super) fn from_der(bytes: &[u8]) -> Option<Self> {
        let mut body = Reader(Reader(bytes).read(der::SEQUENCE)?);
        body.integer()?;
        let mut number = || body.integer().map(|(number, _)| number);
        let numbers = [number()?, number()?, number()?, number()?, number()?];
        Some(Self { numbers })
    }
}

/// A random prime p of 2048 bits with q dividing p-1, or nothing.
fn candidate(random: &mut ChaCha20Rng, q: &BigUint) -> Option<BigUint> {
    let mut bytes = [0; 256];
    random.fill_bytes(&mut bytes);
    let mut number = BigUint::from_bytes_be(&bytes);
    number.set_bit(P_BITS - 1, true);
    number.set_bit(0, true);
    let rest = &number % (q * 2_u8);
    let number = number - rest + 1_u8;
    if number.bits() != P_BITS {
        return None;
    }
    // The long test is for those without small factors.
    let factor = (3_u32..2000).step_by(2).any(|small| &number % small == BigUint::ZERO);
    if factor {
        return None;
    }
    is_prime(&Uint::<32>::from_be_slice(&number.to_bytes_be())).then_some(number)
}
