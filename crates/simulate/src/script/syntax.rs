//! A script as it was written: what the parser returns and the runner follows.

use std::fmt;

use tcpwhy_wire::{TcpFlags, TcpOptions};

/// A packetdrill script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// Lines `--name=value`, and `--name` with an empty value.
    pub settings: Vec<(String, String)>,
    /// What the comment `// tcpwhy: stack=NAME` asks for. packetdrill itself skips it as a comment.
    pub stack: Option<String>,
    /// Shell commands before the first event: they set sysctls and routes.
    pub commands: Vec<Command>,
    /// What happens, in order.
    pub events: Vec<Event>,
    /// Shell commands after the last event: they put back what the first ones changed.
    pub cleanup: Vec<Command>,
}

/// A shell command between backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The line it begins on, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The line it begins on, from 1.
    pub line: u32,
    /// When it happens.
    pub when: When,
    /// What happens.
    pub action: Action,
}

/// When a step happens; all times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// So long after the script's beginning.
    At(u64),
    /// Between these two times after the script's beginning.
    Within(u64, u64),
    /// So long after the step before it.
    After(u64),
    /// Between these two times after the step before it.
    AfterWithin(u64, u64),
    /// At any time after the step before it (`*`).
    Any,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The stack under test receives this segment (`<`).
    Receive(Segment),
    /// The stack under test sends this segment (`>`).
    Send(Segment),
    /// A program calls its socket.
    Call(Call),
    /// A shell command.
    Command(String),
    /// Python between `%{` and `}%`.
    Code(String),
    /// A packet that is not TCP, or not of this connection; its text.
    Foreign(String),
}

/// A TCP segment as a script writes it, in the script's own sequence numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// What stands in the two ECN bits of the IP header; not compared where the script names none.
    pub ecn: Option<EcnBits>,
    /// SYN, FIN, RST, PSH, ACK, URG, ECE and CWR.
    pub flags: TcpFlags,
    /// Flags of RFC 9768 (Accurate ECN), which the header type does not carry: `A` and a count of three bits.
    pub accurate_ecn: Option<String>,
    /// First sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub payload_len: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// The window field, unscaled; not compared where the script names none.
    pub window: Option<u16>,
    /// The urgent pointer.
    pub urgent: Option<u16>,
    /// The options.
    pub options: Options,
}

/// The options of a segment in a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Options {
    /// Whatever there is (`<...>`).
    Any,
    /// These and no others.
    Listed {
        /// Those that TCP's timing depends on.
        known: TcpOptions,
        /// The text of the others: Fast Open, MD5, multipath.
        others: Vec<String>,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self::Listed { known: TcpOptions::default(), others: Vec::new() }
    }
}

/// The ECN bits a script names in brackets before a segment's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnBits {
    /// `[noecn]`: the sender does not use ECN.
    None,
    /// `[ect0]`.
    Ect0,
    /// `[ect1]`.
    Ect1,
    /// `[ect01]`: either of the two.
    Either,
    /// `[ce]`: congestion experienced.
    Ce,
}

/// A socket call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The function.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<Value>,
    /// For a call that blocks (`0.1...0.2 read(…)`): when it returns, counted as the step's own time is.
    pub returns: Option<u64>,
    /// What it returns.
    pub result: Value,
    /// The error, where it fails: `EAGAIN`.
    pub errno: Option<String>,
}

/// A value in a socket call.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `...`
    Any,
    /// A number.
    Int(i64),
    /// A constant of C by its name.
    Word(String),
    /// A string.
    Text(String),
    /// `A|B`
    Flags(Vec<Value>),
    /// `[…]`
    List(Vec<Value>),
    /// `{…}`; a member without a name has an empty one.
    Record(Vec<(String, Value)>),
    /// `htons(8080)`
    Apply(String, Vec<Value>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("..."),
            Self::Int(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Flags(parts) => separated(f, "|", parts),
            Self::List(items) => {
                f.write_str("[")?;
                separated(f, ", ", items)?;
                f.write_str("]")
            }
            Self::Record(fields) => {
                f.write_str("{")?;
                for (index, (name, value)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    let equals = if name.is_empty() { "" } else { "=" };
                    write!(f, "{comma}{name}{equals}{value}")?;
                }
                f.write_str("}")
            }
            Self::Apply(name, arguments) => {
                write!(f, "{name}(")?;
                separated(f, ", ", arguments)?;
                f.write_str(")")
            }
        }
    }
}

fn separated(f: &mut fmt::Formatter<'_>, between: &str, values: &[Value]) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        let separator = if index == 0 { "" } else { between };
        write!(f, "{separator}{value}")?;
    }
    Ok(())
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        separated(f, ", ", &self.arguments)?;
        write!(f, ") = {}", self.result)?;
        self.errno.as_ref().map_or(Ok(()), |errno| write!(f, " {errno}"))
    }
}
