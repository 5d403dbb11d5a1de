//! What a results directory consists of: every file that was written, with its length and SHA-256.
//!
//! The manifest tells whether results are as they were written ([`Manifest::verify`]), and which files
//! of a directory may go when new results take its place ([`foreign`]).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::schema::TABLES;

/// The file's name.
pub const MANIFEST: &str = "manifest.json";
const FORMAT: u32 = 1;

/// The files of a results directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The version that wrote them.
    gargalo: String,
    /// By path from the directory, with `/`.
    files: BTreeMap<String, Sum>,
}

/// What a file was when it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    sha256: String,
}

impl Manifest {
    /// Of all files in a directory as they are now.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn of(dir: &Path) -> Result<Self, Error> {
        let mut manifest = Self {
            format: FORMAT,
            gargalo: env!("CARGO_PKG_VERSION").to_owned(),
            files: BTreeMap::new(),
        };
        let mut names = Vec::new();
        walk(dir, &mut |name, _| {
            names.push(name.to_owned());
            true
        })?;
        manifest.add(dir, names.iter().map(String::as_str))?;
        Ok(manifest)
    }

    /// Of a directory; `None` if it has none, or a file of that name that is no manifest.
    pub fn read(dir: &Path) -> Option<Self> {
        let text = fs::read(dir.join(MANIFEST)).ok()?;
        let found: Self = serde_json::from_slice(&text).ok()?;
        (found.format == FORMAT).then_some(found)
    }

    /// Notes files that were added, or written anew.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn add<'a>(
        &mut self,
        dir: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        for name in names.into_iter().filter(|n| *n != MANIFEST) {
            let path = dir.join(name);
            let sum = Sum::of(&path).map_err(|e| Error::io("read", &path, e))?;
            self.files.insert(name.to_owned(), sum);
        }
        Ok(())
    }

    /// Writes it into its directory; it appears whole.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(MANIFEST);
        let new = dir.join(format!(".{MANIFEST}"));
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = text
            .and_then(|t| fs::write(&new, t))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(|e| {
            // Best effort: the first error is the one to report.
            let _ = fs::remove_file(&new);
            Error::io("write", &path, e)
        })
    }

    /// Compares files with what was written; a name that was not written is fine if there is no such
    /// file.
    ///
    /// # Errors
    /// The first that differs.
    pub fn verify<'a>(
        &self,
        dir: &Path,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), Error> {
        for name in names {
            let path = dir.join(name);
            let damaged = |why: String| {
                Err(Error::Damaged {
                    path: path.clone(),
                    why,
                })
            };
            match (self.files.get(name), Sum::of(&path)) {
                (None, Err(e)) if e.kind() == ErrorKind::NotFound => {}
                (None, _) => return damaged(format!("it is not in {MANIFEST}")),
                (_, Err(e)) => return damaged(format!("it cannot be read: {e}")),
                (Some(was), Ok(is)) if *was != is => {
                    return damaged("its checksum does not match".to_owned());
                }
                (Some(_), Ok(_)) => {}
            }
        }
        Ok(())
    }
}

impl Sum {
    fn of(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut digest = Sha256::new();
        let mut bytes = 0;
        let mut piece = vec![0; 1 << 16];
        loop {
            let n = file.read(&mut piece)?;
            if n == 0 {
                break;
            }
            digest.update(&piece[..n]);
            bytes += n as u64;
        }
        Ok(Self {
            bytes,
            sha256: format!("{:x}", digest.finalize()),
        })
    }
}

/// The first file of a directory that Gargalo did not write; `None` if the directory may be replaced.
///
/// Written is what the manifest lists, and the report that may be added to it. Older versions wrote no manifest: there
/// `run.json` or `scorecard.json` must have the keys that they gave it, and every file a name that they gave. A
/// directory with neither is foreign itself.
///
/// # Errors
/// When the directory cannot be read.
pub fn foreign(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let facts = dir
        .symlink_metadata()
        .map_err(|e| Error::io("read", dir, e))?;
    if !facts.is_dir() {
        return Ok(Some(dir.to_owned()));
    }
    let manifest = Manifest::read(dir);
    let ours = |name: &str| match &manifest {
        Some(m) => UNLISTED.contains(&name) || m.files.contains_key(name),
        None => is_ours(name),
    };
    let mut found = None;
    let mut count = 0;
    walk(dir, &mut |name, plain| {
        count += 1;
        if !plain || !ours(name) {
            found = Some(dir.join(name));
        }
        found.is_none()
    })?;
    let results = manifest.is_some() || MARKS.iter().any(|m| m.is_of(dir));
    if found.is_none() && count > 0 && !results {
        found = Some(dir.to_owned());
    }
    Ok(found)
}

/// Beside what a manifest lists; the last is of a writer that was killed.
const UNLISTED: [&str; 3] = [MANIFEST, "report.html", ".manifest.json"];

/// A file that makes a directory results if it has no manifest.
struct Mark {
    name: &'static str,
    /// What every version wrote into it.
    keys: [&'static str; 3],
}

const MARKS: [Mark; 2] = [
    Mark {
        name: "run.json",
        keys: ["version", "source", "scenario"],
    },
    Mark {
        name: "scorecard.json",
        keys: ["engine", "algorithm", "criteria"],
    },
];

impl Mark {
    fn is_of(&self, dir: &Path) -> bool {
        let text = fs::read(dir.join(self.name)).unwrap_or_default();
        let found: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        found.is_some_and(|f| self.keys.iter().all(|key| f.get(key).is_some()))
    }
}

const FILES: [&str; 8] = [
    "run.json",
    "summary.json",
    "capture.pcapng",
    "report.html",
    "scorecard.json",
    "scorecard.html",
    "runs.parquet",
    // A manifest whose writer was killed.
    ".manifest.json",
];
const PICTURES: [&str; 7] = [
    "congestion_window",
    "goodput",
    "rtt",
    "queue",
    "paths",
    "out_of_order",
    "subflow_window",
];

/// Whether a path in a results directory is one that Gargalo gives.
fn is_ours(name: &str) -> bool {
    if let Some((folder, file)) = name.split_once('/') {
        return match folder {
            "qlog" => file.ends_with(".sqlog") && !file.contains('/'),
            "scenarios" => file.ends_with(".toml") && file.matches('/').count() == 1,
            _ => false,
        };
    }
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
    FILES.contains(&name)
        || (kind == "parquet" && TABLES.iter().any(|t| t.name == stem))
        || (matches!(kind, "png" | "svg") && PICTURES.contains(&stem))
}

/// Tells of every file below a directory, by its path from there, and whether it is a plain file;
/// false stops it.
fn walk(dir: &Path, tell: &mut dyn FnMut(&str, bool) -> bool) -> Result<(), Error> {
    let mut open = vec![(dir.to_owned(), String::new())];
    while let Some((folder, prefix)) = open.pop() {
        let fail = |e| Error::io("read", &folder, e);
        let mut entries: Vec<_> = fs::read_dir(&folder)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(fail)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type().map_err(fail)?;
            if kind.is_dir() {
                open.push((entry.path(), format!("{name}/")));
            } else if !tell(&name, kind.is_file()) {
                return Ok(());
            }
        }
    }
    Ok(())
}
