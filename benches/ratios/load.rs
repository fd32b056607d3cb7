//! The load generator: one thread with one epoll instance sends rendered requests on keep-alive connections.
//!
//! It must use less CPU than any server it measures, so it neither renders requests, nor keeps bodies, nor allocates
//! per request.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use crate::http::{self, parse_head};
use crate::plan::{Group, Pace, Run, Span, Tally, nanos};
use crate::process::{cpu_seconds, thread_seconds};
use crate::{Context, Result, fail};

/// The longest time without any response while some are due.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

struct Connection {
    stream: TcpStream,
    group: usize,
    /// The index of the next request of its group.
    next: usize,
    due: Instant,
    waiting: bool,
    /// The incomplete head of a response.
    head: Vec<u8>,
    /// The status and the missing bytes of the body, once the head is complete.
    body: Option<(u16, usize)>,
}

#[derive(Default)]
struct Counter {
    tally: Tally,
    sent: u64,
    /// Open loop: idle connections, and due times without an idle connection.
    idle: Vec<usize>,
    backlog: VecDeque<Instant>,
    scheduled: u64,
}

struct Engine<'a> {
    groups: &'a [Group<'a>],
    counters: Vec<Counter>,
    connections: Vec<Connection>,
    span: Span,
    begin: Instant,
    epoll: OwnedFd,
    waiting: usize,
    buffer: Vec<u8>,
}

