//! A quota for concurrent use of a resource: connections, requests, bytes.

use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
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
