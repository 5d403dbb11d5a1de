//! A plain FIFO queue that counts its bytes.

use std::collections::VecDeque;

use super::Queued;

#[derive(Debug)]
pub(crate) struct Fifo<P> {
    queue: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P> Fifo<P> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
        }
    }
    #[inline]
    pub(crate) fn push(&mut self, queued: Queued<P>) {
        self.bytes += queued.item.bytes();
        self.queue.push_back(queued);
    }
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.queue.pop_front()?;
        self.bytes -= queued.item.bytes();
        Some(queued)
    }
    #[inline]
    pub(crate) fn front(&self) -> Option<&Queued<P>> {
        self.queue.front()
    }
    #[inline]
    pub(crate) fn packets(&self) -> u64 {
        self.queue.len() as u64
    }
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