/// Runs the groups concurrently against `address` and measures the CPU time of process `pid`.
pub fn run(address: SocketAddr, pid: u32, groups: &[Group<'_>], span: Span) -> Result<Run> {
    let mut engine = Engine::connect(address, groups, span)?;
    engine.drive(pid)
}

impl<'a> Engine<'a> {
    fn connect(address: SocketAddr, groups: &'a [Group<'a>], span: Span) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll")?;
        let mut connections = Vec::new();
        for (group, plan) in groups.iter().enumerate() {
            for nth in 0..plan.connections {
                let stream =
                    TcpStream::connect_timeout(&address, RESPONSE_TIMEOUT).context("connecting")?;
                stream.set_nodelay(true).context("TCP_NODELAY")?;
                stream.set_nonblocking(true).context("non-blocking mode")?;
                let data = epoll::EventData::new_u64(connections.len() as u64);
                epoll::add(&epoll, &stream, data, epoll::EventFlags::IN).context("epoll")?;
                // Start at different requests, so that connections do not read the same row at once.
                let next = nth * plan.requests.len() / plan.connections;
                let (due, head) = (Instant::now(), Vec::with_capacity(http::MAX_HEAD));
                let (waiting, body) = (false, None);
                connections.push(Connection { stream, group, next, due, waiting, head, body });
            }
        }
        // Give the server time to accept all connections: a run measures requests, not handshakes.
        std::thread::sleep(Duration::from_millis(20));
        let counters = groups.iter().map(|_| Counter::default()).collect();
        let (begin, waiting, buffer) = (Instant::now(), 0, vec![0; 256 * 1024]);
        Ok(Self { groups, counters, connections, span, begin, epoll, waiting, buffer })
    }

    fn drive(&mut self, pid: u32) -> Result<Run> {
        self.begin = Instant::now();
        self.first_requests()?;
        self.until(self.begin + self.span.ramp)?;
        let writer = thread_seconds(pid, "writer")?;
        let (marked, cpu, own) =
            (Instant::now(), cpu_seconds(pid)?, cpu_seconds(std::process::id())?);
        self.begin = marked;
        for counter in &mut self.counters {
            counter.tally = Tally::default();
            // The schedule restarts, so that requests missed during the ramp do not count.
            counter.scheduled = 0;
        }
        self.until(marked + self.span.length)?;
        let seconds = marked.elapsed().as_secs_f64();
        let server_cpu = cpu_seconds(pid)? - cpu;
        let writer_cpu = thread_seconds(pid, "writer")? - writer;
        let generator_busy = (cpu_seconds(std::process::id())? - own) / seconds;
        if self.span.drain {
            self.drain()?;
        }
        let finish = |counter: &mut Counter| {
            let mut tally = std::mem::take(&mut counter.tally);
            tally.rate = tally.answers as f64 / seconds;
            tally.latencies.sort_unstable();
            tally
        };
        let groups = self.counters.iter_mut().map(finish).collect();
        Ok(Run { groups, server_cpu, writer_cpu, generator_busy })
    }

    fn first_requests(&mut self) -> Result<()> {
        for at in 0..self.connections.len() {
            let group = self.connections[at].group;
            match self.groups[group].pace {
                Pace::Closed if self.may_send(group) => self.send(at, Instant::now())?,
                Pace::Closed => {}
                Pace::Open(_) => self.counters[group].idle.push(at),
            }
        }
        Ok(())
    }

    fn may_send(&self, group: usize) -> bool {
        self.span.limit.is_none_or(|limit| self.counters[group].sent < limit)
    }

    /// Whether every group has sent its limit and has all responses.
    fn spent(&self) -> bool {
        self.span.limit.is_some() && self.waiting == 0
    }

    fn until(&mut self, end: Instant) -> Result<()> {
        let mut heard = Instant::now();
        loop {
            let now = Instant::now();
            if now >= end || self.spent() {
                return Ok(());
            }
            let wait = self.send_due(now)?.unwrap_or(end).min(end);
            if self.listen(wait.saturating_duration_since(now), true)? {
                heard = Instant::now();
            } else if self.waiting > 0 && heard.elapsed() > RESPONSE_TIMEOUT {
                return fail("no response within 10 s");
            }
        }
    }

    /// Waits for outstanding responses. A response that never arrives counts with the time waited.
    fn drain(&mut self) -> Result<()> {
        let end = Instant::now() + RESPONSE_TIMEOUT;
        while self.waiting > 0 && Instant::now() < end {
            self.listen(Duration::from_millis(50), false)?;
        }
        for connection in self.connections.iter().filter(|connection| connection.waiting) {
            let tally = &mut self.counters[connection.group].tally;
            tally.latencies.push(nanos(connection.due.elapsed()));
        }
        for counter in &mut self.counters {
            let late = counter.backlog.drain(..).map(|due| nanos(due.elapsed()));
            counter.tally.latencies.extend(late);
        }
        Ok(())
    }

    /// Sends the requests of open groups that are due. Returns the time of the next one, if any group is open.
    fn send_due(&mut self, now: Instant) -> Result<Option<Instant>> {
        let mut next = None;
        for group in 0..self.groups.len() {
            let Pace::Open(rate) = self.groups[group].pace else {
                continue;
            };
            loop {
                let counter = &mut self.counters[group];
                let due = self.begin + Duration::from_secs_f64(counter.scheduled as f64 / rate);
                if due > now {
                    next = Some(next.map_or(due, |other: Instant| other.min(due)));
                    break;
                }
                counter.scheduled += 1;
                match counter.idle.pop() {
                    Some(at) => self.send(at, due)?,
                    None => counter.backlog.push_back(due),
                }
            }
        }
        Ok(next)
    }

    fn send(&mut self, at: usize, due: Instant) -> Result<()> {
        let connection = &mut self.connections[at];
        let requests = self.groups[connection.group].requests;
        let request = &requests[connection.next];
        connection.next = (connection.next + 1) % requests.len();
        // A small request always fits into an empty socket buffer.
        let written = connection.stream.write(request).context("sending")?;
        if written != request.len() {
            return fail("a request did not fit into the socket's buffer");
        }
        connection.due = due;
        connection.waiting = true;
        self.waiting += 1;
        self.counters[connection.group].sent += 1;
        Ok(())
    }

    /// Handles the data that has arrived, after waiting for at most `wait`. Returns whether any arrived.
    fn listen(&mut self, wait: Duration, resend: bool) -> Result<bool> {
        // A sleeping generator wakes too late for an open loop, so it polls on its own core.
        let open = self.groups.iter().any(|group| matches!(group.pace, Pace::Open(_)));
        let wait =
            if open && resend { Duration::ZERO } else { wait.min(Duration::from_millis(50)) };
        let timeout = Timespec::try_from(wait).context("timeout")?;
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => return Ok(false),
            outcome => outcome.context("epoll")?,
        };
        for event in &events {
            let data = event.data;
            self.receive(data.u64() as usize, resend)?;
        }
        if open && events.is_empty() {
            // Costs little on a core of its own, and yields a shared core to the server.
            std::thread::yield_now();
        }
        Ok(!events.is_empty())
    }

    fn receive(&mut self, at: usize, resend: bool) -> Result<()> {
        let connection = &mut self.connections[at];
        let read = match connection.stream.read(&mut self.buffer) {
            Ok(0) => return fail("the server closed a connection under load"),
            Ok(read) => read,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error).context("receiving"),
        };
        let Some(status) = connection.take(&self.buffer[..read])? else {
            return Ok(());
        };
        let group = connection.group;
        if status != self.groups[group].status {
            let seen = String::from_utf8_lossy(&self.buffer[..read.min(600)]).into_owned();
            return fail(format!("expected status {}, got: {seen}", self.groups[group].status));
        }
        self.answered(at, resend)
    }

    fn answered(&mut self, at: usize, resend: bool) -> Result<()> {
        let now = Instant::now();
        let connection = &mut self.connections[at];
        connection.waiting = false;
        self.waiting -= 1;
        let (group, due) = (connection.group, connection.due);
        let counter = &mut self.counters[group];
        // An open loop counts requests due in the measured time, a closed loop responses received in it.
        let open = matches!(self.groups[group].pace, Pace::Open(_));
        let counts = if open { due >= self.begin } else { resend };
        if counts {
            counter.tally.answers += 1;
            counter.tally.latencies.push(nanos(now - due));
        }
        if let Some(due) = counter.backlog.pop_front() {
            return self.send(at, due);
        }
        if open {
            counter.idle.push(at);
        } else if resend && self.may_send(group) {
            self.send(at, now)?;
        }
        Ok(())
    }
}

impl Connection {
    /// Consumes bytes of a response. Returns its status once it is complete.
    fn take(&mut self, mut bytes: &[u8]) -> Result<Option<u16>> {
        if self.body.is_none() {
            // The head nearly always arrives in one piece and is parsed in place.
            let before = self.head.len();
            let parsed = if before == 0 {
                parse_head(bytes)?
            } else {
                self.head.extend_from_slice(&bytes[..bytes.len().min(http::MAX_HEAD)]);
                parse_head(&self.head)?
            };
            let Some(head) = parsed else {
                if before == 0 {
                    self.head.extend_from_slice(bytes);
                }
                return Ok(None);
            };
            bytes = &bytes[head.head - before..];
            self.head.clear();
            self.body = Some((head.status, head.body));
        }
        let Some((status, left)) = self.body else {
            return Ok(None);
        };
        let left =
            left.checked_sub(bytes.len()).ok_or("more bytes than Content-Length announced")?;
        self.body = (left > 0).then_some((status, left));
        Ok((left == 0).then_some(status))
    }
}
