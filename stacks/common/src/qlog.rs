//! A qlog file that the stack reads too: some state is told there only.

use std::io::{self, Write};

use gargalo_plugin::stack::host;

/// Shows each line to a function, and passes it on to the host; for a `LineWriter`.
pub struct Watched<F>(pub F);

impl<F: FnMut(&str)> Write for Watched<F> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0(&String::from_utf8_lossy(data));
        host::QlogFile.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
