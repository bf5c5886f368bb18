//! The guarded HTTP client (SSRF protection): every request to an address that somebody else chose goes through here.
//!
//! Such an address must not reach the internal network. We resolve the name, check all its addresses, and dial one of those
//! we checked, so that a second DNS answer changes nothing (DNS rebinding). No redirect is followed and no proxy is used.
//! Time and bytes are bounded, and callers share the look-ups of names.
//!
//! This module must never know who asks (a caller is a text that it compares) or what is sent. It must never put a path, a query or
//! a body into an error: they may hold a token.

mod address;
mod exchange;
mod lookups;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ipnet::IpNet;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use self::address::Forbidden;
use self::lookups::Lookups;
pub use self::lookups::{LookupPlace, fair_share};
use crate::domain::time::Timestamp;
use crate::domain::webhook::url::EndpointUrl;
use crate::loopback::is_loopback;
use crate::reply::Reply;

/// For all of it: the name, the connection, TLS, the answer. It begins when there is a place for the look-up, which is waited for
/// for a third of it.
pub const OUTBOUND_TIMEOUT: Duration = Duration::from_secs(15);

/// Bytes of an answer that are read, its head included.
pub const LONGEST_ANSWER: usize = 64 * 1024;

/// A name with more addresses is nobody's endpoint.
const MOST_ADDRESSES: usize = 16;

/// Who knows the addresses of a name.
pub trait Resolver: Send + Sync {
    /// Keeps the place until the look-up is over, also if nobody waits for its answer.
    fn resolve(&self, host: &str, port: u16, place: LookupPlace) -> Reply<'_, io::Result<Vec<SocketAddr>>>;
}

/// The system's: it knows /etc/hosts, search domains and whatever else nsswitch.conf names.
struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str, port: u16, place: LookupPlace) -> Reply<'_, io::Result<Vec<SocketAddr>>> {
        let host = host.to_owned();
        let looked_up = tokio::task::spawn_blocking(move || {
            let addresses = (host.as_str(), port).to_socket_addrs();
            drop(place);
            addresses.map(Iterator::collect)
        });
        Reply::later(async { looked_up.await.map_err(io::Error::other)? })
    }
}

