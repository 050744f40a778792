//! Grouping of client addresses for limits. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Providers give each IPv6 subscriber a /64 or more, so a limit by address would not bind.
const IPV6_PREFIX_BITS: u32 = 64;

/// What one organisation commonly has.
const IPV4_SITE_BITS: u32 = 24;
const IPV6_SITE_BITS: u32 = 48;

/// The network by which limits count a client: the address itself for IPv4, its /64 for IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - IPV6_PREFIX_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// The wider network of a client, for shares of what all clients have together: a /24 of IPv4, a
/// /48 of IPv6.
pub fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let mask = u32::MAX << (32 - IPV4_SITE_BITS);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - IPV6_SITE_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_counts_by_its_network_and_a_mapped_ipv4_by_itself() {
        for (address, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:ffff::9", "2001:db8:1:2::"),
            ("::1", "::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(network(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn a_site_is_a_24_of_ipv4_and_a_48_of_ipv6() {
        for (address, expected) in [
            ("192.0.2.77", "192.0.2.0"),
            ("::ffff:192.0.2.1", "192.0.2.0"),
            ("2001:db8:1:2:ffff::9", "2001:db8:1::"),
        ] {
            let expected: IpAddr = expected.parse().unwrap();
            assert_eq!(site(address.parse().unwrap()), expected, "{address}");
        }
    }
}
