//! tcpwhy against captures whose cause is known from the log of the programs that made them.

mod cost;
mod expectations;
mod loopback;
mod stored;
mod verdict;
