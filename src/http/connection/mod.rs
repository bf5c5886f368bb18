//! A connection while it is open: TLS, idle time-outs, what cannot be read on it, and what is polled beside it.

pub mod idle_timeout;
pub mod poll_when_woken;
pub mod probe;
pub mod tls;
pub mod unreadable;
