//! What the union is made of: values that cannot hold a bad state, and the rules between them.
//!
//! This layer is pure. It must never wait, read the clock, draw a random number, touch a file or a socket, or know that
//! HTTP, SQL or a command line exist. Whatever it needs from outside is passed in.

pub mod answers;
pub mod api_key;
pub mod backoff;
pub mod base32;
pub mod campaign;
pub mod catalog;
pub mod csv;
pub mod email;
pub mod figure;
pub mod health;
pub mod json;
pub mod language;
pub mod mail;
pub mod operator;
pub mod partner;
pub mod person;
pub mod referral;
pub mod remedy;
pub mod reward;
pub mod secret;
pub mod share;
pub mod sign_in;
pub mod sign_up;
pub mod simulator;
pub mod text;
pub mod time;
pub mod union;
pub mod us_state;
pub mod webhook;
