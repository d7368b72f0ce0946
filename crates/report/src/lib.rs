//! The diagnosis as people and programs read it: one format a file.
//!
//! Every writer takes the report model of `tcpwhy_diagnose::report` and an [`std::io::Write`]. None decides
//! where the output goes, how wide the terminal is or whether it has colours: that is the caller's to say.

pub mod annotate;
pub mod comparison;
pub mod csv;
pub mod explain;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod number;
pub mod page;
pub mod plain;
pub mod plot;
mod recipes;
pub mod rules;
mod table;
pub mod terminal;
pub mod what_if;
mod xml;
