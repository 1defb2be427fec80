//! Values by a number that is used again only after it was freed: requests and operations under
//! way. Its memory is made once; more than was expected allocates.

/// A table that keeps its memory.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    values: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    /// Room for `capacity` values; more are possible, and allocate.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity) }
    }

    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(at) = self.free.pop() {
            self.values[at] = Some(value);
            return at;
        }
        self.values.push(Some(value));
        self.values.len() - 1
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.values.get(at)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.values.get_mut(at)?.as_mut()
    }

    pub(crate) fn remove(&mut self, at: usize) -> Option<T> {
        let value = self.values.get_mut(at)?.take()?;
        self.free.push(at);
        Some(value)
    }

    /// Values that it has room for.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.values.capacity()
    }

    /// All numbers that are used are below this one.
    pub(crate) fn numbers_end(&self) -> usize {
        self.values.len()
    }
}
