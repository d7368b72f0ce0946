//! One end of a link, as the emulator sees it: something IP packets come from and go to.

use std::io;
use std::os::fd::BorrowedFd;

/// One end of a link.
pub(crate) trait Device: Send {
    /// Is readable when a packet waits.
    fn fd(&self) -> BorrowedFd<'_>;

    /// The next packet that the host sent; `None` when none waits. Never blocks.
    fn receive(&mut self) -> io::Result<Option<Received<'_>>>;

    /// Hands the host an IP packet.
    fn send(&mut self, packet: &[u8]) -> io::Result<()>;

    /// How many packets of the host were lost before they could be received.
    fn lost(&mut self) -> io::Result<u64>;
}

/// What a host handed to its device in one go.
pub(crate) struct Received<'a> {
    /// As the host handed it over: a capture on this host shows it so.
    pub(crate) whole: &'a [u8],
    /// Where the device had to cut it, the packets that travel.
    pub(crate) pieces: Option<Pieces<'a>>,
}

/// What segmentation offload made of a large segment.
pub(crate) struct Pieces<'a> {
    /// The buffers the packets are in.
    pub(crate) buffers: &'a [Vec<u8>],
    /// Length of the packet in each buffer, in bytes.
    pub(crate) lengths: &'a [usize],
}

impl<'a> Received<'a> {
    /// The packets that travel.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let whole = self.pieces.is_none().then_some(self.whole);
        let (buffers, lengths): (&[Vec<u8>], &[usize]) =
            self.pieces.as_ref().map_or((&[], &[]), |pieces| (pieces.buffers, pieces.lengths));
        let cut = buffers.iter().zip(lengths).filter_map(|(buffer, &length)| buffer.get(..length));
        whole.into_iter().chain(cut)
    }
}
