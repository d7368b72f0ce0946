//! The paths of the matrix.

use std::time::Duration;

use tcpwhy_simulate::link::Ends;

use super::super::case::{Case, Party};
use super::causes;
use crate::place::{Path, Wire};

/// Linux's own MTU of loopback.
const LOOPBACK_MTU: u32 = 65_536;

/// A path and its short name.
#[derive(Clone, Debug)]
pub(super) enum Road {
    /// One host.
    Loopback,
    /// A link of so many ms there and back.
    Link {
        /// In ms.
        round_trip: u64,
        /// Whether hosts leave cutting to their devices.
        offload: bool,
    },
}

/// Loopback and the three round trips.
pub(super) const ROADS: [Road; 4] = [Road::Loopback, link(1), link(20), link(100)];
/// The links alone.
pub(super) const LINKS: [Road; 3] = [link(1), link(20), link(100)];
/// The links with offload.
pub(super) const OFFLOADED: [Road; 3] = [offloaded(1), offloaded(20), offloaded(100)];

/// A link without offload.
pub(super) const fn link(round_trip: u64) -> Road {
    Road::Link { round_trip, offload: false }
}

/// A link with offload.
pub(super) const fn offloaded(round_trip: u64) -> Road {
    Road::Link { round_trip, offload: true }
}

impl Road {
    /// As case names have it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Loopback => "loopback".to_owned(),
            Self::Link { round_trip, offload: false } => format!("{round_trip}ms"),
            Self::Link { round_trip, offload: true } => format!("{round_trip}ms-offload"),
        }
    }

    /// In ms; 0 on loopback.
    pub(super) fn round_trip(&self) -> u64 {
        match self {
            Self::Loopback => 0,
            Self::Link { round_trip, .. } => *round_trip,
        }
    }

    /// The path.
    pub(super) fn path(&self) -> Path {
        match self {
            Self::Loopback => Path::Loopback { mtu: LOOPBACK_MTU },
            Self::Link { round_trip, offload } => {
                let mut wire = Wire::new(Ends::round_trip(Duration::from_millis(*round_trip)));
                wire.offload = *offload;
                Path::Link(wire)
            }
        }
    }

    /// Exchanges that show a habit without taking long.
    pub(super) fn exchanges(&self) -> usize {
        match self.round_trip() {
            0..=5 => 40,
            6..=50 => 30,
            _ => 15,
        }
    }
}

/// ms.
pub(super) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

impl Case {
    /// Adds what a capture at the host of the bulk's sender shows on a road with offload.
    pub(super) fn with_offload(mut self, road: &Road, sender: Party) -> Self {
        if matches!(road, Road::Link { offload: true, .. }) {
            self.causes.push(causes::offload(sender));
        }
        self
    }
}
