//! The addresses of this machine's interfaces.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every address of every interface in this process's network namespace, as it is now.
pub(crate) fn addresses() -> io::Result<Vec<IpAddr>> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    #[expect(unsafe_code, reason = "neither std nor rustix lists interfaces")]
    // SAFETY: the pointer is ours to be written; on success it is given back below, once.
    let result = unsafe { libc::getifaddrs(&raw mut list) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut addresses = Vec::new();
    let mut next = list;
    while !next.is_null() {
        #[expect(unsafe_code, reason = "the list is a C one")]
        // SAFETY: every entry up to the null pointer is valid until the list is freed below.
        let entry = unsafe { &*next };
        addresses.extend(address(entry.ifa_addr));
        next = entry.ifa_next;
    }
    #[expect(unsafe_code, reason = "the list is a C one")]
    // SAFETY: it came from getifaddrs, is freed once, and nothing borrowed from it is left.
    unsafe {
        libc::freeifaddrs(list);
    }
    Ok(addresses)
}

/// The IP address in an entry of the list; other families have none.
fn address(socket: *const libc::sockaddr) -> Option<IpAddr> {
    if socket.is_null() {
        return None;
    }
    #[expect(unsafe_code, reason = "the list is a C one")]
    // SAFETY: a pointer in the list that is not null leads to an address that begins with its family.
    let family = unsafe { (*socket).sa_family };
    match i32::from(family) {
        libc::AF_INET => {
            #[expect(unsafe_code, reason = "the list is a C one")]
            // SAFETY: the family says that this is what it leads to; the C library aligned it for any.
            let found = unsafe { socket.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from_bits(u32::from_be(found.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            #[expect(unsafe_code, reason = "the list is a C one")]
            // SAFETY: as above.
            let found = unsafe { socket.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(found.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_loopback_is_among_this_machines_addresses() {
        let addresses = super::addresses().unwrap();
        assert!(addresses.contains(&std::net::Ipv4Addr::LOCALHOST.into()), "{addresses:?}");
    }
}
