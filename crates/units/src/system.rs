//! The system's files and errors: files are read with a bound, errors are described without their numbers.

use std::fs::{File, metadata};
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of a file that are read: a trace of an hour at 100 Mbit/s has 240 MB.
pub const LONGEST_FILE: u64 = 256 << 20;

/// Reads a regular file of at most [`LONGEST_FILE`] bytes: a device or a pipe, for example, may have no end.
///
/// # Errors
/// When it is of another kind, longer, or cannot be read.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let facts = metadata(path)?;
    if facts.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !facts.is_file() {
        return Err(io::Error::other(
            "it is a device or a pipe, not a regular file; copy what is needed to a file",
        ));
    }
    read_bounded(path, facts.len(), LONGEST_FILE)
}

fn read_bounded(path: &Path, size: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if size <= most {
        // It may grow, and files of /proc have no length.
        File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    }
    let size = size.max(bytes.len() as u64);
    if size > most {
        return Err(io::Error::other(format!(
            "it has {size} bytes, more than the {most} that are read; check that it is the right file"
        )));
    }
    Ok(bytes)
}

/// The system's description of an error, without its number, which `Display` adds.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((message, _)) => message.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_have_no_end_or_are_too_long_are_not_read() {
        if cfg!(unix) {
            let message = read_file(Path::new("/dev/zero")).unwrap_err().to_string();
            assert!(message.contains("not a regular file"), "{message}");
        }
        let here = Path::new(file!()).file_name().unwrap();
        let here = Path::new("src").join(here);
        let size = read_file(&here).unwrap().len() as u64;
        // As long as it says, and longer than it says.
        for announced in [size, 0] {
            let e = read_bounded(&here, announced, size - 1)
                .unwrap_err()
                .to_string();
            assert!(e.contains("more than the"), "{e}");
            assert_eq!(
                read_bounded(&here, announced, size).unwrap().len() as u64,
                size
            );
        }
    }

    #[test]
    fn reasons_have_no_numbers() {
        let e = read_file(Path::new("src/no-such-file")).unwrap_err();
        assert!(e.to_string().contains("os error"));
        assert!(!reason(&e).contains("os error"));
        assert_eq!(reason(&io::Error::other("a sentence")), "a sentence");
    }
}
