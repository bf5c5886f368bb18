//! Mail: this room writes and sends what the union says to people by e-mail.
//!
//! It must never know HTTP, nor which operation asked for a message, and never put a caller's own text into one: what
//! anyone can have sent to a stranger must not carry a word of theirs.

pub mod message;
