//! The load: kept-alive connections on one thread, one request at a time on each, raw bytes out and a glance at what
//! comes back.
//!
//! The machine is shared with the server that is measured, so this does as little as it can: requests are written from
//! prepared bytes, and of an answer only the status, the length and one text are looked at. Every request must be answered as
//! expected; anything else is an error, and errors void a run.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use memchr::memmem;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Socket, Type};

/// Connections kept alive; no pipelining.
pub(crate) const CONNECTIONS: usize = 64;

/// Clients that the connections pretend to be: each address of the loopback network has buckets of its own in the
/// limiter, and one alone would reach its limit of a million a minute.
const ADDRESSES: usize = 16;

/// Longer than any answer here.
const BUFFER: usize = 256 << 10;

/// A server that says nothing for this long is dead.
const SILENCE: Duration = Duration::from_secs(20);

/// A prepared request, and the number that changes in it.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    number_at: Option<usize>,
}

/// Where a request's number stands, in what it is made from: twelve digits, so that every request has the same length.
pub(crate) const NUMBER: &str = "############";

/// The twelve digits that a number is written as: a permutation, so that addresses arrive in random order. In ascending order an
/// index would only grow at its edge, and its cost would stay hidden.
pub(crate) const fn shuffled(number: u64) -> u64 {
    (number as u128 * SHUFFLE as u128 % 1_000_000_000_000) as u64
}

/// A factor without a divisor in common with 10^12.
pub(crate) const SHUFFLE: u64 = 618_033_988_749;

/// Where a request's number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Each is new.
    Fresh,
    /// One of the first so many, at random.
    Known(u64),
    /// None: each of the prepared requests is sent once, in their order.
    EachOnce,
    /// None: the prepared requests are sent in their order, over and over.
    InTurn,
}

/// What every answer must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    pub status: &'static str,
    /// Somewhere in its head or body.
    pub holds: &'static str,
}

impl Expected {
    pub(crate) const OK: Self = Self { status: "200", holds: "" };

    fn is(self, answer: &[u8]) -> bool {
        let rest = answer.strip_prefix(b"HTTP/1.1 ").and_then(|rest| rest.strip_prefix(self.status.as_bytes()));
        rest.is_some()
            && (self.holds.is_empty() || memmem::find(answer, self.holds.as_bytes()).is_some())
            && memmem::find(answer, b"\"isError\":true").is_none()
    }
}

impl Request {
    pub(crate) fn get(path: &str) -> Self {
        Self::new(&format!("GET {path} HTTP/1.1\r\nhost: bench.test\r\n\r\n"))
    }

    /// The same with more headers, each with its end of line.
    pub(crate) fn get_with(path: &str, headers: &str) -> Self {
        Self::new(&format!("GET {path} HTTP/1.1\r\nhost: bench.test\r\n{headers}\r\n"))
    }

