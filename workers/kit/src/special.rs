//! What an address is for, by the registries of special addresses (RFC 6890 and the registries it began).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What nobody else may lead us to: it is reached only where the operator named the very address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// This machine's own, as its interfaces have it.
    Own,
    Loopback,
    Private,
    LinkLocal,
    /// Where a cloud tells a machine its secrets.
    Metadata,
    Multicast,
    /// For documents, measurements, old or future protocols: nobody's.
    Reserved,
}

impl Special {
    /// What an address is, if it is not just one of the public network; `own` are this machine's.
    #[must_use]
    pub fn of(address: IpAddr, own: &[IpAddr]) -> Option<Self> {
        let address = meant(address);
        if own.iter().any(|own| own.to_canonical() == address) {
            // The loopback's name says more.
            return Some(Self::by_range(address).filter(|special| *special == Self::Loopback).unwrap_or(Self::Own));
        }
        Self::by_range(address)
    }

    fn by_range(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "this machine's own",
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a cloud's metadata address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// The address that a connection ends at: where a translator (NAT64) or a relay (6to4) leads on to an IPv4 address that
/// it finds inside, or the kernel itself does, that one.
fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(address) = address.to_canonical() else { return address.to_canonical() };
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => lowest_v4(address).into(),
        [0x2002, high, low, ..] => Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into(),
        _ => address.into(),
    }
}

fn lowest_v4(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}

fn of_v4(address: Ipv4Addr) -> Option<Special> {
    if METADATA.contains(&address) {
        return Some(Special::Metadata);
    }
    let within = |(network, length, _): &&(Ipv4Addr, u32, Special)| {
        let mask = u32::MAX.checked_shl(32 - length).unwrap_or(0);
        address.to_bits() & mask == network.to_bits()
    };
    SPECIAL_V4.iter().find(within).map(|(_, _, special)| *special)
}

/// In IPv6 only one eighth is in public use, so what is not in it is special, known or not.
fn of_v6(address: Ipv6Addr) -> Option<Special> {
    let within = |network: [u16; 4], length: u32| {
        let [a, b, c, d] = network;
        let network = Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_bits();
        (address.to_bits() ^ network).leading_zeros() >= length
    };
    if address.is_loopback() {
        return Some(Special::Loopback);
    }
    if METADATA_V6.contains(&address) {
        return Some(Special::Metadata);
    }
    if within([0xff00, 0, 0, 0], 8) {
        return Some(Special::Multicast);
    }
    if within([0xfe80, 0, 0, 0], 10) {
        return Some(Special::LinkLocal);
    }
    // Unique local, and the site-local that it replaced.
    if within([0xfc00, 0, 0, 0], 7) || within([0xfec0, 0, 0, 0], 10) {
        return Some(Special::Private);
    }
    // Translators of one network alone: what they lead to, only that network knows.
    if within([0x64, 0xff9b, 1, 0], 48) {
        return Some(Special::Private);
    }
    // The first is for protocols (Teredo, measurements, ORCHID), the others are for documents.
    let reserved = within([0x2001, 0, 0, 0], 23) || within([0x2001, 0xdb8, 0, 0], 32) || within([0x3fff, 0, 0, 0], 20);
    // A tunnel's end (ISATAP) leads on to the IPv4 address inside, on networks that still have it.
    let isatap =
        matches!(address.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, ..]) && of_v4(lowest_v4(address)).is_some();
    (!within([0x2000, 0, 0, 0], 3) || reserved || isatap).then_some(Special::Reserved)
}

/// Public by its range, and still the inside of a cloud (Azure); then those that lie in special ranges anyway: most
/// clouds', Alibaba's, Oracle's.
const METADATA: [Ipv4Addr; 4] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(169, 254, 169, 254),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Amazon's and Google's.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];

