//! One TCP segment of a generated capture, and its bytes on an Ethernet wire.

/// FIN, bit for bit as in the header (RFC 9293 section 3.1).
pub(crate) const FIN: u8 = 0x01;
/// SYN.
pub(crate) const SYN: u8 = 0x02;
/// PSH.
pub(crate) const PSH: u8 = 0x08;
/// ACK.
pub(crate) const ACK: u8 = 0x10;

/// Payload bytes of a full segment: an MTU of 1500 less 20 (IPv4), 20 (TCP) and 12 (timestamps).
pub(crate) const FULL: u16 = 1448;

/// The largest frame header: Ethernet 14, IPv4 20, TCP 60.
pub(crate) const MAX_HEADER: usize = 94;

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// IPv4 address.
    pub(crate) ip: [u8; 4],
    /// TCP port.
    pub(crate) port: u16,
}

/// One segment, with everything that the wire needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// When it passes the capture point, in µs from the capture's start.
    pub(crate) time_us: u64,
    /// Sender.
    pub(crate) from: End,
    /// Receiver.
    pub(crate) to: End,
    /// Sequence number.
    pub(crate) seq: u32,
    /// Acknowledgment number.
    pub(crate) ack: u32,
    /// TCP flags.
    pub(crate) flags: u8,
    /// Payload bytes.
    pub(crate) payload: u16,
    /// Timestamp value and echo reply (RFC 7323).
    pub(crate) timestamps: (u32, u32),
    /// A selective acknowledgment (RFC 2018).
    pub(crate) sack: Option<(u32, u32)>,
}

/// The window field; with [`WINDOW_SCALE`] 256 KB, more than any generated sender has in flight.
const WINDOW: u16 = 2048;
const WINDOW_SCALE: u8 = 7;
const MSS: u16 = 1460;

impl Segment {
    /// Writes the headers into `frame` and says how long they are; the payload that follows is zeros.
    pub(crate) fn header(&self, frame: &mut [u8; MAX_HEADER]) -> usize {
        let options = self.options(&mut frame[54..]);
        let tcp_len = 20 + options;
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00]);
        self.ipv4(&mut frame[14..34], tcp_len);
        self.tcp(&mut frame[34..34 + tcp_len]);
        34 + tcp_len
    }

    fn ipv4(&self, header: &mut [u8], tcp_len: usize) {
        let total = (20 + tcp_len + usize::from(self.payload)) as u16;
        header[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[12..16].copy_from_slice(&self.from.ip);
        header[16..20].copy_from_slice(&self.to.ip);
        let sum = checksum(0, header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }

    fn tcp(&self, header: &mut [u8]) {
        let length = header.len();
        header[..2].copy_from_slice(&self.from.port.to_be_bytes());
        header[2..4].copy_from_slice(&self.to.port.to_be_bytes());
        header[4..8].copy_from_slice(&self.seq.to_be_bytes());
        header[8..12].copy_from_slice(&self.ack.to_be_bytes());
        header[12] = ((length / 4) << 4) as u8;
        header[13] = self.flags;
        header[14..16].copy_from_slice(&WINDOW.to_be_bytes());
        header[16..20].fill(0);
        // The pseudo-header of RFC 9293 section 3.1; a payload of zeros adds nothing to the sum.
        let pseudo = words(&self.from.ip) + words(&self.to.ip) + 6 + length as u32 + u32::from(self.payload);
        let sum = checksum(pseudo, header);
        header[16..18].copy_from_slice(&sum.to_be_bytes());
    }

    /// Writes the options as Linux lays them out and returns their length.
    fn options(&self, out: &mut [u8]) -> usize {
        let (value, echo) = (self.timestamps.0.to_be_bytes(), self.timestamps.1.to_be_bytes());
        if self.flags & SYN != 0 {
            out[..4].copy_from_slice(&[2, 4, (MSS >> 8) as u8, MSS as u8]);
            out[4..8].copy_from_slice(&[4, 2, 8, 10]);
            out[8..12].copy_from_slice(&value);
            out[12..16].copy_from_slice(&echo);
            out[16..20].copy_from_slice(&[1, 3, 3, WINDOW_SCALE]);
            return 20;
        }
        out[..4].copy_from_slice(&[1, 1, 8, 10]);
        out[4..8].copy_from_slice(&value);
        out[8..12].copy_from_slice(&echo);
        let Some((left, right)) = self.sack else { return 12 };
        out[12..16].copy_from_slice(&[1, 1, 5, 10]);
        out[16..20].copy_from_slice(&left.to_be_bytes());
        out[20..24].copy_from_slice(&right.to_be_bytes());
        24
    }
}

/// The 16-bit words of `bytes`, added up.
fn words(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum()
}

/// The Internet checksum (RFC 1071) of `bytes`, begun with `sum`.
fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    let mut sum = sum + words(bytes);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
