//! HTTP: what is true of every connection, request and response.
//!
//! This module knows bytes, headers and statuses. It must never know a route, an operation or a page: `server/` adds
//! those.

pub mod allowance;
pub mod connection;
pub mod request;
pub mod response;
