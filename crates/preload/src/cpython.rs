//! How `CPython` keeps the frames of a thread, and what is read of them.
//!
//! A thread's frames do not change while it is in a call of the C library, with the interpreter's lock or without it, and
//! each holds its code object alive. `CPython` relies on that itself: `sys._current_frames()` walks the frames of threads
//! that are blocked in a call. So the thread itself may read them then, as long as its state is there
//! ([`super::python`] sees to that).
//!
//! The offsets are those of the headers `cpython/pystate.h`, `frameobject.h` (to 3.10), `internal/pycore_frame.h` (from
//! 3.11), `code.h` and `unicodeobject.h` of 64-bit builds, the same with and without `Py_DEBUG`. A minor version keeps them
//! from its first final release on; free-threaded builds, which have others, are told by their version.

use core::ffi::CStr;

/// `ob_type` of every object.
const TYPE: usize = 8;
/// `ob_size` of code objects from 3.11 on: instructions, of two bytes each.
const INSTRUCTIONS: usize = 16;
/// `tp_flags` of a type, and its bit for `str` and what is derived from it.
const TYPE_FLAGS: usize = 168;
const IS_TEXT: usize = 1 << 28;
/// `length` and `state` of a `str`, and what the state's bits are.
const LENGTH: usize = 16;
const STATE: usize = 32;
const COMPACT: u32 = 0x20;
const ASCII: u32 = 0x40;
const KIND: u32 = 0x1c;
/// `owner` of a frame that stands for C code that called the interpreter.
const OF_C: u8 = 3;

/// Where a version has what; bytes from the beginning of what holds it.
pub(crate) struct Layout {
    minor: u8,
    /// Followed from the thread's state, one after the other, they lead to the innermost frame.
    innermost: &'static [usize],
    /// Of a frame: the one that called it, its code object, and where in that it is.
    caller: usize,
    code: usize,
    position: usize,
    unit: Unit,
    /// Of a frame, where there are frames of C: whose it is.
    owner: Option<usize>,
    /// Of a code object: the line it begins with, its file and its name.
    first_line: usize,
    file: usize,
    name: usize,
    /// Of a `str`: its characters if they are ASCII, else.
    ascii: usize,
    wide: usize,
}

/// What a frame's position is.
#[derive(Clone, Copy)]
enum Unit {
    /// An index (`int`) of so many bytes each.
    Index(i32),
    /// An address; instructions begin so far behind the code object.
    Address(usize),
}

const UNTIL_3_10: Layout = Layout {
    minor: 0,
    innermost: &[24],
    caller: 24,
    code: 32,
    position: 104,
    unit: Unit::Index(1),
    owner: None,
    first_line: 40,
    file: 104,
    name: 112,
    ascii: 48,
    wide: 72,
};

const SINCE_3_12: Layout = Layout {
    minor: 0,
    innermost: &[],
    caller: 8,
    code: 0,
    position: 56,
    unit: Unit::Address(0),
    owner: Some(70),
    first_line: 68,
    file: 112,
    name: 128,
    ascii: 40,
    wide: 56,
};

static LAYOUTS: [Layout; 6] = [
    Layout { minor: 8, ..UNTIL_3_10 },
    Layout { minor: 9, ..UNTIL_3_10 },
    Layout { minor: 10, position: 96, unit: Unit::Index(2), ..UNTIL_3_10 },
    Layout {
        minor: 11,
        innermost: &[56, 8],
        caller: 48,
        code: 32,
        position: 56,
        unit: Unit::Address(184),
        owner: None,
        first_line: 72,
        file: 112,
        name: 128,
        ascii: 48,
        wide: 72,
    },
    Layout { minor: 12, innermost: &[56, 0], unit: Unit::Address(192), ..SINCE_3_12 },
    Layout { minor: 13, innermost: &[72], unit: Unit::Address(200), ..SINCE_3_12 },
];

impl Layout {
    /// That of a version as `Py_GetVersion` states it: `3.11.2 (main, …) [GCC …]`. Anything between the number and the
    /// bracket (`rc1`, `+`, `experimental free-threading build`) may mean a layout of its own.
    pub(crate) fn of(version: &CStr) -> Option<&'static Self> {
        let rest = version.to_bytes().strip_prefix(b"3.")?;
        let (minor, rest) = number(rest)?;
        let (_, rest) = number(rest.strip_prefix(b".")?)?;
        if !rest.starts_with(b" (") {
            return None;
        }
        LAYOUTS.iter().find(|layout| layout.minor == minor)
    }
}

