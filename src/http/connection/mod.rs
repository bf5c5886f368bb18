//! An open connection: TLS, idle timeouts and eviction.

pub mod eviction;
pub mod idle_timeout;
pub mod probe;
pub mod tls;
