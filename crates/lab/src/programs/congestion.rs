//! Which congestion control a sender uses.

use serde::Serialize;

/// The congestion controls of the stories; all three are in stock kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// RFC 5681 and RFC 6582: what the 1990s' senders did.
    Reno,
    /// RFC 9438: Linux's default since 2006.
    Cubic,
    /// Paces by what was delivered; loss and idle time mean little to it.
    Bbr,
}

impl Congestion {
    /// As `TCP_CONGESTION` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}
