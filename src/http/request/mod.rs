//! What is read from a request: its body, a form with a file, its client address, host, id and preferred format.

pub mod accept;
pub mod authorization;
pub mod body;
pub mod client_address;
pub mod host;
pub mod id;
pub mod identity_header;
pub mod multipart;
