//! Everything that is tested from outside, in one binary: the real server on a port of its own with a data folder of
//! its own, and the suites that every backend must pass.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod architecture;
mod bad_input;
mod commands;
mod contract;
mod cors;
mod first_start;
mod holding_ground;
mod https;
mod limiter_suite;
mod limits;
mod logs;
mod mail;
mod manners;
mod mcp;
mod metrics;
mod openapi;
mod outbox;
mod pages;
mod properties;
mod referral;
mod server;
mod shared_limits;
mod stopping;
mod store_suite;
mod stored;
