//! unionhall: the public and partner API of a consumer union.
//!
//! Members pool their demand, an AI negotiates better prices on household bills, and assistants and partners use this
//! service to describe the union truthfully and to help people join it, with their consent.
//!
//! # Layers
//!
//! One definition of an operation serves every channel. Each layer knows only layers below it:
//!
//! ```text
//! cli                            commands and wiring                config   what the operator can set
//!  ↓
//! server                         the HTTP service: one table of routes, REST, listeners
//!  ↓
//! site   mcp   documents         pages for people · tools for assistants · what describes the operations
//!  ↓
//! operations                     the contract's five: one table, one dispatch, a file each
//!  ↓
//! app   operator   sandbox       the parts put together · what operators may do · the inboxes of the sandbox
//!  ↓
//! people → rewards → campaigns → membership → partners → keys → mail
//!                                the capabilities: each owns its rules and their SQL
//!  ↓
//! store   limiter   http         an engine for units of work, exact limits, messages of HTTP;
//!                                outbound, the guarded client of whatever is sent where others say
//!  ↓
//! domain                         values that cannot be wrong, and the rules between them
//! ```
//!
//! Beside them stand [`clock`], the one place that reads the time; [`demonstration`], the calendar that can be moved; [`error`], what can go wrong; [`log`] and [`metrics`],
//! what the operator reads; [`random`], the one source of random bytes; [`reply`], an answer that may be there already; `loopback`, whether a host is this machine;
//! `private_files`, files and folders that only their owner may look into; `certificates`, servers' certificates judged by a rule of ours.
//!
//! ARCHITECTURE.md says what each layer must never do; `tests/it/once/architecture.rs` holds them to it.

// Printing goes through `cli::terminal`, which does not fail where nobody reads any more.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod app;
pub mod campaigns;
mod certificates;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demonstration;
pub mod documents;
pub mod domain;
pub mod error;
pub mod figures;
pub mod http;
pub mod installation;
pub mod keys;
pub mod lease_queue;
pub mod limiter;
pub mod log;
mod loopback;
pub mod mail;
pub mod mcp;
pub mod membership;
pub mod metrics;
pub mod operations;
pub mod operator;
pub mod outbound;
pub mod partners;
pub mod people;
mod private_files;
pub mod random;
pub mod reply;
pub mod rewards;
pub mod sandbox;
pub mod server;
pub mod site;
pub mod store;
pub mod supervise;