    pub(crate) fn post(path: &str, headers: &str, body: &str) -> Self {
        Self::new(&format!(
            "POST {path} HTTP/1.1\r\nhost: bench.test\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// A form of a page of our own, as a browser sends it.
    pub(crate) fn form(path: &str, headers: &str, fields: &str) -> Self {
        Self::new(&format!(
            "POST {path} HTTP/1.1\r\nhost: bench.test\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             sec-fetch-site: same-origin\r\n{headers}content-length: {}\r\n\r\n{fields}",
            fields.len()
        ))
    }

    fn new(text: &str) -> Self {
        Self { number_at: text.find(NUMBER), bytes: text.as_bytes().to_vec() }
    }

    fn set_number(&mut self, number: u64) {
        let Some(at) = self.number_at else { return };
        let mut number = shuffled(number);
        for digit in self.bytes[at..at + NUMBER.len()].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

/// What is sent, and where to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The connections take these in turn.
    pub addresses: Vec<SocketAddr>,
    /// These too.
    pub requests: Arc<[Request]>,
    pub numbers: Numbers,
    pub expected: Expected,
    /// The next fresh number, or how many of the prepared requests were sent.
    pub next: u64,
}

impl Target {
    /// The most requests of a turn when there are so many: what can be sent once must last for all of them. Each connection is
    /// served once before a turn counts.
    pub(crate) fn a_turn(&self, turns: usize) -> u64 {
        match self.numbers {
            Numbers::EachOnce => (self.requests.len() / turns.max(1)).saturating_sub(CONNECTIONS) as u64,
            Numbers::Fresh | Numbers::Known(_) | Numbers::InTurn => u64::MAX,
        }
    }
}

/// What came of a stretch of load.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// Answered as expected.
    pub answered: u64,
    pub errors: u64,
    pub first_error: Option<String>,
    pub elapsed: Duration,
    /// From when a request was due to its answer, in microseconds; only of a fixed rate.
    pub latencies: Vec<u32>,
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pace {
    /// Each connection sends its next request as soon as it has its answer, until so many were sent.
    Closed { lasting: Duration, most: u64 },
    /// Requests are due at a fixed rate, whatever became of the ones before: a slow answer delays the next ones on their
    /// way, and their wait counts from when they were due.
    Open { a_second: u32, lasting: Duration },
    /// So many in all.
    Count(u64),
}

struct Connection {
    stream: TcpStream,
    request: Request,
    buffer: Vec<u8>,
    filled: usize,
    /// When the request under way was due; none while idle.
    due: Option<Instant>,
}

/// Connections to one server, ready to be used.
pub(crate) struct Load {
    poll: Poll,
    connections: Vec<Connection>,
    requests: Arc<[Request]>,
    numbers: Numbers,
    expected: Expected,
    pub next: u64,
    random: u64,
    outcome: Outcome,
    keep_latencies: bool,
}

impl Load {
    pub(crate) fn connect(target: &Target, connections: usize) -> anyhow::Result<Self> {
        let poll = Poll::new()?;
        let connections = (0..connections)
            .map(|i| {
                let mut stream =
                    TcpStream::from_std(connect(target.addresses[i % target.addresses.len()], i % ADDRESSES)?);
                poll.registry().register(&mut stream, Token(i), Interest::READABLE)?;
                let request = target.requests[i % target.requests.len()].clone();
                Ok(Connection { stream, request, buffer: vec![0; BUFFER], filled: 0, due: None })
            })
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            poll,
            connections,
            requests: Arc::clone(&target.requests),
            numbers: target.numbers,
            expected: target.expected,
            next: target.next,
            random: 0x9e37_79b9_7f4a_7c15,
            outcome: Outcome::default(),
            keep_latencies: false,
        })
    }

    /// Sends load at that pace, then waits for what is still under way.
    pub(crate) fn run(&mut self, pace: Pace) -> anyhow::Result<Outcome> {
        self.outcome = Outcome::default();
        self.keep_latencies = matches!(pace, Pace::Open { .. });
        let begun = Instant::now();
        match pace {
            Pace::Closed { lasting, most } => self.closed(begun, Some(begun + lasting), most)?,
            Pace::Count(requests) => self.closed(begun, None, requests)?,
            Pace::Open { a_second, lasting } => self.open(begun, a_second, lasting)?,
        }
        self.outcome.elapsed = begun.elapsed();
        Ok(std::mem::take(&mut self.outcome))
    }

    fn closed(&mut self, begun: Instant, end: Option<Instant>, most: u64) -> anyhow::Result<()> {
        let mut sent = 0;
        for i in 0..self.connections.len() {
            if sent < most {
                self.send(i, begun)?;
                sent += 1;
            }
        }
        let mut under_way = sent;
        let mut events = Events::with_capacity(self.connections.len());
        while under_way > 0 {
            self.poll.poll(&mut events, Some(SILENCE))?;
            if events.is_empty() {
                bail!("the server has not answered for {} seconds", SILENCE.as_secs());
            }
            let over = end.is_some_and(|end| Instant::now() >= end);
            for event in &events {
                let Token(i) = event.token();
                if !self.receive(i)? {
                    continue;
                }
                if over || sent >= most {
                    under_way -= 1;
                } else {
                    self.send(i, begun)?;
                    sent += 1;
                }
            }
        }
        Ok(())
    }

    fn open(&mut self, begun: Instant, a_second: u32, lasting: Duration) -> anyhow::Result<()> {
        let all = (lasting.as_secs_f64() * f64::from(a_second)) as u64;
        let due = |n: u64| begun + Duration::from_secs_f64(n as f64 / f64::from(a_second));
        let mut idle: Vec<usize> = (0..self.connections.len()).collect();
        let (mut sent, mut answered) = (0, 0);
        let mut events = Events::with_capacity(self.connections.len());
        let mut heard = Instant::now();
        while answered < all {
            let now = Instant::now();
            while sent < all && due(sent) <= now {
                let Some(i) = idle.pop() else { break };
                self.send(i, due(sent))?;
                sent += 1;
            }
            // Without sleeping: the system's timers are coarser than what is measured here.
            self.poll.poll(&mut events, Some(Duration::ZERO))?;
            for event in &events {
                let Token(i) = event.token();
                if self.receive(i)? {
                    idle.push(i);
                    answered += 1;
                    heard = Instant::now();
                }
            }
            if sent > answered && heard.elapsed() > SILENCE + lasting {
                bail!("the server has not answered for {} seconds", SILENCE.as_secs());
            }
        }
        Ok(())
    }

    fn send(&mut self, i: usize, due: Instant) -> anyhow::Result<()> {
        let number = match self.numbers {
            Numbers::Fresh => {
                self.next += 1;
                self.next
            }
            Numbers::Known(most) => {
                // xorshift: which person is asked for should not follow the order on disk.
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                self.random % most + 1
            }
            Numbers::EachOnce | Numbers::InTurn => {
                let index = usize::try_from(self.next)?;
                let again = self.numbers == Numbers::InTurn;
                let index = if again { index % self.requests.len() } else { index };
                let prepared = self.requests.get(index).context("more requests were sent than were prepared")?;
                self.connections[i].request.clone_from(prepared);
                self.next += 1;
                0
            }
        };
        let connection = &mut self.connections[i];
        connection.request.set_number(number);
        connection.due = Some(due);
        let written = connection.stream.write(&connection.request.bytes).context("a request could not be sent")?;
        if written < connection.request.bytes.len() {
            bail!("a request did not fit into the socket's buffer");
        }
        Ok(())
    }

    /// Reads what is there; true once the answer is whole.
    fn receive(&mut self, i: usize) -> anyhow::Result<bool> {
        let connection = &mut self.connections[i];
        loop {
            match connection.stream.read(&mut connection.buffer[connection.filled..]) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(read) => connection.filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error).context("an answer could not be read"),
            }
            let Some(length) = length(&connection.buffer[..connection.filled])? else { continue };
            if connection.filled > length {
                bail!("an answer is longer than it says");
            }
            if connection.filled < length {
                continue;
            }
            connection.filled = 0;
            let Some(due) = connection.due.take() else { bail!("an answer to no request") };
            let answer = &connection.buffer[..length];
            if self.expected.is(answer) {
                self.outcome.answered += 1;
            } else {
                self.outcome.errors += 1;
                if self.outcome.first_error.is_none() {
                    self.outcome.first_error = Some(String::from_utf8_lossy(answer).into_owned());
                }
            }
            if self.keep_latencies {
                let waited = u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX);
                self.outcome.latencies.push(waited);
            }
            return Ok(true);
        }
    }
}

