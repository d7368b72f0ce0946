//! How calls lie in the memory that the watched processes share with `tcpwhy run`.
//!
//! The first [`CHUNK`] bytes are a header of 64-bit words; then come chunks. A chunk belongs to one thread: four 32-bit
//! words (process, thread, bytes used behind this header, 0), the program's name ([`NAME`] bytes, padded with zeros), then
//! records, each a multiple of eight bytes. A record begins with a word that has its [`Record`] in the low byte, what else
//! fits in there, and its length in bytes in the upper half. Everything is in the machine's byte order.

/// First word of the header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tcpwhyc1");
/// Bytes of a chunk, and of the header.
pub const CHUNK: usize = 16 * 1024;
/// Bytes at a chunk's beginning that are no records.
pub const CHUNK_HEADER: usize = 32;
/// Bytes of a chunk's header that are the name of its process's program, behind four 32-bit words.
pub const NAME: usize = 16;

/// Where each word of the header is.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Chunks given out; may exceed what there is room for.
    pub const CHUNKS: usize = 1;
    /// Calls not recorded for want of room.
    pub const LOST: usize = 2;
    /// Calls not recorded because they came from a signal handler that interrupted the recorder.
    pub const INTERRUPTED: usize = 3;
    /// Stacks numbered so far.
    pub const STACKS: usize = 4;
    /// Modules numbered so far.
    pub const MODULES: usize = 5;
    /// Programs that attached: one a process, and one more for each that it executed.
    pub const PROGRAMS: usize = 6;
    /// Stacks of scripts numbered so far.
    pub const SCRIPTS: usize = 7;
    /// Functions of scripts numbered so far.
    pub const CODES: usize = 8;
    /// Words that the header has.
    pub const WORDS: usize = 9;
}

/// What a record is. The words that follow its first one:
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Record {
    /// start (ns since the epoch), took (ns), socket's cookie, bytes asked for, result (negative: an error number),
    /// descriptor and number of the stack (0: none) in its upper half, flags and number of the script's stack (0: none) in
    /// their upper half. The second byte of the first word is the `Kind`.
    Call = 1,
    /// cookie, family of local address and port (network order) in bits 16 to 31, address (two words), the same three of
    /// the peer, largest segment that is sent, bytes sent so far. The second byte of the first word is `TCP_NODELAY`.
    Socket = 2,
    /// number, then a word a frame, innermost first: module in the upper 16 bits, and offset in it.
    Stack = 3,
    /// number, then the file's path, padded with zeros.
    Module = 4,
    /// number, then a word a frame of a script, innermost first: number of its function (0: none) in the upper half, and
    /// line (0: none).
    Script = 5,
    /// number, then the name of the file that a script's function is in, a zero, and its own, padded with zeros; in UTF-8.
    Code = 6,
}
