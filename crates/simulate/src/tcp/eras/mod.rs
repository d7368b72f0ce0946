//! Stacks that exist or existed, by name: each number with where it is from, or that it is assumed.

mod bsd;
mod linux;
mod windows;

pub use bsd::{bsd_4_4, digital_unix};
pub use linux::{linux_2_0, linux_2_1, linux_6};
pub use windows::windows_10;

use super::stack::Stack;

/// A stack with a name.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// What it is asked for by.
    pub name: &'static str,
    /// What it stands for, in a line.
    pub about: &'static str,
    /// Its settings.
    pub stack: fn() -> Stack,
}

/// All of them, the latest first.
pub const ERAS: &[Era] = &[
    Era { name: "linux-6", about: "Linux of 2022 and later, CUBIC, RACK, its defaults", stack: linux_6 },
    Era {
        name: "windows-10",
        about: "Windows 10 since 1709, CUBIC, RACK, 40 ms delayed ACK",
        stack: windows_10,
    },
    Era { name: "linux-2.1", about: "Linux 2.1.126 of 1998, NewReno or FACK", stack: linux_2_1 },
    Era {
        name: "linux-2.0",
        about: "Linux 2.0.3x of 1997, Reno, delayed ACKs up to 500 ms",
        stack: linux_2_0,
    },
    Era {
        name: "digital-unix",
        about: "Digital UNIX 4 of 1997, as the Netrek trace shows it",
        stack: digital_unix,
    },
    Era { name: "bsd-4.4", about: "4.4BSD-Lite2 of 1995 (Net/3), Reno, 200 ms heartbeat", stack: bsd_4_4 },
];

/// The stack of this name.
pub fn named(name: &str) -> Option<Stack> {
    ERAS.iter().find(|era| era.name == name).map(|era| (era.stack)())
}
