//! The hash of keys that we number ourselves.

use std::hash::{BuildHasherDefault, Hasher};

/// Hashes opaques and owners. They are issued in order and by nobody else, so they need no seed against keys made to
/// collide, and a multiplication spreads them well enough.
pub(super) type Spread = BuildHasherDefault<SpreadHasher>;

#[derive(Debug, Default)]
pub(super) struct SpreadHasher(u64);

impl Hasher for SpreadHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(u64::from(number.cast_unsigned()));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(GOLDEN);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// 2^64 divided by the golden ratio: consecutive numbers fall far apart in the upper bits, which the maps use for their
/// tags and shards, and are distinct in the lower ones.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
