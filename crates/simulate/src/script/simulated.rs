//! A script's sockets on simulated endpoints.

use std::collections::{BTreeMap, VecDeque};

use tcpwhy_wire::TcpFlags;

use super::connection::Connection;
use super::host::{Host, OnWire, Reply, Step};
use super::outcome::Outcome;
use super::request::{OptionValue, Request};
use super::run::run_on;
use super::syntax::Script;
use super::{fields, settings};
use crate::tcp::{Endpoint, SocketOption, Stack, State};

/// The largest send buffer, and so the most that is in flight: a script may ask for any. Linux's own largest is 4 MiB
/// (`tcp_wmem`).
const LARGEST_BUFFER: u64 = 16 << 20;
/// Linux sends no smaller full segments (`TCP_MIN_SND_MSS`), whatever the peer asks for.
const SMALLEST_MSS: u16 = 48;
/// Segments that wait for the script to look at them. What comes after is not kept: no script asks for as many.
const MOST_UNREAD: usize = 1_000_000;
/// A script runs the same each time.
const SEED: u64 = 1;

/// Runs `script` on an endpoint that behaves as `stack` and the script's own settings say. The stack that the script
/// asks for ([`Script::stack`]) is the caller's to choose.
pub fn run(script: &Script, stack: &Stack) -> Outcome {
    run_on(script, &mut Simulated::new(stack))
}

/// Sockets of a program whose TCP is simulated.
#[derive(Debug)]
pub(super) struct Simulated {
    now: u64,
    stack: Stack,
    sockets: BTreeMap<i64, Socket>,
    connections: Vec<Connection>,
    /// The connection that the script is about, by its place in `connections`.
    current: Option<usize>,
    sent: VecDeque<(u64, OnWire)>,
}

#[derive(Debug)]
struct Socket {
    blocking: bool,
    role: Role,
    /// Set before there was a connection.
    options: Vec<SocketOption>,
}

#[derive(Clone, Copy, Debug)]
enum Role {
    Fresh,
    Listening,
    /// Has a connection, by its place; whether `connect` has already said so.
    Connected(usize, bool),
}

impl Host for Simulated {
    fn now(&self) -> u64 {
        self.now
    }

    fn step(&mut self, until: u64) -> Step {
        if let Some((time, segment)) = self.sent.pop_front() {
            return Step::Sent(time, segment);
        }
        let timers = self.connections.iter().enumerate();
        let next =
            timers.filter_map(|(place, connection)| Some((connection.endpoint.poll_at()?, place))).min();
        match next {
            Some((time, place)) if time <= until => {
                self.now = self.now.max(time);
                self.expire(place);
                Step::Changed
            }
            _ => {
                self.now = self.now.max(until);
                Step::Reached
            }
        }
    }

    fn deliver(&mut self, arrival: &OnWire) {
        let opening = arrival.tcp.flags.are_opening();
        let is_new = self.current.is_none_or(|place| self.connections[place].under_way);
        if opening && is_new && self.listener().is_some() {
            self.meet();
        }
        // Nobody is there: a closed endpoint answers.
        let place = self.current.unwrap_or_else(|| self.add(&[], true));
        self.arrive(place, arrival, opening);
    }

    fn call(&mut self, request: &Request) -> Reply {
        match request {
            Request::Open(number) => {
                let socket = Socket { blocking: true, role: Role::Fresh, options: Vec::new() };
                self.sockets.insert(*number, socket);
                Reply::Returned(*number, None)
            }
            Request::Accept { listener, accepted } => self.accept(*listener, *accepted),
            Request::Bind(number)
            | Request::Listen(number)
            | Request::Connect(number)
            | Request::Close(number)
            | Request::GetFlags(number)
            | Request::Unread(number)
            | Request::Unacknowledged(number)
            | Request::Read { socket: number, .. }
            | Request::Write { socket: number, .. }
            | Request::SetOption { socket: number, .. }
            | Request::GetOption { socket: number, .. }
            | Request::SetBlocking { socket: number, .. }
            | Request::Shutdown { socket: number, .. }
            | Request::Poll { socket: number, .. } => {
                let Some(socket) = self.sockets.get(number) else { return Reply::Failed("EBADF") };
                let (role, blocking) = (socket.role, socket.blocking);
                self.call_open(request, *number, role, blocking)
            }
        }
    }

    fn info(&mut self, field: &str) -> Option<f64> {
        let connection = self.connections.get(self.current?)?;
        fields::of(&connection.endpoint.info(), field)
    }

    fn set(&mut self, name: &str, value: &str) -> bool {
        settings::set(&mut self.stack, name, value)
    }
}

/// Connections and what travels.
impl Simulated {
    pub(super) fn new(stack: &Stack) -> Self {
        Self {
            now: 0,
            stack: stack.clone(),
            sockets: BTreeMap::new(),
            connections: Vec::new(),
            current: None,
            sent: VecDeque::new(),
        }
    }

