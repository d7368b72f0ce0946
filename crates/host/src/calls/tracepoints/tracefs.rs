//! The kernel's list of its trace events: their numbers, and where their fields lie.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where most systems have it.
const USUAL_PLACE: &str = "/sys/kernel/tracing";

/// The file system of trace events. Where nobody has mounted it, it is here only, as an open descriptor: nothing is mounted
/// that others could see or that would be left behind.
#[derive(Debug)]
pub(super) struct Tracefs(OwnedFd);

impl Tracefs {
    /// Needs `CAP_SYS_ADMIN` where it is not mounted, else the rights to read it, which are root's by default.
    pub(super) fn open() -> io::Result<Self> {
        let folder = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        if Path::new(USUAL_PLACE).join("events").exists() {
            return Ok(Self(open(USUAL_PLACE, folder, Mode::empty())?));
        }
        let new = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&new)?;
        Ok(Self(fsmount(&new, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?))
    }

    /// An event by its name, `sock/sock_send_length`.
    pub(super) fn event(&self, name: &str) -> io::Result<Event> {
        let number = self.read(&format!("events/{name}/id"))?;
        let number = number.trim().parse().map_err(|_| unreadable(name))?;
        let format = self.read(&format!("events/{name}/format"))?;
        Ok(Event { name: name.to_owned(), number, fields: fields(&format) })
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let mut text = String::new();
        let file = openat(&self.0, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }
}

/// A trace event of this kernel.
#[derive(Clone, Debug)]
pub(super) struct Event {
    name: String,
    /// What `perf_event_open` knows it by.
    pub(super) number: u64,
    fields: Vec<(String, Field)>,
}

/// Where a field lies in an event's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    len: usize,
}

impl Event {
    /// A field by its name.
    pub(super) fn field(&self, name: &str) -> io::Result<Field> {
        let field = self.fields.iter().find(|(found, _)| found == name);
        field.map(|(_, field)| *field).ok_or_else(|| unreadable(&self.name))
    }
}

impl Field {
    /// Its bytes; empty where the event is too short.
    pub(super) fn bytes(self, event: &[u8]) -> &[u8] {
        event.get(self.offset..self.offset + self.len).unwrap_or_default()
    }

    /// As an unsigned number; an array's first.
    pub(super) fn unsigned(self, event: &[u8]) -> u64 {
        let mut word = [0; 8];
        let bytes = self.bytes(event);
        let len = bytes.len().min(word.len());
        // Events are of the machine's byte order.
        let at = if cfg!(target_endian = "little") { 0 } else { word.len() - len };
        word[at..at + len].copy_from_slice(&bytes[..len]);
        u64::from_ne_bytes(word)
    }

    /// As a signed number.
    pub(super) fn signed(self, event: &[u8]) -> i64 {
        let unused = 64 - 8 * self.len.clamp(1, 8) as u32;
        (self.unsigned(event) << unused).cast_signed() >> unused
    }
}

/// A field to a line, as in `field:__u8 saddr[4]; offset:32; size:4; signed:0;`.
fn fields(format: &str) -> Vec<(String, Field)> {
    format.lines().filter_map(field).collect()
}

fn field(line: &str) -> Option<(String, Field)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
    let len = parts.next()?.strip_prefix("size:")?.parse().ok()?;
    let name = declared.split_whitespace().next_back()?;
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    Some((name.to_owned(), Field { offset, len }))
}

fn unreadable(event: &str) -> io::Error {
    io::Error::other(format!("this kernel describes its trace event {event} in a way that is not understood"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_kernel_says() {
        let format = "name: inet_sock_set_state\nID: 2287\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:const void * skaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:int oldstate;\toffset:16;\tsize:4;\tsigned:1;\n\
            \tfield:__u8 saddr[4];\toffset:32;\tsize:4;\tsigned:0;\n\nprint fmt: \"x\"\n";
        let event = Event { name: "x".into(), number: 1, fields: fields(format) };
        assert_eq!(event.field("saddr").ok(), Some(Field { offset: 32, len: 4 }));
        assert_eq!(event.field("skaddr").ok(), Some(Field { offset: 8, len: 8 }));
        assert!(event.field("daddr").is_err());
        let mut bytes = [0_u8; 36];
        bytes[16..20].copy_from_slice(&(-11_i32).to_ne_bytes());
        let state = event.field("oldstate").expect("it is there");
        assert_eq!((state.signed(&bytes), state.unsigned(&bytes)), (-11, 0xffff_fff5));
        assert_eq!(state.signed(&bytes[..17]), 0, "an event that is too short");
    }
}
