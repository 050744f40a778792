//! A network of IP addresses, as operators write it: one address, or the first address and the
//! number of bits that all have in common. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Bits before the IPv4 address in an IPv6 address that maps one (`::ffff:10.0.0.1`).
const MAPPED_BITS: u32 = 96;

/// Addresses that begin with the same bits. IPv4 and IPv6 never mix: an IPv4 address that is mapped
/// into IPv6 counts as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    bits: u32,
}

/// Why a text names no network of which a client could be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadNetwork {
    #[error("is no IP address and no network")]
    Unreadable,
    #[error("is a name, and connections come from addresses")]
    Name,
    #[error("has a port, and a connection's port changes each time")]
    Port(IpAddr),
    #[error("has brackets, which an address has beside a port")]
    Brackets(IpAddr),
    #[error("has a zone after the %, and the address of a connection has none")]
    Zone,
    #[error("has a mask in place of a number of bits")]
    Mask,
    #[error("has more bits than an address of its kind, {0}")]
    Bits(u32),
    #[error("is an address within a network, and not the network's first")]
    HostBits { network: Network, address: IpAddr },
    #[error("is an address from which no connection comes")]
    NoPeer,
}

impl BadNetwork {
    /// What to write instead.
    #[must_use]
    pub fn cure(&self) -> String {
        const EXAMPLES: &str = "addresses and networks such as 127.0.0.1,10.0.0.0/8,fd00::/8";
        match self {
            Self::Name => "give the address that the name stands for, or its network; \
                           a container's address changes, its network does not"
                .to_owned(),
            Self::Brackets(address) => format!("give {address} without brackets"),
            Self::Port(address) => format!("give {address} alone"),
            Self::Zone => "give the address without % and what is after it".to_owned(),
            Self::Mask => "write the number of its one bits: 10.0.0.0/8 for 255.0.0.0".to_owned(),
            Self::Bits(most) => format!("give at most /{most}"),
            Self::HostBits { network, address } => {
                format!("give {network} for the network, or {address} for the address alone")
            }
            Self::NoPeer => {
                format!("give {EXAMPLES}; all of IPv4 is 0.0.0.0/0, and all of IPv6 is ::/0")
            }
            Self::Unreadable => format!("give {EXAMPLES}"),
        }
    }
}

impl Network {
    /// Whether the address is one of the network's.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && begin(address, self.bits) == self.first
    }

    /// Whether the address is in one of these networks.
    #[must_use]
    pub fn any_contains(networks: &[Self], address: IpAddr) -> bool {
        networks.iter().any(|network| network.contains(address))
    }

    /// Whether every address of its kind is in it.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.bits == 0
    }

    fn new(address: IpAddr, bits: u32) -> Result<Self, BadNetwork> {
        let (address, bits) = match (address, address.to_canonical()) {
            (IpAddr::V6(_), v4 @ IpAddr::V4(_)) if bits >= MAPPED_BITS => (v4, bits - MAPPED_BITS),
            _ => (address, bits),
        };
        let network = Self {
            first: begin(address, bits),
            bits,
        };
        if network.first != address {
            return Err(BadNetwork::HostBits { network, address });
        }
        let is_whole = bits == width(address);
        if address.is_multicast() || is_whole && is_of_nobody(address) {
            return Err(BadNetwork::NoPeer);
        }
        Ok(network)
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(misread(address));
        };
        let most = width(address);
        let bits = match bits {
            None => most,
            Some(mask) if mask.parse::<IpAddr>().is_ok() => return Err(BadNetwork::Mask),
            Some(bits) => {
                let plain = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
                let bits = bits
                    .parse()
                    .ok()
                    .filter(|_| plain)
                    .ok_or(BadNetwork::Unreadable)?;
                if bits > most {
                    return Err(BadNetwork::Bits(most));
                }
                bits
            }
        };
        Self::new(address, bits)
    }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        let first = address.to_canonical();
        Self {
            first,
            bits: width(first),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        match self.bits == width(self.first) {
            true => Ok(()),
            false => write!(f, "/{}", self.bits),
        }
    }
}