    fn listener(&self) -> Option<&Socket> {
        self.sockets.values().find(|socket| matches!(socket.role, Role::Listening))
    }

    /// An endpoint for a connection that begins, with the options of the socket that it comes from.
    fn add(&mut self, options: &[SocketOption], accepted: bool) -> usize {
        let mut stack = self.stack.clone();
        stack.sender.send_buffer = stack.sender.send_buffer.or(Some(LARGEST_BUFFER));
        let mut endpoint = Endpoint::new(&stack, SEED.wrapping_add(self.connections.len() as u64));
        for option in options {
            endpoint.set(self.now, *option);
        }
        self.connections.push(Connection {
            endpoint,
            accepted,
            under_way: false,
            error: None,
            write_waits: false,
            reading_shut: false,
        });
        let place = self.connections.len() - 1;
        self.current = Some(place);
        place
    }

    fn meet(&mut self) {
        let options = self.listener().map(|listener| listener.options.clone()).unwrap_or_default();
        let place = self.add(&options, false);
        self.connections[place].endpoint.listen();
    }

    fn arrive(&mut self, place: usize, arrival: &OnWire, opening: bool) {
        let connection = &mut self.connections[place];
        connection.under_way |= !opening;
        let before = connection.endpoint.state();
        let mut segment = *arrival;
        let mss = &mut segment.tcp.options.mss;
        *mss = mss.map(|mss| mss.max(SMALLEST_MSS));
        connection.endpoint.handle_segment(self.now, &segment);
        if connection.endpoint.state() == State::Closed && arrival.tcp.flags.has(TcpFlags::RST) {
            connection.error = Some(match before {
                State::SynSent => "ECONNREFUSED",
                State::CloseWait => "EPIPE",
                _ => "ECONNRESET",
            });
        }
        self.collect(place);
    }

    fn expire(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let before = connection.endpoint.state();
        connection.endpoint.handle_timer(self.now);
        let ended = connection.endpoint.state() == State::Closed && before != State::TimeWait;
        if ended && before != State::Closed {
            connection.error = Some("ETIMEDOUT");
        }
        self.collect(place);
    }

    /// Takes what the connection sends. Only the one that the script is about is seen.
    fn collect(&mut self, place: usize) {
        while let Some(segment) = self.connections[place].endpoint.poll_transmit() {
            if self.current == Some(place) && self.sent.len() < MOST_UNREAD {
                self.sent.push_back((self.now, segment));
            }
        }
    }
}

/// The program's calls.
impl Simulated {
    fn accept(&mut self, listener: i64, accepted: i64) -> Reply {
        let Some(socket) = self.sockets.get(&listener) else { return Reply::Failed("EBADF") };
        if !matches!(socket.role, Role::Listening) {
            return Reply::Failed("EINVAL");
        }
        let (blocking, options) = (socket.blocking, socket.options.clone());
        let ready = |connection: &Connection| {
            let opening = [State::Closed, State::Listen, State::SynSent, State::SynReceived];
            !connection.accepted && !opening.contains(&connection.endpoint.state())
        };
        let Some(place) = self.connections.iter().position(ready) else {
            return if blocking { Reply::Waits(0) } else { Reply::Failed("EAGAIN") };
        };
        self.connections[place].accepted = true;
        let socket = Socket { blocking: true, role: Role::Connected(place, true), options };
        self.sockets.insert(accepted, socket);
        Reply::Returned(accepted, None)
    }

    fn call_open(&mut self, request: &Request, number: i64, role: Role, blocking: bool) -> Reply {
        match (request, role) {
            (Request::Bind(_), Role::Fresh) => Reply::DONE,
            (Request::Listen(_), Role::Fresh | Role::Listening) => {
                self.change(number, Role::Listening);
                Reply::DONE
            }
            (Request::Connect(_), _) => self.connect(number, role, blocking),
            (Request::SetBlocking { blocking, .. }, _) => {
                if let Some(socket) = self.sockets.get_mut(&number) {
                    socket.blocking = *blocking;
                }
                Reply::DONE
            }
            // O_RDWR, and O_NONBLOCK as the script set it.
            (Request::GetFlags(_), _) => Reply::Returned(if blocking { 0o2 } else { 0o4002 }, None),
            (Request::SetOption { option, value, .. }, _) => self.set_option(number, role, option, value),
            (Request::Close(_), _) => {
                self.sockets.remove(&number);
                if let Role::Connected(place, _) = role {
                    self.connections[place].endpoint.handle_close(self.now);
                    self.collect(place);
                }
                Reply::DONE
            }
            (Request::GetOption { option, .. }, Role::Connected(place, _)) if option == "SO_ERROR" => {
                let error = self.connections[place].error.take();
                Reply::Returned(0, Some(error.map_or(0, number_of_error)))
            }
            (Request::GetOption { .. }, _) => Reply::Unsupported,
            (_, Role::Connected(place, _)) => {
                let reply = self.call_connected(request, place, blocking);
                self.collect(place);
                reply
            }
            (Request::Read { .. } | Request::Shutdown { .. }, _) => Reply::Failed("ENOTCONN"),
            (Request::Write { .. }, _) => Reply::Failed("EPIPE"),
            (Request::Bind(_), _) => Reply::Failed("EINVAL"),
            _ => Reply::Unsupported,
        }
    }

