//! The real binary, as people and scripts run it.

mod annotate;
mod capture;
mod exit_status;
mod explain;
mod formats;
mod hops;
mod html;
mod output;
mod plot;
#[cfg(target_os = "linux")]
mod prove;
mod quoted;
#[cfg(unix)]
mod relay;
mod rotated;
mod run;
#[cfg(unix)]
mod serve;
#[cfg(target_os = "linux")]
mod sockets;
mod stream;
mod whatif;
