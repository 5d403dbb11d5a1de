//! A slab: values at stable small indices, with freed slots reused and no allocation once it has grown.

/// Values at stable indices.
#[derive(Debug)]
pub struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    /// Stores a value and returns its index.
    #[inline(always)]
    pub fn insert(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(i) => {
                self.slots[i as usize] = Some(value);
                i
            }
            None => {
                let i = u32::try_from(self.slots.len()).expect("four billion values fit no memory");
                self.slots.push(Some(value));
                i
            }
        }
    }

    /// Removes and returns the value at `i`.
    #[inline]
    pub fn remove(&mut self, i: u32) -> Option<T> {
        let value = self.slots.get_mut(i as usize)?.take();
        if value.is_some() {
            self.free.push(i);
        }
        value
    }

    /// The value at `i`.
    #[inline]
    pub fn get(&self, i: u32) -> Option<&T> {
        self.slots.get(i as usize)?.as_ref()
    }

    /// The value at `i`.
    #[inline]
    pub fn get_mut(&mut self, i: u32) -> Option<&mut T> {
        self.slots.get_mut(i as usize)?.as_mut()
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots ever used: the high-water mark.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// Values in the order of their indices.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        self.slots
            .iter_mut()
            .enumerate()
            .filter_map(|(i, v)| Some((i as u32, v.as_mut()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_reused() {
        let mut s = Slab::default();
        let a = s.insert("a");
        let b = s.insert("b");
        assert_eq!(s.remove(a), Some("a"));
        assert_eq!(s.remove(a), None);
        assert_eq!(s.insert("c"), a);
        assert_eq!(s.get(b), Some(&"b"));
        assert_eq!((s.len(), s.capacity()), (2, 2));
    }

    #[test]
    fn values_are_visited_in_the_order_of_their_places() {
        let mut s = Slab::default();
        assert!(s.is_empty());
        let [a, b, c] = [1, 2, 3].map(|n| s.insert(n));
        s.remove(b);
        for (i, n) in s.iter_mut() {
            *n += 10 * i;
        }
        *s.get_mut(a).unwrap() += 100;
        assert_eq!(
            [a, b, c, 9].map(|i| s.get(i).copied()),
            [Some(101), None, Some(23), None]
        );
        assert!(!s.is_empty() && s.get_mut(b).is_none());
    }
}
