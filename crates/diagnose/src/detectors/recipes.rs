//! Fixes that a program makes in its own code. A rule names those that mend what it finds.
//!
//! All but those in C# were run, and their system calls watched: that the option is set, that one write leaves. C# is by
//! Microsoft's documentation; the numbers in it are Linux's. `head` and `body` are the two parts of a message.

use super::recipe::{Language, Recipe};

/// Buffered writers pass on at once what is larger than their buffer, and what they hold before it: `head` in a segment of
/// its own, again. Hence the sizes.
pub(super) static ONE_WRITE: Recipe = Recipe {
    title: "Write each message at once",
    code: &[
        (
            Language::C,
            "\
struct iovec parts[] = {{head, head_size}, {body, body_size}};
writev(fd, parts, 2); // returns how much it took
// or: send(fd, head, head_size, MSG_MORE); send(fd, body, body_size, 0);",
        ),
        (
            Language::Python,
            "\
sock.sendall(head + body)
# or sock.sendmsg([head, body]): copies nothing, returns how much it took",
        ),
        (
            Language::Java,
            "\
// larger than a message: else head leaves on its own when body comes
var out = new BufferedOutputStream(socket.getOutputStream(), 1 << 16);
out.write(head);
out.write(body);
out.flush(); // once a message
// NIO: channel.write(new ByteBuffer[] {head, body});",
        ),
        (
            Language::Go,
            "\
out := bufio.NewWriterSize(conn, 1<<16) // larger than a message
out.Write(head)
out.Write(body)
out.Flush() // once a message
// or, if it is a *net.TCPConn: (&net.Buffers{head, body}).WriteTo(conn)",
        ),
        (
            Language::NodeJs,
            "\
socket.cork();
socket.write(head);
socket.write(body);
process.nextTick(() => socket.uncork()); // one writev() for both",
        ),
        (
            Language::Rust,
            "\
// larger than a message: else head leaves on its own when body comes
let mut out = BufWriter::with_capacity(1 << 16, &stream);
out.write_all(head)?;
out.write_all(body)?;
out.flush()?; // once a message",
        ),
        (
            Language::CSharp,
            "\
var output = new BufferedStream(stream, 1 << 16); // larger than a message
output.Write(head);
output.Write(body);
output.Flush(); // once a message",
        ),
    ],
};

pub(super) static NODELAY: Recipe = Recipe {
    title: "Set TCP_NODELAY on the socket that sends",
    code: &[
        (
            Language::C,
            "\
int on = 1;
setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);",
        ),
        (Language::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)"),
        (
            Language::Java,
            "\
socket.setTcpNoDelay(true);
// NIO: channel.setOption(StandardSocketOptions.TCP_NODELAY, true);",
        ),
        (Language::Go, "conn.(*net.TCPConn).SetNoDelay(true) // the default: who unsets it?"),
        (Language::NodeJs, "socket.setNoDelay(true);"),
        (Language::Rust, "stream.set_nodelay(true)?;"),
        (Language::CSharp, "socket.NoDelay = true;"),
    ],
};

pub(super) static QUICKACK: Recipe = Recipe {
    title: "Have the receiver ACK at once: TCP_QUICKACK, after each read anew (Linux)",
    code: &[
        (
            Language::C,
            "\
int on = 1;
setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);",
        ),
        (Language::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)"),
        (Language::Java, "socket.setOption(jdk.net.ExtendedSocketOptions.TCP_QUICKACK, true);"),
        (
            Language::Go,
            "\
raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    syscall.SetsockoptInt(int(fd),
        syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
})",
        ),
        (
            Language::Rust,
            "\
use std::os::linux::net::TcpStreamExt;
stream.set_quickack(true)?;",
        ),
        (
            Language::CSharp,
            "\
// TCP, QUICKACK
socket.SetRawSocketOption(6, 12, BitConverter.GetBytes(1));",
        ),
    ],
};

pub(super) static UNCORK: Recipe = Recipe {
    title: "Take the cork off at the end of each message",
    code: &[
        (
            Language::C,
            "\
int off = 0;
setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
// and no MSG_MORE in the last send()",
        ),
        (Language::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)"),
        (
            Language::Go,
            "\
raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    syscall.SetsockoptInt(int(fd),
        syscall.IPPROTO_TCP, syscall.TCP_CORK, 0)
})",
        ),
        (
            Language::Rust,
            "\
// its feature \"all\"
socket2::SockRef::from(&stream).set_tcp_cork(false)?;",
        ),
        (
            Language::CSharp,
            "\
// TCP, CORK
socket.SetRawSocketOption(6, 3, BitConverter.GetBytes(0));",
        ),
    ],
};

