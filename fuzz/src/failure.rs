//! Files of inputs that failed.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::Target;

/// Keeps the current input in a file, so that it remains after an abort, a stack overflow or a kill.
#[derive(Debug)]
pub(crate) struct AtWork {
    file: File,
    path: PathBuf,
}

impl AtWork {
    /// Creates the file in this directory, which is created if needed; each process has a file of its own.
    pub(crate) fn new(dir: &Path, target: &Target) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        let path = dir.join(format!("{}-at-work-{}", target.name, std::process::id()));
        let file = File::create(&path)?;
        Ok(Self { file, path })
    }

    /// Stores the next input.
    pub(crate) fn set(&mut self, input: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(input)?;
        self.file.set_len(input.len() as u64)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the input that failed; returns how to reproduce the failure.
    pub(crate) fn keep(self, target: &Target, input: &[u8]) -> String {
        let kept = self
            .path
            .with_file_name(format!("{}-{:016x}", target.name, hash(input)));
        match fs::rename(&self.path, &kept) {
            Ok(()) => again(target, &kept),
            Err(_) => again(target, &self.path),
        }
    }

    /// Removes the file: no input failed.
    pub(crate) fn done(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The sentence that says how to run a failing input again.
pub(crate) fn again(target: &Target, path: &Path) -> String {
    format!(
        "the input is in {}; again: cargo run --release -p gargalo-fuzz -- replay {} {}",
        path.display(),
        target.name,
        path.display()
    )
}

/// FNV-1a: a name for an input.
pub(crate) fn hash(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
