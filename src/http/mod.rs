//! HTTP: what is true of every connection, request and response, whatever is asked for.
//!
//! This room knows bytes, headers and statuses. It must never know a route, an operation or a page: `server/` puts those
//! on top of it.

pub mod allowance;
pub mod connection;
pub mod request;
pub mod response;
