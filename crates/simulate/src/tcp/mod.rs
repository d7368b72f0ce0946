//! TCP endpoints in virtual time, with the habits of the stack that they stand for.
//!
//! An [`Endpoint`] does no I/O: segments go in with [`Endpoint::handle_segment`] and come out of
//! [`Endpoint::poll_transmit`]; the program is [`Endpoint::handle_write`] and [`Endpoint::handle_read`]; time is an
//! argument, in ns of any clock that does not go back. A [`Stack`] says how it behaves, [`eras`] names stacks that
//! existed.

mod arrival;
mod dress;
mod endpoint;
pub mod eras;
mod info;
mod offset;
mod receiver;
mod segment;
mod sender;
mod stack;

pub use endpoint::Endpoint;
pub use info::{CongestionState, Event, EventKind, Info, State, Trigger, Wait};
pub(crate) use offset::from_wire;
pub use segment::{Ecn, Segment};
pub(crate) use sender::nanos;
pub use stack::{
    Buffer, Congestion, Counting, DelayedAck, EcnUse, Estimator, HoleFilled, IdleRestart, Nagle, Receiving,
    Repair, Sending, SocketOption, Stack, Ticks, Timeout, WindowProbe,
};