pub(super) static REUSE: Recipe = Recipe {
    title: "Use the connection again",
    code: &[
        (
            Language::C,
            "\
CURL *curl = curl_easy_init(); // one for all requests
curl_easy_setopt(curl, CURLOPT_URL, url);
curl_easy_perform(curl); // as often as needed
curl_easy_cleanup(curl); // at the end",
        ),
        (
            Language::Python,
            "\
session = requests.Session()  # one for all requests
session.get(url)  # requests.get(url) connects each time",
        ),
        (Language::Java, "static final HttpClient CLIENT = HttpClient.newHttpClient(); // one for all"),
        (
            Language::Go,
            "\
var client = &http.Client{} // one for all requests
answer, err := client.Get(url)
// …
io.Copy(io.Discard, answer.Body) // else it is not used again
answer.Body.Close()",
        ),
        (
            Language::NodeJs,
            "\
const agent = new http.Agent({ keepAlive: true }); // one for all requests
http.get(url, { agent }, (answer) => answer.resume());",
        ),
        (
            Language::Rust,
            "\
let client = reqwest::Client::new(); // one for all requests
// reqwest::get(url) connects each time
client.get(url).send().await?.text().await?;",
        ),
        (Language::CSharp, "static readonly HttpClient Client = new(); // one for all requests"),
    ],
};

/// Before the handshake, because it agrees on the window scale, and Linux takes the smallest that fits the buffer it knows.
pub(super) static RECEIVE_BUFFER: Recipe = Recipe {
    title: "Leave SO_RCVBUF to the kernel, or set more of it before connect() or listen() \
            (Linux gives at most net.core.rmem_max)",
    code: &[
        (
            Language::C,
            "\
int size = 4 << 20;
setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);",
        ),
        (
            Language::Python,
            "\
sock = socket.socket()
sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
sock.connect(address)",
        ),
        (
            Language::Java,
            "\
var socket = new Socket(); // not connected yet
socket.setReceiveBufferSize(4 << 20);
socket.connect(address);
// or new ServerSocket(), setReceiveBufferSize(4 << 20), bind(address)",
        ),
        (
            Language::Go,
            "\
dialer := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
    return raw.Control(func(fd uintptr) {
        syscall.SetsockoptInt(int(fd),
            syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<20)
    })
}} // and the same in a net.ListenConfig",
        ),
        (
            Language::Rust,
            "\
use socket2::{Domain, Socket, Type};
let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
socket.set_recv_buffer_size(4 << 20)?;
socket.connect(&address.into())?;
let stream = TcpStream::from(socket);",
        ),
        (Language::CSharp, "socket.ReceiveBufferSize = 4 << 20;"),
    ],
};

pub(super) static SEND_BUFFER: Recipe = Recipe {
    title: "Leave SO_SNDBUF to the kernel, or set more of it (Linux gives at most net.core.wmem_max)",
    code: &[
        (
            Language::C,
            "\
int size = 4 << 20;
setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);",
        ),
        (Language::Python, "sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)"),
        (Language::Java, "socket.setSendBufferSize(4 << 20);"),
        (Language::Go, "conn.(*net.TCPConn).SetWriteBuffer(4 << 20)"),
        (Language::Rust, "socket2::SockRef::from(&stream).set_send_buffer_size(4 << 20)?;"),
        (Language::CSharp, "socket.SendBufferSize = 4 << 20;"),
    ],
};

/// tcp(7), `TCP_CONGESTION`; Documentation/networking/ip-sysctl, `tcp_allowed_congestion_control`.
pub(super) static BBR: Recipe = Recipe {
    title: "Have the sender fill no queue: BBR (Linux, once the module tcp_bbr is loaded)",
    code: &[
        (Language::C, "setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"bbr\", 3);"),
        (Language::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b\"bbr\")"),
        (
            Language::Go,
            "\
raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    syscall.SetsockoptString(int(fd),
        syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, \"bbr\")
})",
        ),
        (
            Language::Rust,
            "\
// its feature \"all\"
socket2::SockRef::from(&stream).set_tcp_congestion(b\"bbr\")?;",
        ),
        (
            Language::CSharp,
            "\
// TCP, CONGESTION on Linux
socket.SetRawSocketOption(6, 13, Encoding.ASCII.GetBytes(\"bbr\"));",
        ),
    ],
};

/// Documentation/networking/ip-sysctl, `tcp_notsent_lowat`; 128 kB is what the option's author calls enough.
pub(super) static UNSENT: Recipe = Recipe {
    title: "Let less pile up in the sender, so that what is new waits behind less: TCP_NOTSENT_LOWAT (Linux, macOS)",
    code: &[
        (
            Language::C,
            "\
int unsent = 128 << 10;
setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);",
        ),
        (Language::Python, "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, 128 << 10)"),
        (
            Language::Go,
            "\
raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    const notSentLowat = 25 // TCP_NOTSENT_LOWAT on Linux
    syscall.SetsockoptInt(int(fd),
        syscall.IPPROTO_TCP, notSentLowat, 128<<10)
})",
        ),
        (
            Language::Rust,
            "\
// its feature \"all\"
socket2::SockRef::from(&stream).set_tcp_notsent_lowat(128 << 10)?;",
        ),
        (
            Language::CSharp,
            "\
// TCP, NOTSENT_LOWAT on Linux
socket.SetRawSocketOption(6, 25, BitConverter.GetBytes(128 << 10));",
        ),
    ],
};
