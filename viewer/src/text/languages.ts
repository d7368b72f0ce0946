/** Fixes that a program makes in its own code, as each language writes them. */

export const LANGUAGES = ["C", "Python", "Java", "Go", "Node.js", "Rust", "C#"] as const;
export type Language = (typeof LANGUAGES)[number];

/** One fix in every language that has it. */
export interface Recipe {
  title: string;
  code: Partial<Record<Language, string>>;
}

const ONE_WRITE: Recipe = {
  title: "Write each message at once",
  code: {
    C: `struct iovec parts[] = {{head, head_size}, {body, body_size}};
writev(fd, parts, 2);
// or: send(fd, head, head_size, MSG_MORE); send(fd, body, body_size, 0);`,
    Python: `sock.sendall(head + body)
# or, without copying: sock.sendmsg([head, body])`,
    Java: `var out = new BufferedOutputStream(socket.getOutputStream());
out.write(head);
out.write(body);
out.flush(); // once a message
// NIO: channel.write(new ByteBuffer[] {head, body});`,
    Go: `out := bufio.NewWriter(conn)
out.Write(head)
out.Write(body)
out.Flush() // once a message
// or: parts := net.Buffers{head, body}; parts.WriteTo(conn)`,
    "Node.js": `socket.cork();
socket.write(head);
socket.write(body);
process.nextTick(() => socket.uncork());`,
    Rust: `let mut out = BufWriter::new(&stream);
out.write_all(head)?;
out.write_all(body)?;
out.flush()?; // once a message`,
    "C#": `var output = new BufferedStream(stream);
output.Write(head);
output.Write(body);
output.Flush(); // once a message`,
  },
};

const NODELAY: Recipe = {
  title: "Set TCP_NODELAY on the socket that sends",
  code: {
    C: "setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));",
    Python: "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)",
    Java: `socket.setTcpNoDelay(true);
// NIO: channel.setOption(StandardSocketOptions.TCP_NODELAY, true);`,
    Go: `conn.(*net.TCPConn).SetNoDelay(true) // the default: look who switches it off`,
    "Node.js": "socket.setNoDelay(true);",
    Rust: "stream.set_nodelay(true)?;",
    "C#": "socket.NoDelay = true;",
  },
};

const QUICKACK: Recipe = {
  title: "Or ask the receiver to ACK at once (Linux; after each read anew)",
  code: {
    C: "setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &(int){1}, sizeof(int));",
    Python: "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)",
    Java: "socket.setOption(jdk.net.ExtendedSocketOptions.TCP_QUICKACK, true);",
    Go: `raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
})`,
    Rust: `use std::os::linux::net::TcpStreamExt;
stream.set_quickack(true)?;`,
  },
};

const UNCORK: Recipe = {
  title: "Take the cork off at the end of each message",
  code: {
    C: `setsockopt(fd, IPPROTO_TCP, TCP_CORK, &(int){0}, sizeof(int));
// and no MSG_MORE in the last send()`,
    Python: "sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)",
    Go: `raw, _ := conn.(*net.TCPConn).SyscallConn()
raw.Control(func(fd uintptr) {
    unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, 0)
})`,
  },
};

const REUSE: Recipe = {
  title: "Use the connection again",
  code: {
    C: "CURL *curl = curl_easy_init(); // one for all requests; curl_easy_cleanup() at the end",
    Python: `session = requests.Session()  # one for all requests
session.get(url)`,
    Java: "static final HttpClient CLIENT = HttpClient.newHttpClient(); // one for all requests",
    Go: `var client = &http.Client{} // one for all requests
io.Copy(io.Discard, answer.Body) // what is not read to its end is not used again
answer.Body.Close()`,
    "Node.js": "const agent = new http.Agent({ keepAlive: true }); // one for all requests",
    Rust: "let client = reqwest::Client::new(); // one for all requests",
    "C#": "static readonly HttpClient Client = new(); // one for all requests",
  },
};

const buffer = (option: string, java: string, go: string, csharp: string): Recipe => ({
  title: `A larger ${option}, before connect() or listen(); without any, the kernel sizes it`,
  code: {
    C: `setsockopt(fd, SOL_SOCKET, ${option}, &(int){4 << 20}, sizeof(int));`,
    Python: `sock.setsockopt(socket.SOL_SOCKET, socket.${option}, 4 << 20)`,
    Java: `socket.${java}(4 << 20);`,
    Go: `conn.(*net.TCPConn).${go}(4 << 20)`,
    "C#": `socket.${csharp} = 4 << 20;`,
  },
});

/** The fixes of a rule that are a matter of code, the best first. */
export const RECIPES: Record<string, Recipe[]> = {
  "nagle-delayed-ack": [ONE_WRITE, NODELAY, QUICKACK],
  "nagle-hold": [ONE_WRITE, NODELAY],
  "split-write": [ONE_WRITE, NODELAY],
  "merged-updates": [NODELAY, QUICKACK],
  "relay-merge": [NODELAY],
  "delayed-ack": [QUICKACK],
  "cork-timeout": [UNCORK, ONE_WRITE],
  "handshake-per-request": [REUSE],
  "slow-start": [REUSE],
  "small-receive-window": [buffer("SO_RCVBUF", "setReceiveBufferSize", "SetReadBuffer", "ReceiveBufferSize")],
  "small-send-buffer": [buffer("SO_SNDBUF", "setSendBufferSize", "SetWriteBuffer", "SendBufferSize")],
};