const SPECIAL_V4: [(Ipv4Addr, u32, Special); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Special::Reserved),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Special::Private),
    // Between a provider and its customers.
    (Ipv4Addr::new(100, 64, 0, 0), 10, Special::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Special::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Special::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Special::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Special::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Special::Reserved),
    // The relays of 6to4, given up.
    (Ipv4Addr::new(192, 88, 99, 0), 24, Special::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Special::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Special::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Special::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Special::Reserved),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Special::Multicast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Special::Reserved),
];

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::Special;

    fn of(text: &str) -> Option<Special> {
        Special::of(text.parse().unwrap(), &[])
    }

    #[test]
    fn each_special_range_begins_and_ends_where_its_registry_says() {
        for (before, first, last, after) in [
            (None, "0.0.0.0", "0.255.255.255", Some("1.0.0.0")),
            (Some("9.255.255.255"), "10.0.0.0", "10.255.255.255", Some("11.0.0.0")),
            (Some("100.63.255.255"), "100.64.0.0", "100.127.255.255", Some("100.128.0.0")),
            (Some("126.255.255.255"), "127.0.0.0", "127.255.255.255", Some("128.0.0.0")),
            (Some("169.253.255.255"), "169.254.0.0", "169.254.255.255", Some("169.255.0.0")),
            (Some("172.15.255.255"), "172.16.0.0", "172.31.255.255", Some("172.32.0.0")),
            (Some("191.255.255.255"), "192.0.0.0", "192.0.0.255", Some("192.0.1.0")),
            (Some("192.0.1.255"), "192.0.2.0", "192.0.2.255", Some("192.0.3.0")),
            (Some("192.88.98.255"), "192.88.99.0", "192.88.99.255", Some("192.88.100.0")),
            (Some("192.167.255.255"), "192.168.0.0", "192.168.255.255", Some("192.169.0.0")),
            (Some("198.17.255.255"), "198.18.0.0", "198.19.255.255", Some("198.20.0.0")),
            (Some("198.51.99.255"), "198.51.100.0", "198.51.100.255", Some("198.51.101.0")),
            (Some("203.0.112.255"), "203.0.113.0", "203.0.113.255", Some("203.0.114.0")),
            (Some("223.255.255.255"), "224.0.0.0", "255.255.255.255", None),
            (None, "::", "::fffe:ffff:ffff", None),
            (Some("2000:ffff::"), "2001::", "2001:1ff:ffff::ffff", Some("2001:200::")),
            (Some("2001:db7::"), "2001:db8::", "2001:db8:ffff::ffff", Some("2001:db9::")),
            (Some("3ffe:ffff::"), "3fff::", "3fff:fff:ffff::", Some("3fff:1000::")),
            (Some("3fff:ffff::"), "4000::", "ffff:ffff::ffff", None),
            (None, "64:ff9b:1::", "64:ff9b:1:ffff::8.8.8.8", None),
            (None, "fc00::", "fdff:ffff::", None),
        ] {
            for public in [before, after].into_iter().flatten() {
                assert_eq!(of(public), None, "{public}");
            }
            assert!(of(first).is_some() && of(last).is_some(), "{first} {last}");
        }
        assert_eq!(of("8.8.8.8"), None);
        assert_eq!(of("2606:4700::1111"), None);
    }

    #[test]
    fn an_address_in_another_ones_clothes_is_what_it_carries() {
        for (carrier, special) in [
            ("::ffff:127.0.0.1", Some(Special::Loopback)),
            ("::ffff:10.0.0.1", Some(Special::Private)),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::127.0.0.1", Some(Special::Loopback)),
            ("64:ff9b::169.254.169.254", Some(Special::Metadata)),
            ("64:ff9b::8.8.8.8", None),
            ("2002:7f00:1::", Some(Special::Loopback)),
            ("2002:a00:1::1", Some(Special::Private)),
            ("2002:808:808::1", None),
            ("::127.0.0.1", Some(Special::Reserved)),
            ("::8.8.8.8", Some(Special::Reserved)),
            ("::ffff:0:8.8.8.8", Some(Special::Reserved)),
            ("2001:0:7f00:1::", Some(Special::Reserved)),
            ("2606:4700::5efe:10.0.0.1", Some(Special::Reserved)),
            ("2606:4700::200:5efe:10.0.0.1", Some(Special::Reserved)),
        ] {
            assert_eq!(of(carrier), special, "{carrier}");
        }
    }

    #[test]
    fn a_clouds_inside_is_none_of_a_tenants_business() {
        for address in
            ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"]
        {
            assert_eq!(of(address), Some(Special::Metadata), "{address}");
        }
        assert_eq!(of("168.63.129.17"), None);
    }

    #[test]
    fn this_machines_own_address_is_special_however_public_it_is() {
        let own: Vec<IpAddr> = vec!["8.8.8.8".parse().unwrap(), "2606:4700::1".parse().unwrap()];
        assert_eq!(Special::of("8.8.8.8".parse().unwrap(), &own), Some(Special::Own));
        assert_eq!(Special::of("::ffff:8.8.8.8".parse().unwrap(), &own), Some(Special::Own));
        assert_eq!(Special::of("2606:4700::1".parse().unwrap(), &own), Some(Special::Own));
        assert_eq!(Special::of("8.8.4.4".parse().unwrap(), &own), None);
    }

    proptest! {
        /// What std knows of addresses is never public here.
        #[test]
        fn nothing_that_std_calls_special_is_public(bits in any::<u32>(), wide in any::<u128>()) {
            let four = Ipv4Addr::from_bits(bits);
            if four.is_private() || four.is_loopback() || four.is_link_local() || four.is_multicast()
                || four.is_broadcast() || four.is_documentation() || four.is_unspecified()
            {
                prop_assert!(Special::of(four.into(), &[]).is_some());
            }
            let six = Ipv6Addr::from_bits(wide);
            if six.is_multicast() || six.is_unique_local() || six.is_unicast_link_local() {
                prop_assert!(Special::of(six.into(), &[]).is_some());
            }
        }

        #[test]
        fn what_carries_an_address_is_never_less_special(bits in any::<u32>(), interface in any::<u64>()) {
            let four = Ipv4Addr::from_bits(bits);
            let inner = Special::of(four.into(), &[]);
            let mapped = Special::of(four.to_ipv6_mapped().into(), &[]);
            let translated = Special::of(Ipv6Addr::from_bits(0x64_ff9b << 96 | u128::from(bits)).into(), &[]);
            let relayed = 0x2002 << 112 | u128::from(bits) << 80 | u128::from(interface);
            prop_assert_eq!(inner, mapped);
            prop_assert_eq!(inner, translated);
            prop_assert_eq!(inner, Special::of(Ipv6Addr::from_bits(relayed).into(), &[]));
        }
    }
}
