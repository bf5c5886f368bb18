//! unionhall: the public and partner API of a consumer union.
//!
//! Members pool their demand, an AI negotiates better prices on household bills, and assistants and partners use this
//! service to describe the union truthfully and to help people join it, with their consent.
//!
//! # The house
//!
//! One definition of an operation has many faces. Data flows one way:
//!
//! ```text
//! transport (rest, openapi, pages)  →  operations  →  domain   (pure: no waiting, no I/O, no HTTP)
//!                                          ↓
//!                               store · limiter · mail          (traits, each with its backends)
//! ```
//!
//! - [`domain`]: values that cannot hold a bad state, and the rules between them.
//! - [`operations`]: the five operations, one file each, one table of all, one dispatch for every call.
//! - [`store`]: what the union remembers, behind one trait of whole units of work.
//! - [`limiter`]: exact limits, behind one trait.
//! - [`mail`]: what mail says, the worker that empties the outbox, and the ways for mail to leave.
//! - [`transport`]: HTTP: routes, the OpenAPI document, errors as answers.
//! - [`app`]: the parts put together; [`config`]: what the operator can set; [`cli`]: the commands.
//! - [`error`]: what can go wrong, free of any transport; [`clock`]: the one place that reads the time;
//!   [`metrics`]: figures for monitoring; [`reply`]: an answer that may be there already; [`tidy`]: what is over expires;
//!   `loopback`: whether a host is this machine.
//!
//! ARCHITECTURE.md says what each room must never do; `tests/it/once/architecture.rs` holds them to it.

pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod error;
pub mod limiter;
pub mod log;
mod loopback;
pub mod mail;
pub mod metrics;
pub mod operations;
pub mod reply;
pub mod store;
pub mod tidy;
pub mod transport;
