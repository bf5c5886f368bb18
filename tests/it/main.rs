//! Everything that is tested from outside, in one binary: the real server on a port of its own with records of its
//! own (see records.rs), and the suites that every backend must pass.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

// First, for its macro.
#[macro_use]
mod servers;

mod answers;
mod bad_input;
mod campaign_commands;
mod campaign_mail;
mod campaign_pages;
mod commands;
mod connections;
mod contract;
mod database;
mod deals;
mod doctor;
mod export;
mod fuzz;
mod growth;
mod handover;
mod health;
mod history;
mod holding_ground;
mod limits;
mod logs;
mod long;
mod machines;
mod mail;
mod mail_budget;
mod mailserver;
mod manners;
mod mcp;
mod metrics;
mod negotiator;
mod notify;
mod once;
mod open_store;
mod openapi;
mod operator;
mod operator_campaigns;
mod operator_overview;
mod operator_page;
mod operator_rewards;
mod operator_roles;
mod operator_sign_in;
mod operator_week;
mod own_page;
mod pages;
mod partners;
mod prelude;
mod properties;
mod readme;
mod records;
mod referral;
mod reports;
mod reward_commands;
mod reward_pages;
mod sandbox;
mod server;
mod site;
mod stopping;
mod stored;
mod turns;
mod welcome;
