//! What is read from a request: its body, who sent it, for which host, under which id, and what they would rather read.

pub mod accept;
pub mod authorization;
pub mod body;
pub mod client_address;
pub mod host;
pub mod id;
