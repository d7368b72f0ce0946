//! The one request to the kernel's routing socket that the lab needs everywhere.

use anyhow::{Context, Result, bail};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

/// Brings an interface of the calling thread's namespace up.
pub(crate) fn set_up(interface: &str, mtu: u32) -> Result<()> {
    let mut link = LinkMessage::default();
    link.header.flags = LinkFlags::Up;
    link.header.change_mask = LinkFlags::Up;
    link.attributes = vec![LinkAttribute::IfName(interface.to_owned()), LinkAttribute::Mtu(mtu)];
    request(RouteNetlinkMessage::SetLink(link))
}

/// Sends one request and waits for the kernel's answer.
pub(crate) fn request(message: RouteNetlinkMessage) -> Result<()> {
    request_with(message, 0)
}

/// The same for a request that makes something new.
pub(crate) fn create(message: RouteNetlinkMessage) -> Result<()> {
    request_with(message, NLM_F_CREATE)
}

fn request_with(message: RouteNetlinkMessage, flags: u16) -> Result<()> {
    // Protocol 0 of this family is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
    message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    send(&socket, &bytes, SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer[..length])
        .context("the kernel's answer cannot be read")?;
    match answer.payload {
        NetlinkPayload::Error(error) if error.code.is_some() => bail!(error.to_io()),
        _ => Ok(()),
    }
}
