//! Files as streams: plain or compressed with gzip, with a count of what has been read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::Error;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How much of a file is looked at to tell what it is.
const START: usize = 1 << 16;

/// The content of a file.
pub struct Input {
    content: BufReader<Box<dyn Read + Send>>,
    read: Read64,
}

type Read64 = Arc<AtomicU64>;

impl Input {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened or its beginning not read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let fail = |e| Error::io(path, e);
        let file = File::open(path).map_err(fail)?;
        if file.metadata().map_err(fail)?.is_dir() {
            return Err(fail(io::ErrorKind::IsADirectory.into()));
        }
        let read = Read64::default();
        let counted = Counted {
            inner: file,
            read: Arc::clone(&read),
        };
        let mut raw = BufReader::with_capacity(START, counted);
        let packed = raw.fill_buf().map_err(fail)?.starts_with(&GZIP);
        let content: Box<dyn Read + Send> = match packed {
            true => Box::new(MultiGzDecoder::new(raw)),
            false => Box::new(raw),
        };
        let content = BufReader::with_capacity(START, content);
        Ok(Self { content, read })
    }

    /// The beginning of the content, which stays to be read; empty if that cannot be read.
    pub fn start(&mut self) -> &[u8] {
        self.content.fill_buf().unwrap_or_default()
    }

    /// Bytes of the file that have been read.
    pub fn read_so_far(&self) -> impl Fn() -> u64 + use<> {
        let read = Arc::clone(&self.read);
        move || read.load(Ordering::Relaxed)
    }

    /// The content.
    pub fn into_content(self) -> BufReader<Box<dyn Read + Send>> {
        self.content
    }
}

/// Counts what is read.
struct Counted {
    inner: File,
    read: Read64,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
