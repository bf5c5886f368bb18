//! What a partner does with its own keys.

pub mod list_keys;
pub mod revoke_key;
pub mod rotate_key;

/// The ids of the examples' keys: one, and its successor.
const EXAMPLE_KEY: &str = "4yx7xszf";
const EXAMPLE_SUCCESSOR: &str = "q7m2xk4d";
