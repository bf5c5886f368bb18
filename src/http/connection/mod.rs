//! An open connection: TLS, idle timeouts, unreadable requests, and the futures polled beside it.

pub mod eviction;
pub mod idle_timeout;
pub mod poll_when_woken;
pub mod probe;
pub mod tls;
pub mod unreadable;
