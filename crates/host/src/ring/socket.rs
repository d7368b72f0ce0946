//! What a packet socket is asked for with calls that no crate wraps.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::count;
use crate::filter::Instruction;

/// Lets the kernel hand over only the packets that the program accepts.
#[allow(unsafe_code)]
pub(super) fn attach(socket: &OwnedFd, program: &[Instruction]) -> io::Result<()> {
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|Instruction { code, jt, jf, k }| libc::sock_filter { code: *code, jt: *jt, jf: *jf, k: *k })
        .collect();
    let program = libc::sock_fprog {
        len: filter.len().try_into().map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: filter.as_mut_ptr(),
    };
    let length = count(size_of::<libc::sock_fprog>())?;
    // SAFETY: `program` points to `len` instructions that live through the call; the kernel copies and verifies them.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&program).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sets a `SOL_PACKET` option. `T` is what the kernel expects for it.
#[allow(unsafe_code)]
pub(super) fn set_option<T>(socket: &OwnedFd, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = count(size_of::<T>())?;
    // SAFETY: the pointer is good for reading `length` bytes during the call, after which the kernel keeps
    // nothing of it.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, name, std::ptr::from_ref(value).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's counters, which start again at each look.
#[allow(unsafe_code)]
pub(super) fn get_statistics(socket: &OwnedFd) -> io::Result<libc::tpacket_stats> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = count(size_of::<libc::tpacket_stats>())?;
    // SAFETY: the kernel writes at most `length` bytes into `statistics`, two integers for which every bit
    // pattern is good.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            std::ptr::from_mut(&mut statistics).cast(),
            &mut length,
        )
    };
    if result == 0 { Ok(statistics) } else { Err(io::Error::last_os_error()) }
}

/// Binds to an interface, 0 for all, and returns its kind, `ARPHRD_…`. With protocol 0 nothing is received yet.
#[allow(unsafe_code)]
pub(super) fn bind(socket: &OwnedFd, index: u32, protocol: u16) -> io::Result<u16> {
    let mut address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index.try_into().map_err(|_| io::ErrorKind::InvalidInput)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut length = count(size_of::<libc::sockaddr_ll>())?;
    // SAFETY: the pointer is good for reading `length` bytes during the call.
    if unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel writes at most `length` bytes into `address`, integers for which every bit pattern is
    // good.
    let result = unsafe {
        libc::getsockname(socket.as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &mut length)
    };
    if result == 0 { Ok(address.sll_hatype) } else { Err(io::Error::last_os_error()) }
}

/// Makes the interface of this name, in the calling thread's network namespace, hand out packets as a wire has
/// them: with their checksums, and none above the MTU (segmentation offload needs checksum offload, so the kernel
/// switches both off). Needs `CAP_NET_ADMIN` there.
#[allow(unsafe_code)]
pub fn switch_offload_off(interface: &str) -> io::Result<()> {
    /// `struct ethtool_value` of `<linux/ethtool.h>`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    /// `ETHTOOL_STXCSUM` of `<linux/ethtool.h>`.
    const SET_TRANSMIT_CHECKSUM: u32 = 0x17;

    let socket =
        rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut name = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let mut value = Value { command: SET_TRANSMIT_CHECKSUM, data: 0 };
    let mut request = libc::ifreq {
        ifr_name: name,
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: std::ptr::from_mut(&mut value).cast() },
    };
    // SAFETY: SIOCETHTOOL takes an ifreq whose data points to what the command needs, here a `Value`. Both live
    // through the call, and the kernel keeps no pointer to them.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, std::ptr::from_mut(&mut request)) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
