//! Which addresses may be connected to. Pure: an address in, a verdict out.
//!
//! An IPv6 address that carries an IPv4 one (mapped, compatible, NAT64, 6to4) is judged by both.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressRefusal {
    /// 169.254.0.0/16 or `fe80::/10`; most clouds serve credentials there.
    LinkLocal,
    /// An address on which a cloud serves instance credentials.
    CloudMetadata,
    /// The machine itself, without `--allow-loopback`. The unspecified address reaches it too.
    Loopback,
    /// Multicast or broadcast: never one server.
    Multicast,
}

impl AddressRefusal {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LinkLocal => "link-local address",
            Self::CloudMetadata => "cloud metadata address",
            Self::Loopback => "loopback address (allowed in `dev` or with --allow-loopback)",
            Self::Multicast => "multicast or broadcast address",
        }
    }
}

impl fmt::Display for AddressRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for AddressRefusal {}

/// Alibaba's and Oracle's metadata services, outside of the link-local range.
const METADATA_V4: [Ipv4Addr; 2] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// EC2's IMDS and time service, ECS' and EKS' credential endpoints (`fd00:ec2::/32`), and Google's.
fn is_metadata_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    segments[..2] == [0xfd00, 0x0ec2] || segments == [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
}

/// Judges one address, however it was spelled and whatever name led to it.
pub fn check_address(address: IpAddr, allow_loopback: bool) -> Result<(), AddressRefusal> {
    match address {
        IpAddr::V4(v4) => check_v4(v4, allow_loopback),
        IpAddr::V6(v6) => check_v6(v6, allow_loopback),
    }
}

fn check_v4(address: Ipv4Addr, allow_loopback: bool) -> Result<(), AddressRefusal> {
    if address.is_link_local() {
        return Err(AddressRefusal::LinkLocal);
    }
    if METADATA_V4.contains(&address) {
        return Err(AddressRefusal::CloudMetadata);
    }
    if address.is_multicast() || address.is_broadcast() {
        return Err(AddressRefusal::Multicast);
    }
    // All of 0.0.0.0/8 is "this host on this network"; Linux connects 0.0.0.0 to itself.
    let this_host = address.octets()[0] == 0;
    if (address.is_loopback() || this_host) && !allow_loopback {
        return Err(AddressRefusal::Loopback);
    }
    Ok(())
}

fn check_v6(address: Ipv6Addr, allow_loopback: bool) -> Result<(), AddressRefusal> {
    if address.is_loopback() || address.is_unspecified() {
        return if allow_loopback {
            Ok(())
        } else {
            Err(AddressRefusal::Loopback)
        };
    }
    if address.is_unicast_link_local() {
        return Err(AddressRefusal::LinkLocal);
    }
    if is_metadata_v6(address) {
        return Err(AddressRefusal::CloudMetadata);
    }
    if address.is_multicast() {
        return Err(AddressRefusal::Multicast);
    }
    embedded_v4(address).map_or(Ok(()), |v4| check_v4(v4, allow_loopback))
}

/// The IPv4 address that packets to `address` may reach through a translator.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let join = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match s {
        // ::ffff:a.b.c.d (mapped), ::a.b.c.d (compatible), ::ffff:0:a.b.c.d (translated, RFC 2765),
        // 64:ff9b::/96 and the local-use 64:ff9b:1::/48 (RFC 6052, RFC 8215), 2002:a.b.c.d::/48 (6to4)
        [0, 0, 0, 0, 0, 0xffff | 0, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => join(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn verdict(text: &str, allow_loopback: bool) -> Result<(), AddressRefusal> {
        check_address(text.parse().unwrap(), allow_loopback)
    }

    #[test]
    fn metadata_and_link_local_are_refused_in_every_wrapping() {
        for text in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "169.254.0.1",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fe80::1",
            "febf::1",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::ffff:100.100.100.200",
            "255.255.255.255",
            "224.0.0.1",
            "ff02::1",
        ] {
            assert!(verdict(text, true).is_err(), "{text} was let through");
        }
    }

    #[test]
    fn loopback_needs_leave_and_the_unspecified_address_is_loopback() {
        for text in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
        ] {
            assert_eq!(
                verdict(text, false),
                Err(AddressRefusal::Loopback),
                "{text}"
            );
            assert_eq!(verdict(text, true), Ok(()), "{text}");
        }
    }

    #[test]
    fn ordinary_and_cluster_addresses_pass() {
        for text in [
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "8.8.8.8",
            "fd00::1",
            "2606:4700::1111",
        ] {
            assert_eq!(verdict(text, false), Ok(()), "{text}");
        }
    }
}
