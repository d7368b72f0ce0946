//! Records TCP traffic of this machine with tcpdump, and knows when the last packet is in the file.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

/// KiB of kernel buffer for tcpdump, so that a moment without a core loses nothing.
const BUFFER_KIB: &str = "262144";
/// Longest wait for a marker to be captured; tcpdump hands packets over within a second.
const MARKER_WAIT: Duration = Duration::from_secs(30);
/// The IPv4 protocol field, counted from an Ethernet frame's first byte.
const PROTOCOL_AT: usize = 14 + 9;
const UDP: u8 = 17;

/// What a finished recording holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Packets in the file.
    pub(crate) packets: u64,
    /// Packets that the kernel had to drop for want of buffer.
    pub(crate) dropped: u64,
}

/// A running recording.
///
/// tcpdump starts in the network namespace of the thread that calls [`Recorder::start`].
#[derive(Debug)]
pub(crate) struct Recorder {
    tcpdump: Child,
    messages: BufReader<ChildStderr>,
    /// Tells at each marker how many packets came before it.
    marker_seen: Receiver<Result<u64>>,
}

impl Recorder {
    /// Starts to record the TCP segments from and to `port` on `interface` into `file`; returns once tcpdump
    /// listens.
    pub(crate) fn start(interface: &str, port: u16, file: &Path) -> Result<Self> {
        let mut tcpdump = Command::new("tcpdump")
            .args(["-i", interface, "-B", BUFFER_KIB, "-U", "-w", "-"])
            .arg(format!("port {port}"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run tcpdump (apt-get install tcpdump)")?;
        let (stdout, stderr) = (tcpdump.stdout.take(), tcpdump.stderr.take());
        let (stdout, stderr) = stdout.zip(stderr).context("tcpdump has no output")?;
        let mut messages = BufReader::new(stderr);
        wait_until_listening(&mut tcpdump, &mut messages)?;
        let out = File::create(file).with_context(|| format!("cannot create {}", file.display()))?;
        let (sender, marker_seen) = channel();
        std::thread::spawn(move || {
            if let Err(why) = copy(stdout, out, &sender) {
                // Nobody listens any more once the recording is over.
                let _ = sender.send(Err(why));
            }
        });
        Ok(Self { tcpdump, messages, marker_seen })
    }

    /// Waits until all that was sent before this call is in the file. The traffic's senders can so be held
    /// back where tcpdump is slower than they are. `to` is the traffic's address, as this thread reaches it.
    pub(crate) fn catch_up(&self, to: SocketAddr) -> Result<u64> {
        // The marker is a UDP datagram, which no traffic recorded here contains.
        let socket = UdpSocket::bind("0.0.0.0:0").context("cannot open a UDP socket")?;
        socket.send_to(b"mark", to).context("cannot send a marker")?;
        let copied = self.marker_seen.recv_timeout(MARKER_WAIT);
        copied.context("tcpdump did not capture the marker")?
    }

    /// Waits until all is in the file, then stops tcpdump.
    pub(crate) fn finish(mut self, to: SocketAddr) -> Result<Recorded> {
        let marked = self.catch_up(to);
        let pid = Pid::from_raw(i32::try_from(self.tcpdump.id())?).context("tcpdump has no process id")?;
        kill_process(pid, Signal::INT).context("cannot stop tcpdump")?;
        let mut summary = String::new();
        self.messages.read_to_string(&mut summary)?;
        self.tcpdump.wait()?;
        let packets = marked?;
        let dropped = summary
            .lines()
            .find(|line| line.ends_with("dropped by kernel"))
            .and_then(|line| line.split_whitespace().next()?.parse().ok())
            .context("tcpdump did not say how many packets were dropped")?;
        Ok(Recorded { packets, dropped })
    }
}

impl Drop for Recorder {
    /// Leaves no tcpdump behind where a recording was given up.
    fn drop(&mut self) {
        // Both fail where it has ended already.
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}

fn wait_until_listening(tcpdump: &mut Child, messages: &mut BufReader<ChildStderr>) -> Result<()> {
    let mut said = String::new();
    while !said.contains("listening on") {
        if messages.read_line(&mut said)? == 0 {
            tcpdump.wait()?;
            bail!("tcpdump does not capture here: {}", said.trim());
        }
    }
    Ok(())
}

/// Copies a pcap stream record by record, leaves the markers out, and reports each of them once all packets
/// before it are in the file.
fn copy(stream: ChildStdout, out: File, marker_seen: &Sender<Result<u64>>) -> Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, stream);
    let mut out = BufWriter::with_capacity(1 << 20, out);
    let mut file_header = [0; 24];
    input.read_exact(&mut file_header)?;
    out.write_all(&file_header)?;
    let (mut packets, mut frame) = (0, Vec::new());
    loop {
        let mut header = [0; 16];
        input.read_exact(&mut header).context("the recording ended before its marker")?;
        let stored = u32::from_ne_bytes([header[8], header[9], header[10], header[11]]);
        frame.resize(stored as usize, 0);
        input.read_exact(&mut frame)?;
        if frame.get(PROTOCOL_AT) == Some(&UDP) {
            out.flush()?;
            marker_seen.send(Ok(packets))?;
        } else {
            out.write_all(&header)?;
            out.write_all(&frame)?;
            packets += 1;
        }
    }
}
