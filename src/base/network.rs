//! What counts as one client. Pure.

use std::net::{IpAddr, Ipv6Addr};

/// One IPv6 subscriber has a /64 or more to himself.
const IPV6_PREFIX_BITS: u32 = 64;

/// What an address stands for where clients are counted: itself, or its /64 for IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let mask = u128::MAX << (128 - IPV6_PREFIX_BITS);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_network_is_one_client_and_mapped_ipv4_is_ipv4() {
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
}
