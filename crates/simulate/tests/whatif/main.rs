//! What-if against connections whose truth is known: worked by hand, or simulated with and without the cause.

mod build;
mod by_hand;
mod hostile;
mod refused;
mod truth;
