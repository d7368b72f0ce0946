//! How calls lie in a pcapng file's blocks: docs/recording.md in numbers.

/// What our blocks begin with, version included. Block types for local use belong to nobody, so the type does not tell.
pub(crate) const MAGIC: [u8; 8] = *b"tcpwhy/1";

/// Bytes before a section's items: magic, section, bytes of an item, how many items.
pub(super) const HEADER: usize = 16;

/// Bytes that a block's items may have. A reader holds one block, and Wireshark passes over blocks of up to 16 MiB.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// The same of calls: as many are lost where a file is cut.
pub(super) const MOST_BYTES_OF_CALLS: usize = 8 * 1024;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Section {
    About = 1,
    Sockets = 2,
    Places = 3,
    Stacks = 4,
    Calls = 5,
    Holders = 6,
}

impl Section {
    pub(super) fn numbered(number: u16) -> Option<Self> {
        let all = [Self::About, Self::Sockets, Self::Places, Self::Stacks, Self::Calls, Self::Holders];
        all.into_iter().find(|section| *section as u16 == number)
    }
}

/// Codes of the section [`Section::About`], whose items are laid out as pcapng's options are.
pub(super) mod about {
    pub(in crate::calls) const PROGRAMS: u16 = 1;
    pub(in crate::calls) const LOST: u16 = 2;
    pub(in crate::calls) const INTERRUPTED: u16 = 3;
    pub(in crate::calls) const FIX: u16 = 4;
    pub(in crate::calls) const UNSEEN: u16 = 5;
    pub(in crate::calls) const RECORDER: u16 = 6;
    pub(in crate::calls) const NO_PACKETS: u16 = 7;
}

/// Bytes of a call.
pub(super) const CALL: usize = 72;
/// Bytes of a socket.
pub(super) const SOCKET: usize = 64;
/// Bytes of a place before its texts.
pub(super) const PLACE: usize = 12;
/// Bytes of a stack before its places.
pub(super) const STACK: usize = 8;

/// Bytes of a holder before its name.
pub(super) const HOLDER: usize = 48;

/// The bit of a place's flags that says it is a script's.
pub(super) const SCRIPT: u16 = 1;
/// The bit of a socket's flags that says `TCP_NODELAY` was on.
pub(super) const NODELAY: u8 = 1;
/// The bit of a holder's flags that says its socket is UDP's.
pub(super) const UDP: u8 = 1;

/// Bytes kept of a text. Names of C++ can be pages long.
pub(super) const LONGEST_TEXT: usize = 4096;
/// Bytes kept of a program's name; the kernel has 15.
pub(super) const LONGEST_NAME: usize = 64;
/// Places kept of a stack.
pub(super) const DEEPEST: usize = 256;
