//! libpcap's own compiler, where the library is installed.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::slice;

use libloading::Library;

use super::lower::NETWORK;
use super::{Error, Instruction};

/// What the library is called: by its version, and on Debian and its kin.
const LIBRARIES: [&str; 2] = ["libpcap.so.1", "libpcap.so.0.8"];
/// `DLT_RAW`: packets begin with the network header.
const RAW: c_int = 12;
/// Bytes that an accepting program returns.
const SNAPLEN: c_int = 0x4_0000;
/// `PCAP_NETMASK_UNKNOWN`: `ip broadcast` is an error.
const NO_NETMASK: c_uint = u32::MAX;

/// `struct bpf_program` of `<pcap/bpf.h>`.
#[repr(C)]
struct Program {
    len: c_uint,
    instructions: *mut libc::sock_filter,
}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
type Compile = unsafe extern "C" fn(*mut c_void, *mut Program, *const c_char, c_int, c_uint) -> c_int;
type GetError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type FreeCode = unsafe extern "C" fn(*mut Program);
type Close = unsafe extern "C" fn(*mut c_void);

/// The program for an expression; `None` where there is no library.
#[allow(unsafe_code)]
pub(super) fn compile(expression: &str) -> Option<Result<Vec<Instruction>, Error>> {
    // SAFETY: libpcap's initialisers only set up its own state.
    let library = LIBRARIES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
    let Ok(text) = CString::new(expression) else {
        return Some(Err(Error("a NUL in the expression".to_owned())));
    };
    // SAFETY: the types are those of the functions' declarations in `<pcap/pcap.h>`, the same since version 0.4.
    let (open, compile, get_error, free, close) = unsafe {
        (
            library.get::<OpenDead>(b"pcap_open_dead\0").ok()?,
            library.get::<Compile>(b"pcap_compile\0").ok()?,
            library.get::<GetError>(b"pcap_geterr\0").ok()?,
            library.get::<FreeCode>(b"pcap_freecode\0").ok()?,
            library.get::<Close>(b"pcap_close\0").ok()?,
        )
    };
    // SAFETY: a handle that is not null goes into all other calls, and is closed last. After a successful
    // `pcap_compile`, `instructions` points to `len` instructions, laid out as the kernel's, until `pcap_freecode`;
    // they are copied before. The text of `pcap_geterr` lives as long as the handle, and is copied.
    let compiled = unsafe {
        let handle = open(RAW, SNAPLEN);
        if handle.is_null() {
            return None;
        }
        let mut program = Program { len: 0, instructions: std::ptr::null_mut() };
        let compiled = if compile(handle, &mut program, text.as_ptr(), 1, NO_NETMASK) == 0 {
            let instructions = slice::from_raw_parts(program.instructions, program.len as usize);
            let copied = instructions.iter().map(|one| from_network_header(*one)).collect();
            free(&mut program);
            Ok(copied)
        } else {
            Err(Error(CStr::from_ptr(get_error(handle)).to_string_lossy().into_owned()))
        };
        close(handle);
        compiled
    };
    Some(compiled)
}

/// The instruction with its offset into the packet, if it has one, counted from the network header.
fn from_network_header(instruction: libc::sock_filter) -> Instruction {
    let libc::sock_filter { code, jt, jf, k } = instruction;
    /// Class and mode: loads from an offset, from an offset behind X, and an IPv4 header's length to X.
    const FROM_PACKET: [u16; 3] = [0x20, 0x40, 0xa1];
    /// The bits that tell a load's size.
    const SIZE: u16 = 0x18;
    // X gets the header's length from a byte: the size is the only one there.
    let class_and_mode = if code == 0xb1 { 0xa1 } else { code & !SIZE };
    let moved = FROM_PACKET.contains(&class_and_mode) && k < NETWORK;
    Instruction { code, jt, jf, k: if moved { k.wrapping_add(NETWORK) } else { k } }
}
