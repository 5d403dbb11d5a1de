//! Standard input and output, or files in their place, on threads of their own: a slow reader or writer must not delay
//! the stack's timers.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use gargalo_device::{Error, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};

/// Most bytes read at once.
const PIECE: usize = 128 << 10;
/// Pieces that may wait in each direction.
const WAITING: usize = 32;

/// The input of a program: pieces of a file in order.
#[derive(Debug)]
pub struct Source {
    pieces: Receiver<io::Result<Bytes>>,
    is_over: bool,
}

/// The output of a program.
#[derive(Debug)]
pub struct Sink {
    pieces: Option<SyncSender<Bytes>>,
    /// What the channel did not accept.
    kept: Option<Bytes>,
    writer: Option<JoinHandle<io::Result<()>>>,
}

/// Creates the event by which the threads wake the program.
pub(super) fn bell() -> Result<Arc<EventFd>> {
    EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
        .map(Arc::new)
        .map_err(|e| Error::system("making an eventfd", e))
}

impl Source {
    /// Reads `file` to its end on a thread that ends with the program.
    pub(super) fn new(mut file: Box<dyn Read + Send>, bell: Arc<EventFd>) -> Self {
        let (send, pieces) = sync_channel(WAITING);
        thread::spawn(move || {
            loop {
                let mut piece = vec![0; PIECE];
                let read = match file.read(&mut piece) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) => break,
                    Ok(n) => {
                        piece.truncate(n);
                        Ok(piece.into())
                    }
                    Err(e) => Err(e),
                };
                let failed = read.is_err();
                if send.send(read).is_err() || failed {
                    break;
                }
                let _ = bell.write(1);
            }
            drop(send);
            let _ = bell.write(1);
        });
        Self {
            pieces,
            is_over: false,
        }
    }

    /// Returns the next piece; `Ok(None)`: none is ready. An empty piece marks the end and is returned once.
    pub(super) fn poll(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        match self.pieces.try_recv() {
            Ok(piece) => piece.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                self.is_over = true;
                Ok(Some(Bytes::new()))
            }
        }
    }
}

impl Sink {
    /// Writes to `file` on a thread.
    pub(super) fn new(mut file: Box<dyn Write + Send>, bell: Arc<EventFd>) -> Self {
        let (pieces, receive) = sync_channel::<Bytes>(WAITING);
        let writer = thread::spawn(move || {
            for piece in receive {
                let written = file.write_all(&piece).and_then(|()| file.flush());
                let _ = bell.write(1);
                written?;
            }
            file.flush()
        });
        Self {
            pieces: Some(pieces),
            kept: None,
            writer: Some(writer),
        }
    }

    /// Whether it accepts more now.
    ///
    /// # Errors
    /// When the file could not be written.
    pub(super) fn has_room(&mut self) -> io::Result<bool> {
        match self.kept.take() {
            None => Ok(true),
            Some(piece) => {
                self.write(piece)?;
                Ok(self.kept.is_none())
            }
        }
    }

    /// Writes a piece, after [`has_room`](Self::has_room) returned true.
    ///
    /// # Errors
    /// When the file could not be written.
    pub(super) fn write(&mut self, piece: Bytes) -> io::Result<()> {
        let Some(pieces) = &self.pieces else {
            return Ok(());
        };
        match pieces.try_send(piece) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(piece)) => {
                self.kept = Some(piece);
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => self.close(),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// When it could not be written.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if let (Some(pieces), Some(kept)) = (self.pieces.take(), self.kept.take()) {
            let _ = pieces.send(kept);
        }
        match self.writer.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(written)) => written,
            Some(Err(_)) => Err(io::Error::other("the writing thread failed")),
        }
    }
}

/// Opens a second handle on standard input, without the interpreter's buffer.
///
/// # Errors
/// When it is closed.
pub(super) fn standard_input() -> Result<Box<dyn Read + Send>> {
    let copy = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| Error::system("reading standard input", e))?;
    Ok(Box::new(std::fs::File::from(copy)))
}

/// Opens a second handle on standard output.
///
/// # Errors
/// When it is closed.
pub(super) fn standard_output() -> Result<Box<dyn Write + Send>> {
    let copy = io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| Error::system("writing standard output", e))?;
    Ok(Box::new(std::fs::File::from(copy)))
}
