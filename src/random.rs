//! The one source of random bytes.

use ring::rand::{SecureRandom, SystemRandom};

#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandom;

/// Bytes that no one can guess.
pub fn bytes<const LENGTH: usize>() -> Result<[u8; LENGTH], NoRandom> {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(bytes)
}
