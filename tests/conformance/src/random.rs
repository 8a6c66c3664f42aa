//! A small seeded generator of numbers, so that a failing case can be run again by its seed.

/// SplitMix64 (Steele, Lea and Flood, 2014): small, seedable by any number, and good enough to
/// choose test cases.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, without, `bound`; 0 when the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound == 0 { 0 } else { (self.number() % bound as u64) as usize }
    }

    /// True `times` out of `of` times.
    pub fn chance(&mut self, times: usize, of: usize) -> bool {
        self.below(of) < times
    }

    /// One of a list.
    ///
    /// # Panics
    /// When the list is empty.
    pub fn pick<'a, T: ?Sized>(&mut self, list: &'a [&'a T]) -> &'a T {
        list.get(self.below(list.len())).expect("a list to pick from is not empty")
    }
}
