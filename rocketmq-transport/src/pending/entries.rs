//! What is pending, by opaque.

use std::{collections::HashMap, mem};

use super::spread::Spread;

/// Values by opaque, for opaques that are issued in order and mostly removed soon.
///
/// Those of late are in a ring, at the place that the low bits of their opaques say: no hash, and neighbours in time
/// are neighbours in memory. Where the ring comes round to one that is still there, it is moved to a map, so that
/// any number of them that stay cost the others nothing.
#[derive(Debug)]
pub(super) struct Entries<T> {
    /// The opaque that was issued first.
    first: i32,
    /// The most that an opaque that was inserted is ahead of the first one; none but these can be here.
    furthest: Option<u32>,
    /// A power of two of places, or none.
    ring: Vec<Option<(i32, T)>>,
    in_ring: usize,
    elders: HashMap<i32, T, Spread>,
}

impl<T> Entries<T> {
    pub(super) fn new(first: i32) -> Self {
        Self { first, furthest: None, ring: Vec::new(), in_ring: 0, elders: HashMap::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.in_ring + self.elders.len()
    }

    #[inline]
    pub(super) fn get(&self, opaque: i32) -> Option<&T> {
        match self.ring.get(self.place(opaque)) {
            Some(Some((there, value))) if *there == opaque => Some(value),
            _ if self.elders.is_empty() => None,
            _ => self.elders.get(&opaque),
        }
    }

    pub(super) fn get_mut(&mut self, opaque: i32) -> Option<&mut T> {
        let place = self.place(opaque);
        match self.ring.get_mut(place) {
            Some(Some((there, value))) if *there == opaque => Some(value),
            _ => self.elders.get_mut(&opaque),
        }
    }

    /// False where the opaque is here already.
    #[inline]
    pub(super) fn insert(&mut self, opaque: i32, value: T) -> bool {
        let ahead = opaque.wrapping_sub(self.first).cast_unsigned();
        if self.furthest.is_none_or(|furthest| ahead > furthest) {
            self.furthest = Some(ahead);
        } else if self.get(opaque).is_some() {
            return false;
        }
        if self.ring.len() < MAX_RING && self.ring.len() <= 2 * self.in_ring {
            self.grow();
        }
        self.place_in_ring(opaque, value);
        true
    }

    #[inline]
    pub(super) fn remove(&mut self, opaque: i32) -> Option<T> {
        let place = self.place(opaque);
        if let Some(slot) = self.ring.get_mut(place)
            && let Some((_, value)) = slot.take_if(|(there, _)| *there == opaque)
        {
            self.in_ring -= 1;
            return Some(value);
        }
        self.elders.remove(&opaque)
    }

    /// All values, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.ring.iter().flatten().map(|(_, value)| value).chain(self.elders.values())
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.ring.iter_mut().flatten().map(|(_, value)| value).chain(self.elders.values_mut())
    }

    /// Takes out all values, in no order.
    pub(super) fn take(&mut self) -> impl Iterator<Item = T> {
        self.in_ring = 0;
        let (ring, elders) = (mem::take(&mut self.ring), mem::take(&mut self.elders));
        ring.into_iter().flatten().map(|(_, value)| value).chain(elders.into_values())
    }

    /// Twice the places, or the first ones.
    #[cold]
    fn grow(&mut self) {
        let places = (2 * self.ring.len()).max(MIN_RING);
        let old = mem::replace(&mut self.ring, Vec::from_iter((0..places).map(|_| None)));
        self.in_ring = 0;
        for (opaque, value) in old.into_iter().flatten() {
            self.place_in_ring(opaque, value);
        }
    }

    /// The place must be there; who has it moves to the elders.
    #[inline]
    fn place_in_ring(&mut self, opaque: i32, value: T) {
        let place = self.place(opaque);
        match self.ring[place].replace((opaque, value)) {
            None => self.in_ring += 1,
            Some((elder, value)) => {
                self.elders.insert(elder, value);
            }
        }
    }

    #[inline]
    fn place(&self, opaque: i32) -> usize {
        opaque.cast_unsigned() as usize & self.ring.len().wrapping_sub(1)
    }
}

/// The fewest and the most places of the ring.
const MIN_RING: usize = 16;
const MAX_RING: usize = 4_096;

#[cfg(all(test, not(rocketmq_loom)))]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn sorted(values: impl Iterator<Item = u32>) -> Vec<u32> {
        let mut values = Vec::from_iter(values);
        values.sort_unstable();
        values
    }

    proptest! {
        /// A step inserts the opaque so many back from the next one (mostly the next), or removes one of those inserted.
        #[test]
        fn entries_agree_with_a_map(
            first in prop_oneof![any::<i32>(), Just(i32::MAX - 3)],
            steps in proptest::collection::vec((any::<bool>(), 0u32..4, any::<prop::sample::Index>()), 0..300),
        ) {
            let mut entries = Entries::new(first);
            let mut model = BTreeMap::new();
            let mut ever = Vec::new();
            let mut next = 0_u32;
            for (step, (insert, back, at)) in (0_u32..).zip(steps) {
                if insert || ever.is_empty() {
                    let opaque = first.wrapping_add(next.saturating_sub(back).cast_signed());
                    next += u32::from(back == 0);
                    prop_assert_eq!(entries.insert(opaque, step), !model.contains_key(&opaque));
                    model.entry(opaque).or_insert(step);
                    ever.push(opaque);
                } else {
                    let opaque = *at.get(&ever);
                    prop_assert_eq!(entries.get(opaque), model.get(&opaque));
                    prop_assert_eq!(entries.get_mut(opaque), model.get_mut(&opaque));
                    prop_assert_eq!(entries.remove(opaque), model.remove(&opaque));
                }
                prop_assert_eq!(entries.len(), model.len());
            }
            prop_assert_eq!(sorted(entries.values().copied()), sorted(model.values().copied()));
            prop_assert_eq!(sorted(entries.take()), sorted(model.into_values()));
            prop_assert_eq!(entries.len(), 0);
        }
    }

    #[test]
    fn those_that_stay_are_found_however_many_came_after_them() {
        let mut entries = Entries::new(0);
        for opaque in 0..100_000 {
            assert!(entries.insert(opaque, opaque));
            if opaque % 1_000 != 0 {
                assert_eq!(entries.remove(opaque), Some(opaque));
            }
        }
        assert_eq!(entries.len(), 100);
        assert!(!entries.insert(7_000, 0), "it is here");
        for opaque in (0..100_000).step_by(1_000) {
            assert_eq!(entries.remove(opaque), Some(opaque));
        }
        assert!(entries.insert(7_000, 0), "it is free again");
    }

    #[test]
    fn the_ring_is_as_large_as_its_use_and_bounded() {
        let mut entries = Entries::new(0);
        for opaque in 0..1_000 {
            entries.insert(opaque, ());
            entries.remove(opaque);
        }
        assert_eq!(entries.ring.len(), MIN_RING);
        for opaque in 1_000..20_000 {
            entries.insert(opaque, ());
        }
        assert_eq!((entries.ring.len(), entries.len()), (MAX_RING, 19_000));
    }
}