/// Why an endpoint is not even dialled. Host and port are no secret; what follows them is not here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundRefusal {
    #[error(
        "http:// is only for this machine, while the service's own address is a loopback one (UNIONHALL_BASE_URL=http://127.0.0.1:8080 \
         says so to a command); elsewhere write https://"
    )]
    NotEncrypted,
    #[error("{0}: there is no such name, or its name servers do not answer")]
    NotFound(String),
    #[error("{0}: the name was not looked up in time")]
    LookupLate(String),
    /// Says nothing about the endpoint.
    #[error("{0}: the name was not looked up, because other names' servers are silent")]
    LookupBusy(String),
    #[error("{0}: the name has no address")]
    NoAddress(String),
    #[error("{0}: the name has more than {MOST_ADDRESSES} addresses")]
    TooManyAddresses(String),
    #[error(
        "{0} leads to an address that is not on the public internet; if that is meant, name its network in \
         UNIONHALL_OUTBOUND_ALLOW"
    )]
    NotPublic(String),
    #[error("{0} leads to this machine; if that is meant, name its address in UNIONHALL_OUTBOUND_ALLOW")]
    ThisMachine(String),
    #[error("{0} is not on this machine, and nothing is sent anywhere else from here: write http://127.0.0.1:PORT/")]
    Elsewhere(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    #[error(transparent)]
    Refused(#[from] OutboundRefusal),
    #[error("{at} could not be connected to: {why}")]
    NotConnected { at: String, why: &'static str },
    #[error("{at} could not be spoken to with TLS: {why}")]
    Tls { at: String, why: &'static str },
    #[error("{at} gave no answer: {why}")]
    NoAnswer { at: String, why: &'static str },
    #[error("{at} took too long {stage}: {} s are allowed for all of it", .allowed.as_secs())]
    Late { at: String, stage: &'static str, allowed: Duration },
    #[error(
        "no certificate authorities are known on this machine; install ca-certificates or name a file with SSL_CERT_FILE"
    )]
    NoAuthorities,
    #[error("the request could not be written")]
    Unwritable,
}

/// What came back; the rest of it is thrown away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboundAnswer {
    pub status: u16,
    /// How long it asks us to wait, if it does.
    pub retry_after: Option<Duration>,
}

pub struct GuardedClient {
    allow: Vec<IpNet>,
    development: bool,
    only_this_machine: bool,
    resolver: Arc<dyn Resolver>,
    lookups: Lookups,
    timeout: Duration,
    /// The system's where none are given.
    roots: Option<RootCertStore>,
    /// Made when it is first needed: many installations never send anything.
    tls: OnceCell<Arc<ClientConfig>>,
}

impl GuardedClient {
    /// One that may also reach the networks of `allow`, and with `development` this machine where an endpoint names it so.
    pub fn new(allow: Vec<IpNet>, development: bool) -> Self {
        Self {
            allow,
            development,
            only_this_machine: false,
            resolver: Arc::new(SystemResolver),
            lookups: Lookups::new(),
            timeout: OUTBOUND_TIMEOUT,
            roots: None,
            tls: OnceCell::new(),
        }
    }

    /// The same for a service at `base_url`, which is in development where that is a loopback address.
    pub fn of_service_at(base_url: &str, allow: Vec<IpNet>) -> Self {
        let host = base_url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        Self::new(allow, is_loopback(host))
    }

    /// The same, for endpoints that name this machine and no others: not even a name is looked up.
    #[must_use]
    pub fn only_to_this_machine(self) -> Self {
        Self { only_this_machine: true, ..self }
    }

    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// With authorities of one's own in place of the system's.
    #[must_use]
    pub fn with_roots(self, roots: RootCertStore) -> Self {
        Self { roots: Some(roots), tls: OnceCell::new(), ..self }
    }

    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Whether an endpoint is on this machine, in development.
    pub fn is_local(&self, url: &EndpointUrl) -> bool {
        self.development && url.is_loopback()
    }

    /// Where an endpoint may be dialled now. One address that may not be reached spoils them all: which one is dialled must
    /// not be luck. The caller is whose share a look-up takes.
    pub async fn check(&self, caller: &str, url: &EndpointUrl) -> Result<Vec<SocketAddr>, OutboundRefusal> {
        Ok(self.find(caller, url).await?.0)
    }

    /// The same, and until when an answer is waited for.
    async fn find(&self, caller: &str, url: &EndpointUrl) -> Result<(Vec<SocketAddr>, Instant), OutboundRefusal> {
        let here = self.is_local(url);
        if self.only_this_machine && !url.is_loopback() {
            return Err(OutboundRefusal::Elsewhere(url.authority().to_owned()));
        }
        if !url.is_https() && !here {
            return Err(OutboundRefusal::NotEncrypted);
        }
        let at = || url.authority().to_owned();
        let (found, deadline) = match url.address() {
            Some(address) => (vec![SocketAddr::new(address, url.port())], Instant::now() + self.timeout),
            None => {
                let place = tokio::time::timeout(self.timeout / 3, self.lookups.place(caller)).await;
                let place = place.map_err(|_| OutboundRefusal::LookupBusy(at()))?;
                let deadline = Instant::now() + self.timeout;
                let asked = self.resolver.resolve(url.host(), url.port(), place);
                match tokio::time::timeout_at(deadline, asked).await {
                    Ok(Ok(found)) => (found, deadline),
                    Ok(Err(_)) => return Err(OutboundRefusal::NotFound(at())),
                    Err(_) => return Err(OutboundRefusal::LookupLate(at())),
                }
            }
        };
        if found.is_empty() {
            return Err(OutboundRefusal::NoAddress(at()));
        }
        if found.len() > MOST_ADDRESSES {
            return Err(OutboundRefusal::TooManyAddresses(at()));
        }
        // Whatever else an answer says of a socket, it is the address that is judged and the endpoint's port that is dialled.
        let found: Vec<_> = found.iter().map(|one| SocketAddr::new(one.ip().to_canonical(), url.port())).collect();
        for one in &found {
            match address::check(one.ip(), &self.allow) {
                Ok(()) => {}
                Err(_) if here && one.ip().is_loopback() => {}
                Err(Forbidden::NotPublic) => return Err(OutboundRefusal::NotPublic(at())),
                Err(Forbidden::ThisMachine) => return Err(OutboundRefusal::ThisMachine(at())),
            }
        }
        Ok((found, deadline))
    }

    /// Sends JSON to an endpoint, after the same check. `now` is for answers that name a time to come back at.
    pub async fn post(
        &self,
        caller: &str,
        url: &EndpointUrl,
        headers: &[(&'static str, String)],
        body: Bytes,
        now: Timestamp,
    ) -> Result<OutboundAnswer, OutboundError> {
        let (addresses, deadline) = self.find(caller, url).await?;
        let tls = if url.is_https() { Some(self.tls().await?) } else { None };
        let request = exchange::request(url, headers, body)?;
        let exchange = exchange::OutboundExchange { at: url.authority(), deadline, allowed: self.timeout, now };
        let stream = exchange.dial(&addresses).await?;
        match tls {
            Some(tls) => exchange.speak(exchange.encrypt(tls, url.host(), stream).await?, request).await,
            None => exchange.speak(stream, request).await,
        }
    }

    async fn tls(&self) -> Result<Arc<ClientConfig>, OutboundError> {
        let made = self.tls.get_or_try_init(|| async {
            let roots = match self.roots.clone() {
                Some(given) => given,
                // From files, hundreds of them on some systems.
                None => {
                    tokio::task::spawn_blocking(exchange::system_roots).await.unwrap_or_else(|_| RootCertStore::empty())
                }
            };
            exchange::tls_config(roots)
        });
        made.await.cloned()
    }
}
