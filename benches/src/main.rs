//! Generates the benchmark captures and compares tcpwhy with other tools.

fn main() {}
