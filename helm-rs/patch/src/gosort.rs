//! Go's sorting, to the swap.
//!
//! strategicpatch sorts with comparisons that are no orders: a list's `Less(i, i)` is true, and
//! one of them also holds for whatever it cannot place. What comes out then depends on which
//! elements an algorithm compares and swaps, so both of Go's are here as `sort/zsortfunc.go` has
//! them: [`sort`] is `sort.Sort` (pattern-defeating quicksort), [`stable`] is `sort.SliceStable`
//! (insertion sort of blocks, then SymMerge).

#![expect(clippy::many_single_char_names, reason = "ranges and positions, named as in Go's source")]

/// Sorts as Go's `sort.Sort` does. `less(a, b)` may be any relation.
pub(crate) fn sort<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let length = items.len();
    let mut list = List { items, less };
    list.quick(0, length, bits(length));
}

/// Sorts as Go's `sort.SliceStable` does. `less(a, b)` may be any relation.
pub(crate) fn stable<T>(items: &mut [T], less: impl Fn(&T, &T) -> bool) {
    let length = items.len();
    let mut list = List { items, less };
    let mut block = 20;
    let mut start = 0;
    while start + block <= length {
        list.insertion(start, start + block);
        start += block;
    }
    list.insertion(start, length);
    while block < length {
        let mut start = 0;
        while start + 2 * block <= length {
            list.merge(start, start + block, start + 2 * block);
            start += 2 * block;
        }
        if start + block < length {
            list.merge(start, start + block, length);
        }
        block *= 2;
    }
}

/// The number of bits that hold a length.
fn bits(length: usize) -> u32 {
    usize::BITS - length.leading_zeros()
}

/// What `choosePivot` saw.
#[derive(PartialEq, Clone, Copy)]
enum Hint {
    Unknown,
    Increasing,
    Decreasing,
}

/// Index ranges are half open; every index comes from the ranges that [`sort`] and [`stable`]
/// begin with, and out-of-range ones compare as not less and swap nothing.
struct List<'a, T, F> {
    items: &'a mut [T],
    less: F,
}

