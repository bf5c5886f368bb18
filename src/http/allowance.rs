//! A quota for concurrent use of a resource: connections, requests, bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Allowance {
    most: usize,
    held: AtomicUsize,
}

impl Allowance {
    pub const fn new(most: usize) -> Self {
        Self { most, held: AtomicUsize::new(0) }
    }

    /// Takes so much of it, unless there is less left.
    pub fn take(&self, amount: usize) -> bool {
        let fits = self.held.fetch_add(amount, Ordering::Relaxed) + amount <= self.most;
        if !fits {
            self.give_back(amount);
        }
        fits
    }

    pub fn give_back(&self, amount: usize) {
        self.held.fetch_sub(amount, Ordering::Relaxed);
    }
}

/// Takes so much of each, or of none.
pub fn take<'a, I: Iterator<Item = &'a Allowance>>(allowances: impl Fn() -> I, amount: usize) -> bool {
    match allowances().position(|allowance| !allowance.take(amount)) {
        None => true,
        Some(full) => {
            allowances().take(full).for_each(|allowance| allowance.give_back(amount));
            false
        }
    }
}

/// A request's slot among those in flight, given back when it is answered or its caller hangs up; a connection's among
/// those open.
pub struct Slot<'a>(&'a AtomicUsize);

impl<'a> Slot<'a> {
    /// One more, with how many there were before.
    pub fn take(count: &'a AtomicUsize) -> (Self, usize) {
        let before = count.fetch_add(1, Ordering::Relaxed);
        (Self(count), before)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
