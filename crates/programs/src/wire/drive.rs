use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use gargalo_device::coalesce::{Batch, Sums};
use gargalo_device::port::Arrived;
use gargalo_device::{Clock, Error, Result};
use gargalo_host::Host;
use gargalo_units::{Duration, Instant};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;

use super::terminal::{Sink, Source, bell, standard_input, standard_output};
use super::{Capture, Wire};
use crate::application::{Application, Outcome, Output};

/// Most datagrams read from the kernel before the host may respond.
const READS: usize = 64;
/// Most bytes passed to the kernel before it is read again.
const WRITES: usize = 256 << 10;
/// Longest wait between two checks for signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// The user's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// No request: the program continues.
    GoOn,
    /// The program must end in order.
    Interrupt,
    /// The program must end at once.
    Stop,
}

/// The program's connection to its user: texts, and the data it reads and writes.
pub struct Outlet<'a> {
    /// Prints texts of the program on standard output or standard error.
    pub print: &'a mut dyn FnMut(Output) -> Result<()>,
    /// Called several times a second.
    pub watch: &'a mut dyn FnMut() -> Watch,
    /// The input file of the program; `None`: standard input, if it reads at all.
    pub input: Option<Box<dyn io::Read + Send>>,
    /// The output file of the program; `None`: standard output, if it writes any data.
    pub output: Option<Box<dyn io::Write + Send>>,
    /// The program reads and writes data.
    pub has_data: bool,
}

struct Pipes {
    source: Source,
    sink: Sink,
}

impl Wire {
    /// Runs a program until it ends.
    ///
    /// # Errors
    /// When the device or a file fails, or whatever `print` returns.
    pub fn run(
        &mut self,
        host: &mut Host,
        app: &mut dyn Application,
        mut outlet: Outlet<'_>,
    ) -> Result<Outcome> {
        let bell = bell()?;
        let mut pipes = Pipes::open(&mut outlet, &bell)?;
        let mut loop_ = Loop {
            wire: self,
            batch: Batch::new(Sums::Left),
            bell,
            looked: Instant::ZERO,
            interrupted: false,
        };
        let outcome = loop_.run(host, app, &mut outlet, pipes.as_mut());
        let outcome = outcome?;
        if let Some(pipes) = &mut pipes {
            pipes.drain(host, app, self.clock)?;
        }
        if let Some(capture) = self.capture.take() {
            let finished = capture.writer.finish();
            finished.map_err(|e| Error::system("writing the capture", e))?;
        }
        Ok(outcome)
    }
}

struct Loop<'w> {
    wire: &'w mut Wire,
    batch: Batch,
    bell: Arc<EventFd>,
    /// When signals were last checked.
    looked: Instant,
    interrupted: bool,
}