/// Why a text is no address.
fn misread(text: &str) -> BadNetwork {
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Some(Ok(address)) = bare.map(str::parse::<Ipv6Addr>) {
        return BadNetwork::Brackets(address.into());
    }
    if let Ok(socket) = text.parse::<std::net::SocketAddr>() {
        return BadNetwork::Port(socket.ip());
    }
    if text
        .split_once('%')
        .is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok())
    {
        return BadNetwork::Zone;
    }
    let named = |letter: char| letter.is_alphanumeric() || "-._".contains(letter);
    let is_name = text.chars().any(char::is_alphabetic) && text.chars().all(named);
    match bare {
        None if is_name => BadNetwork::Name,
        _ => BadNetwork::Unreadable,
    }
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first bits of an address, and zeros.
fn begin(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

/// Whether no client can have this address alone.
fn is_of_nobody(address: IpAddr) -> bool {
    address.is_unspecified() || address == IpAddr::V4(Ipv4Addr::BROADCAST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|bad| panic!("{text}: {bad}"))
    }

    #[test]
    fn a_network_has_one_spelling_and_knows_its_addresses() {
        for (text, shown, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.0/8", "127.0.0.0/8", "127.255.0.9", "128.0.0.1"),
            ("10.1.0.0/16", "10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("172.16.0.0/12", "172.16.0.0/12", "172.31.255.1", "172.32.0.0"),
            ("192.0.2.7/32", "192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("192.0.2.6/31", "192.0.2.6/31", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("::1", "::1", "::1", "::2"),
            ("0:0:0:0:0:0:0:1", "::1", "::1", "127.0.0.1"),
            ("fd00::/8", "fd00::/8", "fdff::1", "fe00::1"),
            ("FD00::/8", "fd00::/8", "fd12::1", "fc00::1"),
            ("2001:db8::/127", "2001:db8::/127", "2001:db8::1", "2001:db8::2"),
            ("2001:db8::5/128", "2001:db8::5", "2001:db8::5", "2001:db8::4"),
            ("::/0", "::/0", "2001:db8::1", "10.0.0.1"),
            ("::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8", "10.9.9.9", "11.0.0.0"),
            ("::ffff:a00:1", "10.0.0.1", "10.0.0.1", "::a00:1"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0", "1.2.3.4", "::1"),
        ] {
            let parsed = network(text);
            assert_eq!(parsed.to_string(), shown, "{text}");
            assert_eq!(network(shown), parsed, "{shown}");
            assert!(parsed.contains(inside.parse().unwrap()), "{inside} in {text}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{outside} not in {text}");
        }
    }

    #[test]
    fn what_no_connection_can_come_from_is_refused_with_its_reason_and_cure() {
        for (text, problem, cure) in [
            ("localhost", "is a name", "its network"),
            ("proxy.internal", "is a name", "its network"),
            ("private_ranges", "is a name", "its network"),
            ("10.0.0.5/8", "not the network's first", "give 10.0.0.0/8 for"),
            ("fd00::1/8", "not the network's first", "or fd00::1 for the address"),
            ("::ffff:10.0.0.5/104", "not the network's first", "give 10.0.0.0/8 for"),
            ("127.0.0.1:8080", "has a port", "give 127.0.0.1 alone"),
            ("[::1]:80", "has a port", "give ::1 alone"),
            ("fe80::1%eth0", "has a zone", "without %"),
            ("10.0.0.0/255.0.0.0", "has a mask", "10.0.0.0/8"),
            ("10.0.0.0/33", "more bits", "/32"),
            ("::/129", "more bits", "/128"),
            ("0.0.0.0", "no connection comes", "0.0.0.0/0"),
            ("::", "no connection comes", "::/0"),
            ("255.255.255.255", "no connection comes", "10.0.0.0/8"),
            ("224.0.0.0/4", "no connection comes", "10.0.0.0/8"),
            ("ff02::1", "no connection comes", "fd00::/8"),
            ("10.0.0.*", "is no IP address", "10.0.0.0/8"),
            ("10.0.0.1-10.0.0.9", "is no IP address", "10.0.0.0/8"),
            ("10.0.0/8", "is no IP address", "10.0.0.0/8"),
            ("010.0.0.1", "is no IP address", "10.0.0.0/8"),
            ("10.0.0.0/", "is no IP address", "10.0.0.0/8"),
            ("10.0.0.0/+8", "is no IP address", "10.0.0.0/8"),
            ("http://10.0.0.1", "is no IP address", "10.0.0.0/8"),
            ("[::1]", "has brackets", "give ::1 without"),
            ("[fd00::]/8", "has brackets", "give fd00:: without"),
            ("[10.0.0.1]", "is no IP address", "10.0.0.0/8"),
            ("", "is no IP address", "10.0.0.0/8"),
        ] {
            let bad = text.parse::<Network>().unwrap_err();
            assert!(bad.to_string().contains(problem), "{text}: {bad}");
            assert!(bad.cure().contains(cure), "{text}: {}", bad.cure());
        }
    }

    proptest! {
        #[test]
        fn an_address_is_in_each_network_that_begins_as_it_does(
            address in any::<IpAddr>(), bits in 0_u32..=128, other in any::<IpAddr>(),
        ) {
            let address = address.to_canonical();
            let bits = bits.min(width(address));
            let network = Network { first: begin(address, bits), bits };
            prop_assert!(network.contains(address));
            let own = Network::from(address);
            let others = Network::from(other);
            prop_assert_eq!(own.contains(other), own == others);
        }
    }
}
