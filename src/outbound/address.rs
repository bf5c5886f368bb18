//! Which addresses outbound requests may reach (SSRF protection): public ones that are not this machine's, and those that
//! the operator allows.
//!
//! The lists follow IANA's registries of special-purpose addresses. An address that is not known to be public is refused.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use rustix::io::Errno;

/// Why an address may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Forbidden {
    /// Private, link-local, multicast, reserved, or a way to such a one through IPv6.
    NotPublic,
    ThisMachine,
}

const fn v4(a: u8, b: u8, c: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), length)
}

const CLOSED_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    // Shared by the customers of a provider.
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    // Link-local: where clouds keep their machines' credentials.
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    // Relays from IPv6 to IPv4, which are no more.
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
];

const fn v6(a: u16, b: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0), length)
}

/// All that is given out so far. The ways to IPv4 (compatible, NAT64) lie outside it.
const OPEN_V6: Ipv6Net = v6(0x2000, 0, 3);

const CLOSED_V6: [Ipv6Net; 4] = [
    // Protocols' own, Teredo among them.
    v6(0x2001, 0, 23),
    v6(0x2001, 0xdb8, 32),
    // 6to4, which holds an IPv4 address.
    v6(0x2002, 0, 16),
    v6(0x3fff, 0, 20),
];

/// Whether an address may be reached, once it is written as what it is: [`IpAddr::to_canonical`].
pub(super) fn check(address: IpAddr, allowed: &[IpNet]) -> Result<(), Forbidden> {
    if allowed.iter().any(|network| network.contains(&address)) {
        return Ok(());
    }
    let public = match address {
        IpAddr::V4(address) => !CLOSED_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) => {
            OPEN_V6.contains(&address) && !CLOSED_V6.iter().any(|network| network.contains(&address))
        }
    };
    if !public {
        return Err(Forbidden::NotPublic);
    }
    if is_this_machines(address) { Err(Forbidden::ThisMachine) } else { Ok(()) }
}

/// Whether an address is one of this machine's: a socket can be bound to those alone.
fn is_this_machines(address: IpAddr) -> bool {
    if !can_bind(address) {
        return false;
    }
    // Some machines may bind to any address (`ip_nonlocal_bind`). There the way to it tells, if less surely: it begins at the
    // address itself.
    let nobodys: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    !can_bind(nobodys) || starts_at(address).is_ok_and(|start| start == address)
}

/// Where this cannot be found out (no sockets are left, say) the answer is the one that is safe.
fn can_bind(address: IpAddr) -> bool {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => true,
        // The second: a machine without IPv6.
        Err(error) => !matches!(Errno::from_io_error(&error), Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT)),
    }
}

/// Our end of the way to an address; connecting a UDP socket sends nothing.
fn starts_at(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(address: &str) -> Result<(), Forbidden> {
        check(address.parse::<IpAddr>().unwrap().to_canonical(), &[])
    }

    #[test]
    fn only_the_open_internet_is_open() {
        for closed in [
            "0.0.0.0",
            "0.255.255.255",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.0",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "172.16.0.0",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.255",
            "192.88.99.1",
            "192.168.255.255",
            "198.18.0.0",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::10.0.0.1",
            "::8.8.8.8",
            "::ffff:10.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::8.8.8.8",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert_eq!(checked(closed), Err(Forbidden::NotPublic), "{closed}");
        }
        for open in [
            "1.0.0.0",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2003::1",
            "2606:4700::1111",
            "3fff:1000::1",
        ] {
            assert_eq!(checked(open), Ok(()), "{open}");
        }
    }

    #[test]
    fn this_machine_knows_its_own_addresses() {
        assert!(is_this_machines(Ipv4Addr::LOCALHOST.into()));
        assert!(!is_this_machines(Ipv4Addr::new(8, 8, 8, 8).into()));
        assert!(!is_this_machines("2606:4700::1111".parse().unwrap()));
        // Whatever the way out starts at, where there is one.
        if let Ok(own) = starts_at(Ipv4Addr::new(8, 8, 8, 8).into()) {
            assert!(is_this_machines(own), "{own}");
        }
    }
}
