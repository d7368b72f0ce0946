//! The second process: says which process holds which socket, since the first one gives up the right to see that.
//!
//! It keeps the rights to look into processes and nothing else, and its input is only ever counted: a byte asks, and the
//! answer is a line for each socket and an empty one. It ends with the first process, which closes the pipe.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use anyhow::Result;
use tcpwhy_diagnose::report::Program;
use tcpwhy_host::privileges;
use tcpwhy_host::process::{self, Holders as OfAll};
use tcpwhy_report::plain::plain;

/// The argument that makes a process the second one.
pub(super) const ARGUMENT: &str = "--say-holders";

/// Sockets in an answer: of more, some stay without a program.
const MOST: usize = 200_000;

/// The second process, seen from the first.
pub(super) struct Holders {
    process: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Holders {
    /// Starts it with the rights that this process has, out of reach of the terminal's Ctrl-C.
    pub(super) fn start() -> io::Result<Self> {
        let mut process = Command::new("/proc/self/exe")
            .arg0("tcpwhy")
            .args(["live", ARGUMENT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (ask, answer) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { process, ask, answer: BufReader::new(answer) })
    }

    /// Which program holds which socket, by the socket's number.
    pub(super) fn look(&mut self) -> io::Result<HashMap<u64, Program>> {
        self.ask.write_all(b"\n")?;
        let mut programs = HashMap::new();
        let mut line = String::new();
        loop {
            line.clear();
            if self.answer.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end_matches('\n') {
                "" => return Ok(programs),
                line => programs.extend(read(line)),
            }
        }
    }

    /// Ends it.
    pub(super) fn end(mut self) {
        drop((self.ask, self.answer));
        // It is gone in any case.
        let _ = self.process.wait();
    }
}

/// `2235719 4711 nginx`: the socket, the process, its name, made fit for a terminal.
fn read(line: &str) -> Option<(u64, Program)> {
    let mut words = line.splitn(3, ' ');
    let (inode, pid, name) = (words.next()?, words.next()?, words.next()?);
    Some((inode.parse().ok()?, Program { name: name.to_owned(), pid: pid.parse().ok()? }))
}

/// The second process.
pub(super) fn run() -> Result<ExitCode> {
    privileges::keep_looking(privileges::heir())?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut asked = io::stdin().lock();
    while asked.read_exact(&mut [0]).is_ok() {
        answer(&mut out)?;
        out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(out: &mut impl Write) -> io::Result<()> {
    let mut names = HashMap::new();
    for (inode, pid) in OfAll::of_all()?.owners().take(MOST) {
        let name = names.entry(pid).or_insert_with(|| process::name(pid).unwrap_or_default());
        // Without line breaks, too.
        writeln!(out, "{inode} {pid} {}", plain(name))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_whatever_a_program_is_called() {
        let program = |name: &str| Some((7, Program { name: name.to_owned(), pid: 42 }));
        assert_eq!(read("7 42 nginx"), program("nginx"));
        assert_eq!(read("7 42 Web Content"), program("Web Content"));
        assert_eq!(read("7 42 "), program(""));
        for wrong in ["", "7", "7 42", "x 42 nginx", "7 -1 nginx"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn own_sockets_are_among_the_answer() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
        let inode = rustix::fs::fstat(&listener).expect("a status").st_ino;
        let mut said = Vec::new();
        answer(&mut said).expect("/proc");
        let said = String::from_utf8(said).expect("UTF-8");
        assert!(said.ends_with("\n\n"), "{said}");
        let own = format!("{inode} {} ", std::process::id());
        assert!(said.lines().any(|line| line.starts_with(&own)), "{own}: {said}");
    }
}