/// How long the answer is, head and body, once its head is there.
fn length(answer: &[u8]) -> anyhow::Result<Option<usize>> {
    const FIELD: &[u8] = b"\r\ncontent-length: ";
    let Some(end) = memmem::find(answer, b"\r\n\r\n") else { return Ok(None) };
    let field = memmem::find(&answer[..end], FIELD).context("an answer without its length")?;
    let digits = answer[field + FIELD.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let body = digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'));
    Ok(Some(end + 4 + body))
}

fn connect(server: SocketAddr, client: usize) -> anyhow::Result<std::net::TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    let address = Ipv4Addr::new(127, 0, 0, 2 + client as u8);
    socket.bind(&SocketAddr::from((address, 0)).into())?;
    socket.connect(&server.into()).context("cannot connect to the server")?;
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// One request on a connection of its own; the whole answer.
pub(crate) fn ask(server: SocketAddr, request: &Request) -> anyhow::Result<String> {
    let (requests, numbers) = (vec![request.clone()].into(), Numbers::Known(1));
    let target = Target { addresses: vec![server], requests, numbers, expected: Expected::OK, next: 0 };
    let mut load = Load::connect(&target, 1)?;
    let outcome = load.run(Pace::Count(1))?;
    if let Some(error) = outcome.first_error {
        bail!("not what was expected: {error}");
    }
    let answer = &load.connections[0].buffer;
    let length = length(answer)?.context("no whole answer")?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_place() {
        let mut request = Request::post("/x", "", "{\"email\":\"p############@example.com\"}");
        let before = request.bytes.len();
        // 1207 × 618,033,988,749, its last twelve digits.
        request.set_number(1207);
        assert!(String::from_utf8(request.bytes.clone()).unwrap().ends_with("\"p967024420043@example.com\"}"));
        assert_eq!(request.bytes.len(), before);
    }

    #[test]
    fn what_can_be_sent_once_lasts_for_all_turns() {
        let target = |numbers| Target {
            addresses: Vec::new(),
            requests: vec![Request::get("/"); 1000].into(),
            numbers,
            expected: Expected::OK,
            next: 0,
        };
        assert_eq!(target(Numbers::EachOnce).a_turn(3), 333 - CONNECTIONS as u64);
        assert_eq!(target(Numbers::EachOnce).a_turn(1000), 0);
        assert_eq!(target(Numbers::InTurn).a_turn(3), u64::MAX);
    }

    #[test]
    fn an_answer_is_expected_by_its_status_and_its_text() {
        let entered = Expected { status: "303", holds: "set-cookie: union=" };
        assert!(entered.is(b"HTTP/1.1 303 See Other\r\nset-cookie: union=x\r\n\r\n"));
        assert!(!entered.is(b"HTTP/1.1 303 See Other\r\n\r\n"));
        assert!(!entered.is(b"HTTP/1.1 200 OK\r\nset-cookie: union=x\r\n\r\n"));
        assert!(Expected::OK.is(b"HTTP/1.1 200 OK\r\n\r\n{}"));
        assert!(!Expected::OK.is(b"HTTP/1.1 200 OK\r\n\r\n{\"isError\":true}"));
    }

    #[test]
    fn lengths_are_known_once_the_head_is_there() {
        assert_eq!(length(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n").unwrap(), None);
        assert_eq!(length(b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nabc").unwrap(), Some(41 + 12 - 2));
        assert!(length(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