impl Loop<'_> {
    fn run(
        &mut self,
        host: &mut Host,
        app: &mut dyn Application,
        outlet: &mut Outlet<'_>,
        mut pipes: Option<&mut Pipes>,
    ) -> Result<Outcome> {
        let mut now = self.wire.clock.now();
        app.start(host, now);
        loop {
            if let Some(pipes) = pipes.as_deref_mut() {
                pipes.turn(host, app, now)?;
            }
            self.turn(host, app, now);
            let more = self.transmit(host, now)?;
            while let Some(text) = app.poll_output() {
                (outlet.print)(text)?;
            }
            if let Some(outcome) = app.outcome() {
                let outcome = outcome.clone();
                self.farewell(host)?;
                return Ok(outcome);
            }
            if now.saturating_since(self.looked) >= PATIENCE {
                self.looked = now;
                match (outlet.watch)() {
                    Watch::GoOn => {}
                    Watch::Interrupt if !self.interrupted => {
                        self.interrupted = true;
                        app.interrupt(host, now);
                        continue;
                    }
                    Watch::Interrupt | Watch::Stop => {
                        return Ok(Outcome::Failed("interrupted".to_owned()));
                    }
                }
            }
            if !more {
                let due = [host.poll_timeout(), app.poll_timeout()];
                self.wait(due.into_iter().flatten().min())?;
            }
            now = self.receive(host)?;
            host.handle_timeout(now);
            if app.poll_timeout().is_some_and(|at| at <= now) {
                app.handle_timeout(host, now);
            }
        }
    }

    fn turn(&mut self, host: &mut Host, app: &mut dyn Application, now: Instant) {
        while let Some(event) = host.poll_event() {
            app.on_event(host, now, event);
        }
        app.turn(host, now);
    }

    /// Sends the host's datagrams, at most [`WRITES`] bytes; returns whether there may be more.
    fn transmit(&mut self, host: &mut Host, now: Instant) -> Result<bool> {
        let join = self.wire.port.offloads();
        self.batch.clear();
        let mut more = true;
        while self.batch.size() < WRITES {
            let from = self.batch.size();
            more = self.batch.push(join, |out| host.poll_transmit(now, out));
            if !more {
                break;
            }
            if let Some(capture) = &mut self.wire.capture {
                capture.write(now, self.batch.last(from))?;
            }
        }
        for run in self.batch.runs() {
            self.wire
                .port
                .send(&run)
                .map_err(|e| Error::system("writing to the device", e))?;
        }
        Ok(more)
    }

    /// Reads from the kernel at most [`READS`] datagrams; returns the time.
    fn receive(&mut self, host: &mut Host) -> Result<Instant> {
        let wire = &mut *self.wire;
        for _ in 0..READS {
            let arrived = wire.port.receive();
            let arrived = arrived.map_err(|e| Error::system("reading from the device", e))?;
            let Some(arrived) = arrived else { break };
            // Read after the datagram: a time before its arrival would make round-trip times too short.
            let now = wire.clock.now();
            if let Some(capture) = &mut wire.capture {
                capture.write(now, arrived.bytes())?;
            }
            match arrived {
                Arrived::Raw(datagram) => host.handle(now, datagram),
                Arrived::Verified(datagram) => host.handle_verified(now, datagram),
                Arrived::Large(datagram) => host.handle_shared(now, &datagram),
            }
        }
        Ok(wire.clock.now())
    }

    /// Sleeps until something arrives, a thread signals the event, or `due`.
    fn wait(&self, due: Option<Instant>) -> Result<()> {
        let until = due.map_or(PATIENCE, |at| self.wire.clock.until(at).min(PATIENCE));
        let mut fds = [
            PollFd::new(self.wire.port.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.bell.as_fd(), PollFlags::POLLIN),
        ];
        let timeout = TimeSpec::from_duration(std::time::Duration::from_nanos(until.as_nanos()));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(e) => return Err(Error::system("waiting for the device", e)),
        }
        if fds[1].any() == Some(true) {
            let _ = self.bell.read();
        }
        Ok(())
    }

    /// Sends the remaining datagrams, such as resets.
    fn farewell(&mut self, host: &mut Host) -> Result<()> {
        while self.transmit(host, self.wire.clock.now())? {}
        Ok(())
    }
}

impl Capture {
    fn write(&mut self, now: Instant, datagram: &[u8]) -> Result<()> {
        self.writer
            .write(now, self.interface, datagram)
            .map_err(|e| Error::system("writing the capture", e))
    }
}

impl Pipes {
    fn open(outlet: &mut Outlet<'_>, bell: &Arc<EventFd>) -> Result<Option<Self>> {
        if !outlet.has_data {
            return Ok(None);
        }
        let input = match outlet.input.take() {
            Some(file) => file,
            None => standard_input()?,
        };
        let output = match outlet.output.take() {
            Some(file) => file,
            None => standard_output()?,
        };
        Ok(Some(Self {
            source: Source::new(input, bell.clone()),
            sink: Sink::new(output, bell.clone()),
        }))
    }

    fn turn(&mut self, host: &mut Host, app: &mut dyn Application, now: Instant) -> Result<()> {
        while app.input_room(host) > 0 {
            let piece = self.source.poll();
            match piece.map_err(|e| Error::system("reading the input", e))? {
                None => break,
                Some(piece) => app.on_input(host, now, Some(piece).filter(|p| !p.is_empty())),
            }
        }
        self.pour(host, app, now)
    }

    fn pour(&mut self, host: &mut Host, app: &mut dyn Application, now: Instant) -> Result<()> {
        let failed = |e| Error::system("writing the output", e);
        while self.sink.has_room().map_err(failed)? {
            let Some(piece) = app.poll_data(host, now) else {
                break;
            };
            self.sink.write(piece).map_err(failed)?;
        }
        Ok(())
    }

    /// Writes the rest of the output, waiting for its reader.
    fn drain(&mut self, host: &mut Host, app: &mut dyn Application, clock: Clock) -> Result<()> {
        self.pour(host, app, clock.now())?;
        self.sink
            .close()
            .map_err(|e| Error::system("writing the output", e))
    }
}