    fn change(&mut self, number: i64, role: Role) {
        if let Some(socket) = self.sockets.get_mut(&number) {
            socket.role = role;
        }
    }

    fn connect(&mut self, number: i64, role: Role, blocking: bool) -> Reply {
        let Role::Connected(place, told) = role else {
            let options = self.sockets.get(&number).map(|socket| socket.options.clone()).unwrap_or_default();
            let place = self.add(&options, true);
            self.change(number, Role::Connected(place, false));
            self.connections[place].endpoint.connect(self.now);
            self.collect(place);
            return if blocking { Reply::Waits(0) } else { Reply::Failed("EINPROGRESS") };
        };
        let connection = &mut self.connections[place];
        match connection.endpoint.state() {
            State::SynSent | State::SynReceived if blocking => Reply::Waits(0),
            State::SynSent | State::SynReceived => Reply::Failed("EALREADY"),
            State::Closed => Reply::Failed(connection.error.take().unwrap_or("ECONNABORTED")),
            _ if told => Reply::Failed("EISCONN"),
            _ => {
                self.change(number, Role::Connected(place, true));
                Reply::DONE
            }
        }
    }

    fn set_option(&mut self, number: i64, role: Role, option: &str, value: &OptionValue) -> Reply {
        if let (OptionValue::Text(name), "TCP_CONGESTION") = (value, option) {
            // A connection that exists keeps its own.
            let early = !matches!(role, Role::Connected(..));
            return if early && self.set("tcp_congestion_control", name) {
                Reply::DONE
            } else {
                Reply::Unsupported
            };
        }
        let OptionValue::Number(value) = *value else { return Reply::Unsupported };
        let bytes = u64::try_from(value).unwrap_or(0);
        let option = match option {
            "TCP_NODELAY" => SocketOption::NoDelay(value != 0),
            "TCP_CORK" => SocketOption::Cork(value != 0),
            "TCP_QUICKACK" => SocketOption::QuickAck(value != 0),
            // Linux doubles both. What waits to be sent is nearly all payload (on 6.18, 20,000 take a write of 42,000),
            // of what was received half is reckoned to be the kernel's own records.
            "SO_SNDBUF" | "SO_SNDBUFFORCE" => {
                SocketOption::SendBuffer(bytes.saturating_mul(2).min(LARGEST_BUFFER))
            }
            "SO_RCVBUF" | "SO_RCVBUFFORCE" => SocketOption::ReceiveBuffer(bytes),
            // It lets a server's port be used again at once; a script has one server.
            "SO_REUSEADDR" => return Reply::DONE,
            _ => return Reply::Unsupported,
        };
        match role {
            Role::Connected(place, _) => {
                self.connections[place].endpoint.set(self.now, option);
                self.collect(place);
            }
            Role::Fresh | Role::Listening => {
                if let Some(socket) = self.sockets.get_mut(&number) {
                    socket.options.push(option);
                }
            }
        }
        Reply::DONE
    }

    fn call_connected(&mut self, request: &Request, place: usize, blocking: bool) -> Reply {
        let now = self.now;
        let connection = &mut self.connections[place];
        match *request {
            Request::Read { room, peek, at_once, .. } => {
                connection.read(now, room, peek, blocking && !at_once)
            }
            Request::Write { len, more, at_once, .. } => {
                connection.write(now, len, more, blocking && !at_once)
            }
            Request::Unread(_) => returned(0, connection.endpoint.readable()),
            Request::Unacknowledged(_) => {
                let info = connection.endpoint.info();
                let in_flight = connection.endpoint.next_offset().saturating_sub(info.acknowledged.max(1));
                returned(0, in_flight.saturating_add(info.unsent))
            }
            Request::Shutdown { reading, writing, .. } => {
                connection.reading_shut |= reading;
                if writing {
                    connection.endpoint.handle_shutdown(now);
                }
                Reply::DONE
            }
            Request::Poll { events, waits, .. } => connection.poll(events, waits && blocking),
            _ => Reply::Failed("EINVAL"),
        }
    }
}

fn returned(result: i64, value: u64) -> Reply {
    Reply::Returned(result, i64::try_from(value).ok())
}

/// Linux's `errno` numbers.
fn number_of_error(name: &str) -> i64 {
    match name {
        "ECONNREFUSED" => 111,
        "ETIMEDOUT" => 110,
        "EPIPE" => 32,
        _ => 104,
    }
}
