//! Small captures made in memory: pcap, Ethernet, IPv4, TCP.

/// The server's port in every capture made here.
pub(crate) const SERVER_PORT: u16 = 8080;

const CLIENT: End = End { host: 1, port: 50_000 };
const SERVER: End = End { host: 2, port: SERVER_PORT };

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

#[derive(Clone, Copy)]
struct End {
    /// The last number of 10.0.0.x.
    host: u8,
    port: u16,
}

/// A connection in the making. Times are microseconds since the capture began.
pub(crate) struct Conversation {
    pcap: Vec<u8>,
    client: End,
    /// Bytes sent so far by the client and by the server.
    sent: [u32; 2],
    now: u64,
}

/// A pcap file's header: little-endian, microseconds, Ethernet.
fn header() -> Vec<u8> {
    [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 0xffff, 1].iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Conversation {
    /// The handshake, seen at the client: the answer is a millisecond away.
    pub(crate) fn start() -> Self {
        let mut conversation = Self { pcap: header(), client: CLIENT, sent: [0, 0], now: 0 };
        conversation.connect(CLIENT.port);
        conversation
    }

    fn connect(&mut self, port: u16) -> &mut Self {
        self.client.port = port;
        self.sent = [0, 0];
        self.segment(true, SYN, 0);
        self.sent[0] = 1;
        self.wait(1_000).segment(false, SYN | ACK, 0);
        self.sent[1] = 1;
        self.wait(20).segment(true, ACK, 0)
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, micros: u64) -> &mut Self {
        self.now += micros;
        self
    }

    /// The client sends.
    pub(crate) fn client(&mut self, len: u32) -> &mut Self {
        self.segment(true, PSH | ACK, len)
    }

    /// The server sends; without bytes, a pure ACK.
    pub(crate) fn server(&mut self, len: u32) -> &mut Self {
        self.segment(false, if len == 0 { ACK } else { PSH | ACK }, len)
    }

    /// Both close.
    fn close(&mut self) -> &mut Self {
        self.wait(50).segment(true, FIN | ACK, 0);
        self.sent[0] += 1;
        self.wait(1_000).segment(false, FIN | ACK, 0);
        self.sent[1] += 1;
        self.wait(20).segment(true, ACK, 0)
    }

    /// Closes; the whole capture.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        self.close();
        std::mem::take(&mut self.pcap)
    }

    fn segment(&mut self, from_client: bool, flags: u8, len: u32) -> &mut Self {
        let (from, to) = if from_client { (self.client, SERVER) } else { (SERVER, self.client) };
        let (mine, theirs) = if from_client { (0, 1) } else { (1, 0) };
        let ack = if flags & ACK == 0 { 0 } else { self.sent[theirs] };
        let frame = frame(from, to, flags, self.sent[mine], ack, len);
        self.sent[mine] += len;
        let size = u32::try_from(frame.len()).expect("a small frame");
        let seconds = 1_700_000_000 + u32::try_from(self.now / 1_000_000).expect("a short capture");
        let micros = u32::try_from(self.now % 1_000_000).expect("less than a second");
        for word in [seconds, micros, size, size] {
            self.pcap.extend(word.to_le_bytes());
        }
        self.pcap.extend(frame);
        self
    }
}

fn frame(from: End, to: End, flags: u8, seq: u32, ack: u32, len: u32) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([0x08, 0x00]);
    let total = u16::try_from(40 + len).expect("a small packet");
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.host, 10, 0, 0, to.host]);
    frame.extend(from.port.to_be_bytes());
    frame.extend(to.port.to_be_bytes());
    frame.extend(seq.to_be_bytes());
    frame.extend(ack.to_be_bytes());
    frame.extend([0x50, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
    frame.resize(frame.len() + len as usize, b'x');
    frame
}

/// Requests written in two pieces: the second waits 40 ms for the server's delayed ACK of the first.
pub(crate) fn write_write_read() -> Vec<u8> {
    let mut conversation = Conversation::start();
    for _ in 0..20 {
        conversation.wait(100).client(100);
        conversation.wait(41_000).server(0).wait(15).client(200);
        conversation.wait(1_300).server(300);
    }
    conversation.wait(40_000).client(0);
    conversation.end()
}

/// A capture in which nothing was recorded.
pub(crate) fn no_packets() -> Vec<u8> {
    header()
}

/// Datagrams alone.
pub(crate) fn datagrams() -> Vec<u8> {
    let mut pcap = healthy();
    let (mut at, frames) = (24, pcap.len());
    while at < frames {
        let size = u32::from_le_bytes(pcap[at + 8..at + 12].try_into().expect("four bytes"));
        let udp = at + 16 + 34;
        pcap[at + 16 + 23] = 17;
        let length = u16::try_from(size - 34).expect("a small packet");
        pcap[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
        at += 16 + size as usize;
    }
    pcap
}

/// Requests in one piece, answered as fast as the path allows.
pub(crate) fn healthy() -> Vec<u8> {
    let mut conversation = Conversation::start();
    for _ in 0..20 {
        conversation.wait(100).client(300);
        conversation.wait(1_100).server(300);
    }
    conversation.end()
}

/// `count` short connections one after the other, from port 20000 on.
pub(crate) fn connections(count: u16) -> Vec<u8> {
    let mut conversation = Conversation { pcap: header(), client: CLIENT, sent: [0, 0], now: 0 };
    for nth in 0..count {
        conversation.wait(500).connect(20_000 + nth);
        conversation.wait(100).client(300).wait(1_100).server(300).close();
    }
    conversation.pcap
}