impl<T, F: Fn(&T, &T) -> bool> List<'_, T, F> {
    fn less(&self, i: usize, j: usize) -> bool {
        match (self.items.get(i), self.items.get(j)) {
            (Some(left), Some(right)) => (self.less)(left, right),
            _ => false,
        }
    }

    fn swap(&mut self, i: usize, j: usize) {
        if i.max(j) < self.items.len() {
            self.items.swap(i, j);
        }
    }

    fn insertion(&mut self, a: usize, b: usize) {
        for i in a + 1..b {
            let mut j = i;
            while j > a && self.less(j, j - 1) {
                self.swap(j, j - 1);
                j -= 1;
            }
        }
    }

    fn sift_down(&mut self, mut root: usize, end: usize, first: usize) {
        loop {
            let mut child = 2 * root + 1;
            if child >= end {
                return;
            }
            if child + 1 < end && self.less(first + child, first + child + 1) {
                child += 1;
            }
            if !self.less(first + root, first + child) {
                return;
            }
            self.swap(first + root, first + child);
            root = child;
        }
    }

    fn heap(&mut self, a: usize, b: usize) {
        let length = b - a;
        for root in (0..=length.saturating_sub(1) / 2).rev() {
            self.sift_down(root, length, a);
        }
        for end in (0..length).rev() {
            self.swap(a, a + end);
            self.sift_down(0, end, a);
        }
    }

    fn quick(&mut self, mut a: usize, mut b: usize, mut limit: u32) {
        let (mut balanced, mut partitioned) = (true, true);
        loop {
            let length = b - a;
            if length <= 12 {
                return self.insertion(a, b);
            }
            if limit == 0 {
                return self.heap(a, b);
            }
            if !balanced {
                self.break_patterns(a, b);
                limit -= 1;
            }
            let (mut pivot, mut hint) = self.choose_pivot(a, b);
            if hint == Hint::Decreasing {
                if let Some(range) = self.items.get_mut(a..b) {
                    range.reverse();
                }
                pivot = (b - 1) - (pivot - a);
                hint = Hint::Increasing;
            }
            let likely_sorted = balanced && partitioned && hint == Hint::Increasing;
            if likely_sorted && self.partial_insertion(a, b) {
                return;
            }
            if a > 0 && !self.less(a - 1, pivot) {
                a = self.partition_equal(a, b, pivot);
                continue;
            }
            let (middle, already) = self.partition(a, b, pivot);
            partitioned = already;
            let (left, right) = (middle - a, b - middle);
            balanced = left.min(right) >= length / 8;
            if left < right {
                self.quick(a, middle, limit);
                a = middle + 1;
            } else {
                self.quick(middle + 1, b, limit);
                b = middle;
            }
        }
    }

    fn partition(&mut self, a: usize, b: usize, pivot: usize) -> (usize, bool) {
        self.swap(a, pivot);
        let (mut i, mut j) = (a + 1, b - 1);
        let mut first = true;
        loop {
            while i <= j && self.less(i, a) {
                i += 1;
            }
            while i <= j && !self.less(j, a) {
                j -= 1;
            }
            if i > j {
                break;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
            first = false;
        }
        self.swap(j, a);
        (j, first)
    }

    fn partition_equal(&mut self, a: usize, b: usize, pivot: usize) -> usize {
        self.swap(a, pivot);
        let (mut i, mut j) = (a + 1, b - 1);
        loop {
            while i <= j && !self.less(a, i) {
                i += 1;
            }
            while i <= j && self.less(a, j) {
                j -= 1;
            }
            if i > j {
                return i;
            }
            self.swap(i, j);
            i += 1;
            j -= 1;
        }
    }

    fn partial_insertion(&mut self, a: usize, b: usize) -> bool {
        const MAX_STEPS: usize = 5;
        const SHORTEST_SHIFTING: usize = 50;
        let mut i = a + 1;
        for _ in 0..MAX_STEPS {
            while i < b && !self.less(i, i - 1) {
                i += 1;
            }
            if i == b {
                return true;
            }
            if b - a < SHORTEST_SHIFTING {
                return false;
            }
            self.swap(i, i - 1);
            if i - a >= 2 {
                // Down to 1 and not to a + 1: as Go has it.
                for j in (1..i).rev() {
                    if !self.less(j, j - 1) {
                        break;
                    }
                    self.swap(j, j - 1);
                }
            }
            if b - i >= 2 {
                for j in i + 1..b {
                    if !self.less(j, j - 1) {
                        break;
                    }
                    self.swap(j, j - 1);
                }
            }
        }
        false
    }

    fn break_patterns(&mut self, a: usize, b: usize) {
        let length = b - a;
        if length < 8 {
            return;
        }
        let mut random = length as u64;
        let mask = (1_u64 << bits(length)) - 1;
        let middle = a + (length / 4) * 2;
        for index in middle - 1..=middle + 1 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut other = (random & mask) as usize;
            if other >= length {
                other -= length;
            }
            self.swap(index, a + other);
        }
    }

    fn choose_pivot(&self, a: usize, b: usize) -> (usize, Hint) {
        const SHORTEST_NINTHER: usize = 50;
        const MAX_SWAPS: usize = 4 * 3;
        let length = b - a;
        let mut swaps = 0;
        let (mut i, mut j, mut k) = (a + length / 4, a + length / 4 * 2, a + length / 4 * 3);
        if length >= 8 {
            if length >= SHORTEST_NINTHER {
                i = self.median(i - 1, i, i + 1, &mut swaps);
                j = self.median(j - 1, j, j + 1, &mut swaps);
                k = self.median(k - 1, k, k + 1, &mut swaps);
            }
            j = self.median(i, j, k, &mut swaps);
        }
        let hint = match swaps {
            0 => Hint::Increasing,
            MAX_SWAPS => Hint::Decreasing,
            _ => Hint::Unknown,
        };
        (j, hint)
    }

    fn median(&self, a: usize, b: usize, c: usize, swaps: &mut usize) -> usize {
        let (a, b) = self.order(a, b, swaps);
        let (b, _) = self.order(b, c, swaps);
        self.order(a, b, swaps).1
    }

    fn order(&self, a: usize, b: usize, swaps: &mut usize) -> (usize, usize) {
        if self.less(b, a) {
            *swaps += 1;
            (b, a)
        } else {
            (a, b)
        }
    }

    /// SymMerge of `a..m` and `m..b`, both not empty.
    fn merge(&mut self, a: usize, m: usize, b: usize) {
        if m - a == 1 {
            let (mut i, mut j) = (m, b);
            while i < j {
                let h = usize::midpoint(i, j);
                if self.less(h, a) {
                    i = h + 1;
                } else {
                    j = h;
                }
            }
            for k in a..i.saturating_sub(1) {
                self.swap(k, k + 1);
            }
            return;
        }
        if b - m == 1 {
            let (mut i, mut j) = (a, m);
            while i < j {
                let h = usize::midpoint(i, j);
                if self.less(m, h) {
                    j = h;
                } else {
                    i = h + 1;
                }
            }
            for k in (i + 1..=m).rev() {
                self.swap(k, k - 1);
            }
            return;
        }
        let middle = usize::midpoint(a, b);
        let n = middle + m;
        let (mut start, mut r) = if m > middle { (n - b, middle) } else { (a, m) };
        let p = n.saturating_sub(1);
        while start < r {
            let c = usize::midpoint(start, r);
            if self.less(p - c, c) {
                r = c;
            } else {
                start = c + 1;
            }
        }
        let end = n - start;
        if start < m && m < end {
            // A rotation is what it is, whichever swaps make it: no comparison is involved.
            if let Some(range) = self.items.get_mut(start..end) {
                range.rotate_left(m - start);
            }
        }
        if a < start && start < middle {
            self.merge(a, start, middle);
        }
        if middle < end && end < b {
            self.merge(middle, end, b);
        }
    }
}
