//! What each caller has open and under way: nobody gets more than a share of the whole (fairness).
//!
//! A caller is a network, as limits see it: an IPv4 address, or a /64 of IPv6, with the /48 around it. It is looked up once
//! for a connection, so that a request costs a counter; what comes through a trusted proxy is looked up for each request,
//! because there the caller is the forwarded client.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::request::body::BodyBudget;
use crate::limiter::Network;

/// A share of what all shares have together: of the connections in `listener.rs`, the requests in flight and the bytes of
/// bodies in `mod.rs`.
#[derive(Debug, Clone, Copy)]
struct Most {
    connections: usize,
    requests: usize,
    body_bytes: usize,
}

const OF_A_NETWORK: Most = Most { connections: 512, requests: 512, body_bytes: 4 << 20 };
const OF_A_SITE: Most = Most { connections: 2048, requests: 2048, body_bytes: 16 << 20 };

/// The bits of an IPv6 site.
const SITE: u32 = 48;

const SHARDS: usize = 16;

/// Everybody who is connected, or has a request under way; as many entries as there are connections and requests.
#[derive(Debug, Default)]
pub(super) struct ClientShares {
    shards: [Mutex<HashMap<Place, Arc<Share>>>; SHARDS],
    hasher: RandomState,
}

/// A network, and whether it stands for itself or for the site of that name.
type Place = (Network, bool);

#[derive(Debug)]
struct Share {
    most: Most,
    connections: AtomicUsize,
    requests: AtomicUsize,
    bodies: BodyBudget,
}

impl Share {
    fn new(most: Most) -> Self {
        let bodies = BodyBudget::new(most.body_bytes);
        Self { most, connections: AtomicUsize::new(0), requests: AtomicUsize::new(0), bodies }
    }
}

/// Adds one unless there are as many as may be.
fn add(count: &AtomicUsize, most: usize) -> bool {
    let fits = count.fetch_add(1, Ordering::Relaxed) < most;
    if !fits {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    fits
}

/// Adds one to each, or to none.
fn add_to_all<'a>(
    shares: &'a [Option<(Place, Arc<Share>)>; 2],
    count: fn(&'a Share) -> (&'a AtomicUsize, usize),
) -> bool {
    let counts = || shares.iter().flatten().map(|(_, share)| count(share));
    match counts().position(|(count, most)| !add(count, most)) {
        None => true,
        Some(full) => {
            for (count, _) in counts().take(full) {
                count.fetch_sub(1, Ordering::Relaxed);
            }
            false
        }
    }
}

impl ClientShares {
    /// A caller on a connection of its own; none if it has its share of them.
    pub(super) fn connect(self: &Arc<Self>, address: IpAddr) -> Option<ClientShare> {
        let mut client = self.find(address);
        client.is_connection = add_to_all(&client.shares, |share| (&share.connections, share.most.connections));
        client.is_connection.then_some(client)
    }

    /// A caller who speaks through somebody else's connection.
    pub(super) fn find(self: &Arc<Self>, address: IpAddr) -> ClientShare {
        let network = Network::from(address);
        let own = self.share((network, false), OF_A_NETWORK);
        let site = network.within(SITE).map(|site| self.share((site, true), OF_A_SITE));
        ClientShare { table: Arc::clone(self), shares: [Some(own), site], is_connection: false }
    }

    fn share(&self, place: Place, most: Most) -> (Place, Arc<Share>) {
        let mut shard = self.shard(place);
        (place, Arc::clone(shard.entry(place).or_insert_with(|| Arc::new(Share::new(most)))))
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, HashMap<Place, Arc<Share>>> {
        let shard = self.hasher.hash_one(place) as usize % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever a connection, or a request through a proxy, belongs to.
#[derive(Debug)]
pub(super) struct ClientShare {
    table: Arc<ClientShares>,
    shares: [Option<(Place, Arc<Share>)>; 2],
    is_connection: bool,
}

impl ClientShare {
    /// A place for one more request; none if the caller has its share under way.
    pub(super) fn begin_request(&self) -> Option<RequestPlace<'_>> {
        add_to_all(&self.shares, |share| (&share.requests, share.most.requests)).then(|| RequestPlace(self))
    }

    /// What the caller's bodies draw on.
    pub(super) fn bodies(&self) -> [Option<&BodyBudget>; 2] {
        self.shares.each_ref().map(|share| share.as_ref().map(|(_, share)| &share.bodies))
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        for (place, share) in self.shares.iter_mut().filter_map(Option::take) {
            if self.is_connection {
                share.connections.fetch_sub(1, Ordering::Relaxed);
            }
            let mut shard = self.table.shard(place);
            // The table's and this one: nobody else is here, and nobody comes while the table is locked.
            if Arc::strong_count(&share) == 2 {
                shard.remove(&place);
                if shard.capacity() > 1024 && shard.len() < shard.capacity() / 8 {
                    shard.shrink_to_fit();
                }
            }
        }
    }
}

/// A request's place among its caller's.
#[derive(Debug)]
pub(super) struct RequestPlace<'a>(&'a ClientShare);

impl Drop for RequestPlace<'_> {
    fn drop(&mut self) {
        for (_, share) in self.0.shares.iter().flatten() {
            share.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(shares: &ClientShares) -> usize {
        shares.shards.iter().map(|shard| shard.lock().unwrap().len()).sum()
    }

    #[test]
    fn a_network_has_its_share_and_its_site_another() {
        let shares = Arc::new(ClientShares::default());
        let v4: IpAddr = "192.0.2.1".parse().unwrap();
        let mut open: Vec<_> = std::iter::from_fn(|| shares.connect(v4)).take(5000).collect();
        assert_eq!(open.len(), OF_A_NETWORK.connections);
        assert!(shares.connect("192.0.2.2".parse().unwrap()).is_some(), "others are not touched");
        open.pop();
        assert!(shares.connect(v4).is_some(), "what is given back can be taken again");
        let requests: Vec<_> = std::iter::from_fn(|| open[0].begin_request()).take(5000).collect();
        assert_eq!(requests.len(), OF_A_NETWORK.requests);
        assert!(open[1].begin_request().is_none(), "over all connections");
        drop(requests);
        assert!(open[1].begin_request().is_some());
        drop(open);
        assert_eq!(held(&shares), 0, "nobody is remembered who has nothing open");

        let networks = (0..u32::MAX).map(|n| IpAddr::from([0x2001, 0xdb8, 1, n as u16, 0, 0, 0, 1]));
        let open: Vec<_> = networks.map_while(|network| shares.connect(network)).take(5000).collect();
        assert_eq!(open.len(), OF_A_SITE.connections, "a /48 of many networks");
        assert!(shares.connect("2001:db8:2::1".parse().unwrap()).is_some());
        assert_eq!(held(&shares), open.len() + 1);
        let refused = shares.connect("2001:db8:1:ffff::1".parse().unwrap());
        assert!(refused.is_none());
        drop(open);
        assert_eq!(held(&shares), 0);
    }

    #[test]
    fn in_any_order_at_once_nothing_is_left_behind() {
        let shares = Arc::new(ClientShares::default());
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let shares = &shares;
                scope.spawn(move || {
                    for n in 0..2000_u16 {
                        let address = IpAddr::from([0x2001, 0xdb8, n % 3, n % 5, 0, 0, 0, u16::from(thread)]);
                        let caller = shares.connect(address).unwrap();
                        let request = caller.begin_request().unwrap();
                        drop((request, shares.find(address)));
                    }
                });
            }
        });
        assert_eq!(held(&shares), 0);
    }
}
