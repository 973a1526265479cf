//! Values at stable indices that are used again.

/// A vector whose freed places are filled again; every operation is O(1) amortised.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = Some(value);
            index
        } else {
            self.slots.push(Some(value));
            u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 values are held at once")
        }
    }

    pub(super) fn remove(&mut self, index: u32) -> T {
        let value = self.slots[index as usize].take().expect(HELD);
        self.free.push(index);
        value
    }

    pub(super) fn at(&self, index: u32) -> &T {
        self.slots[index as usize].as_ref().expect(HELD)
    }

    pub(super) fn at_mut(&mut self, index: u32) -> &mut T {
        self.slots[index as usize].as_mut().expect(HELD)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// The invariant of every caller.
const HELD: &str = "an index is held only while its value is stored";
