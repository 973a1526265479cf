//! Where the chances of a schedule come from: a small generator that gives the same for the same seed everywhere.

use std::ops::Range;

/// SplitMix64, by Steele, Lea and Flood: any seed is as good as another.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of `range`, which is not empty.
    pub(crate) fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// True once in `odds` throws.
    pub(crate) fn once_in(&mut self, odds: u64) -> bool {
        self.within(0..odds) == 0
    }

    /// One of `faces`.
    pub(crate) fn pick<T: Copy>(&mut self, faces: &[T]) -> T {
        faces[self.within(0..faces.len() as u64) as usize]
    }
}
