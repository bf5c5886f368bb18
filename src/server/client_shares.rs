//! What each caller has open and under way: nobody gets more than a share of the whole (fairness).
//!
//! A caller is a network, as limits see it: an IPv4 address, or a /64 of IPv6, with the /48 around it. It is looked up once
//! for a connection, so that a request costs a counter; what comes through a trusted proxy is looked up for each request,
//! because there the caller is the forwarded client.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::http::allowance::{self, Allowance};
use crate::limiter::Network;

/// A part of what all callers have together: of the connections in `listener.rs`, the requests in flight and the bytes of
/// bodies in `mod.rs`.
struct Share {
    connections: Allowance,
    requests: Allowance,
    bodies: Allowance,
}

impl Share {
    const fn new(connections: usize, requests: usize, body_bytes: usize) -> Self {
        let bodies = Allowance::new(body_bytes);
        Self { connections: Allowance::new(connections), requests: Allowance::new(requests), bodies }
    }

    const fn of_a_network() -> Self {
        Self::new(512, 512, 4 << 20)
    }

    const fn of_a_site() -> Self {
        Self::new(2048, 2048, 16 << 20)
    }
}

/// The bits of an IPv6 site.
const SITE: u32 = 48;

const SHARDS: usize = 16;

/// Everybody who is connected, or has a request under way; as many entries as there are connections and requests.
#[derive(Default)]
pub(super) struct ClientShares {
    shards: [Mutex<HashMap<Place, Arc<Share>>>; SHARDS],
    hasher: RandomState,
}

/// A network, and whether it stands for itself or for the site of that name.
type Place = (Network, bool);

impl ClientShares {
    /// A caller on a connection of its own; none if it has its share of them.
    pub(super) fn connect(self: &Arc<Self>, address: IpAddr) -> Option<ClientShare> {
        let mut client = self.find(address);
        client.is_connection = client.take(|share| &share.connections);
        client.is_connection.then_some(client)
    }

    /// A caller who speaks through somebody else's connection.
    pub(super) fn find(self: &Arc<Self>, address: IpAddr) -> ClientShare {
        let network = Network::from(address);
        let own = self.share((network, false), Share::of_a_network);
        let site = network.within(SITE).map(|site| self.share((site, true), Share::of_a_site));
        ClientShare { table: Arc::clone(self), shares: [Some(own), site], is_connection: false }
    }

    fn share(&self, place: Place, new: fn() -> Share) -> (Place, Arc<Share>) {
        let mut shard = self.shard(place);
        (place, Arc::clone(shard.entry(place).or_insert_with(|| Arc::new(new()))))
    }

    fn shard(&self, place: Place) -> MutexGuard<'_, HashMap<Place, Arc<Share>>> {
        let shard = self.hasher.hash_one(place) as usize % SHARDS;
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever a connection, or a request through a proxy, belongs to.
pub(super) struct ClientShare {
    table: Arc<ClientShares>,
    shares: [Option<(Place, Arc<Share>)>; 2],
    is_connection: bool,
}

impl ClientShare {
    /// A place for one more request; none if the caller has its share under way.
    pub(super) fn begin_request(&self) -> Option<RequestPlace<'_>> {
        self.take(|share| &share.requests).then(|| RequestPlace(self))
    }

    /// What the caller's bodies draw on.
    pub(super) fn bodies(&self) -> [Option<&Allowance>; 2] {
        self.shares.each_ref().map(|share| share.as_ref().map(|(_, share)| &share.bodies))
    }

    /// One of the network's and one of the site's, or none of either.
    fn take(&self, of: fn(&Share) -> &Allowance) -> bool {
        allowance::take(|| self.shares.iter().flatten().map(|(_, share)| of(share)), 1)
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        for (place, share) in self.shares.iter_mut().filter_map(Option::take) {
            if self.is_connection {
                share.connections.give_back(1);
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
pub(super) struct RequestPlace<'a>(&'a ClientShare);

impl Drop for RequestPlace<'_> {
    fn drop(&mut self) {
        for (_, share) in self.0.shares.iter().flatten() {
            share.requests.give_back(1);
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
        assert_eq!(open.len(), 512);
        assert!(shares.connect("192.0.2.2".parse().unwrap()).is_some(), "others are not touched");
        open.pop();
        assert!(shares.connect(v4).is_some(), "what is given back can be taken again");
        let requests: Vec<_> = std::iter::from_fn(|| open[0].begin_request()).take(5000).collect();
        assert_eq!(requests.len(), 512);
        assert!(open[1].begin_request().is_none(), "over all connections");
        drop(requests);
        assert!(open[1].begin_request().is_some());
        drop(open);
        assert_eq!(held(&shares), 0, "nobody is remembered who has nothing open");

        let networks = (0..u32::MAX).map(|n| IpAddr::from([0x2001, 0xdb8, 1, n as u16, 0, 0, 0, 1]));
        let open: Vec<_> = networks.map_while(|network| shares.connect(network)).take(5000).collect();
        assert_eq!(open.len(), 2048, "a /48 of many networks");
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