fn number(text: &[u8]) -> Option<(u8, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    Some((core::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

/// The word at an offset of an object.
///
/// # Safety
/// The object is alive and has a field of that type there.
#[inline(always)]
unsafe fn field<T: Copy>(object: usize, offset: usize) -> T {
    // SAFETY: the caller's promise. What the interpreter keeps is aligned.
    unsafe { *((object + offset) as *const T) }
}

/// A code object, and where in it a frame is, as the frame states it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    code: usize,
    position: usize,
    layout: &'static Layout,
}

impl Place {
    /// Tells it from other places, also from one in a code object that had the same address before.
    #[inline(always)]
    pub(crate) fn key(self) -> u64 {
        // SAFETY: a code object that a frame of this thread holds.
        let (line, file) = unsafe {
            (field::<i32>(self.code, self.layout.first_line), field::<usize>(self.code, self.layout.file))
        };
        mix(mix(mix(self.code as u64, file), line as usize), self.position)
    }

    pub(crate) fn code(self) -> usize {
        self.code
    }

    /// Bytes from the first instruction on; None where the frame is at none of its code's.
    pub(crate) fn offset(self) -> Option<i32> {
        match self.layout.unit {
            Unit::Index(bytes) => (self.position as i32).checked_mul(bytes),
            Unit::Address(begin) => {
                // SAFETY: as above.
                let instructions = unsafe { field::<usize>(self.code, INSTRUCTIONS) };
                let offset = self.position.checked_sub(self.code + begin)?;
                (offset / 2 < instructions).then_some(offset as i32)
            }
        }
    }

    /// Its file's name into `text`, a zero, and its function's.
    pub(crate) fn write_names(self, text: &mut Text) -> Option<()> {
        // SAFETY: as above; the code object holds both, and they are `str` if their type says so.
        unsafe {
            text.append(field(self.code, self.layout.file), self.layout)?;
            text.push(&[0])?;
            text.append(field(self.code, self.layout.name), self.layout)
        }
    }
}

/// Spreads what tells things apart over all bits.
#[inline(always)]
pub(crate) fn mix(seed: u64, word: usize) -> u64 {
    let product = (seed.rotate_left(23) ^ word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 32
}

/// The frames of a thread, innermost first.
pub(crate) struct Frames {
    frame: usize,
    layout: &'static Layout,
    /// `PyCode_Type`.
    code_type: usize,
}

impl Frames {
    /// # Safety
    /// `thread` is the state (`PyThreadState`) of the calling thread, laid out so; `code_type` is `PyCode_Type`.
    #[inline(always)]
    pub(crate) unsafe fn of(thread: usize, layout: &'static Layout, code_type: usize) -> Self {
        let mut frame = thread;
        for offset in layout.innermost {
            if frame != 0 {
                // SAFETY: the caller's promise, and so on from pointer to pointer.
                frame = unsafe { field(frame, *offset) };
            }
        }
        Self { frame, layout, code_type }
    }
}

impl Iterator for Frames {
    type Item = Place;

    #[inline(always)]
    fn next(&mut self) -> Option<Place> {
        while self.frame != 0 && self.frame.is_multiple_of(align_of::<usize>()) {
            let (frame, layout) = (self.frame, self.layout);
            // SAFETY: a frame of this thread, which it is not leaving now; so is the one that it leads to.
            unsafe {
                self.frame = field(frame, layout.caller);
                if layout.owner.is_some_and(|owner| field::<u8>(frame, owner) == OF_C) {
                    continue;
                }
                let code = field::<usize>(frame, layout.code);
                if code == 0 || field::<usize>(code, TYPE) != self.code_type {
                    self.frame = 0;
                    return None;
                }
                let position = match layout.unit {
                    Unit::Index(_) => field::<i32>(frame, layout.position) as usize,
                    Unit::Address(_) => field::<usize>(frame, layout.position),
                };
                return Some(Place { code, position, layout });
            }
        }
        None
    }
}

/// Bytes that the names of a code object may take.
const LONGEST: usize = 2048;

/// Text that grows in place.
pub(crate) struct Text {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; LONGEST], len: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, more: &[u8]) -> Option<()> {
        self.bytes.get_mut(self.len..self.len + more.len())?.copy_from_slice(more);
        self.len += more.len();
        Some(())
    }

    /// A `str` as UTF-8. None where it is none, or there is no room.
    ///
    /// # Safety
    /// `object` is a living object, or zero.
    unsafe fn append(&mut self, object: usize, layout: &Layout) -> Option<()> {
        if object == 0 {
            return None;
        }
        // SAFETY: the caller's promise; behind the flags that say `str`, its fields are there.
        let (length, state) = unsafe {
            if field::<usize>(field(object, TYPE), TYPE_FLAGS) & IS_TEXT == 0 {
                return None;
            }
            (field::<usize>(object, LENGTH), field::<u32>(object, STATE))
        };
        if state & COMPACT == 0 || length > LONGEST {
            return None;
        }
        let first = object + if state & ASCII != 0 { layout.ascii } else { layout.wide };
        for at in 0..length {
            // SAFETY: `length` characters of that kind follow.
            let character = unsafe {
                match (state & KIND) >> 2 {
                    1 => u32::from(field::<u8>(first, at)),
                    2 => u32::from(field::<u16>(first, 2 * at)),
                    4 => field::<u32>(first, 4 * at),
                    _ => return None,
                }
            };
            let character = char::from_u32(character).unwrap_or(char::REPLACEMENT_CHARACTER);
            self.push(character.encode_utf8(&mut [0; 4]).as_bytes())?;
        }
        Some(())
    }
}
