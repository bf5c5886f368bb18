//! The address of Redis, as the operator wrote it. It may hold a password, so nothing here may print all of it.

use std::fmt;

use redis::Client;

/// Which Redis, and what our keys there begin with.
#[derive(Clone)]
pub struct Target {
    pub(super) client: Client,
    pub(super) prefix: String,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target(prefix {:?})", self.prefix)
    }
}

/// What is wrong with an address of Redis. Says nothing of the address itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the address of Redis has a mistake: {0}; write redis://USER:PASSWORD@HOST:6379/0, or rediss:// for TLS")]
pub struct BadTarget(String);

impl Target {
    const PREFIX: &str = "unionhall:";

    /// Reads `redis://…` or `rediss://…`; `?prefix=NAME` is ours.
    pub fn parse(url: &str) -> Result<Self, BadTarget> {
        let bad = |why: &str| Err(BadTarget(why.to_owned()));
        if !url.starts_with("redis://") && !url.starts_with("rediss://") {
            return bad("it begins with neither redis:// nor rediss://");
        }
        if url.contains('#') {
            return bad("it holds a #, which a password has as %23");
        }
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut prefix = Self::PREFIX.to_owned();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if name != "prefix" {
                return bad("after the ? may stand prefix=NAME alone");
            }
            prefix = value.into_owned();
        }
        let sane = |c: char| c.is_ascii_alphanumeric() || ":._-".contains(c);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(sane) {
            return bad("its prefix is not 1 to 64 letters, digits and :._-");
        }
        match Client::open(address) {
            Ok(client) => Ok(Self { client, prefix }),
            // What the driver says may have a piece of the address in it.
            Err(_) => bad("its host, port or number of a database cannot be read"),
        }
    }
}

impl fmt::Display for Target {
    /// Where it is, without the login.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis at {}, prefix {}", self.client.get_connection_info().addr(), self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_mistakes_told_without_them() {
        for (good, prefix) in [
            ("redis://127.0.0.1", "unionhall:"),
            ("redis://:hunter2@cache.example:6380/3", "unionhall:"),
            ("rediss://user:hunter2@cache.example?prefix=east:", "east:"),
            ("redis://[::1]:6379/0?prefix=a", "a"),
        ] {
            assert_eq!(Target::parse(good).unwrap().prefix, prefix, "{good}");
        }
        for bad in [
            "redis://",
            "redis:/hunter2",
            "http://hunter2",
            "redis://user:hunter2@/",
            "redis://:hunter2@cache/first",
            "redis://:hunter2@cache:port",
            "redis://:hunter2@0.0.0.0",
            "redis://:hunt#er2@cache",
            "redis://:hunter2@cache?prefix=",
            "redis://:hunter2@cache?prefix=a%20b",
            "redis://:hunter2@cache?prefix=a&hunter2=1",
            "redis://:hunter2@cache?hunter2=1",
            "redis://:hunt%ffer2@cache",
        ] {
            let message = Target::parse(bad).unwrap_err().to_string();
            assert!(message.starts_with("the address of Redis has a mistake: "), "{message}");
            assert!(!message.contains("hunt"), "{message}");
        }
        let shown = format!("{:?}", Target::parse("redis://:hunter2@cache").unwrap());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
