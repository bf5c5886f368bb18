//! The targets, where the tests have them too.

#[path = "../../tests/it/fuzz/services.rs"]
pub mod services;
#[path = "../../tests/it/fuzz/targets.rs"]
pub mod targets;
