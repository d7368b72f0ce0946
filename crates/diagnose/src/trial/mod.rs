//! A trial: an option of a running program's sockets is switched off and on, block of time by block of time, and the
//! blocks are compared.
//!
//! [`Conversation`] makes exchanges and updates of the data segments that pass; [`Tally`] gathers what one block
//! measured; [`compare`] and [`judge`] tell what the option changed. The unit is the block, never the message: messages
//! of one block share what the machine did meanwhile, so a thousand of them are not a thousand independent witnesses.

mod conversation;
mod interval;
mod tally;
mod verdict;

pub use conversation::{Conversation, Direction, Role};
pub use interval::{Comparison, FEWEST_PAIRS, compare};
pub use tally::{Block, Tally};
pub use verdict::{Measure, Verdict, judge};
