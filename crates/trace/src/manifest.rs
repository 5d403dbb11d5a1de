//! The manifest of a results directory: every file that was written, with its length and SHA-256.
//!
//! With the manifest, results are verified ([`Manifest::verify`]), and it is checked whether new results may
//! replace a directory ([`check_replaceable`]). It has a checksum of itself.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gargalo_units::{read_file, reason};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::schema::TABLES;

/// The file's name.
pub const MANIFEST: &str = "manifest.json";
const FORMAT: u32 = 2;
/// The format before the manifest had a checksum of itself; it can still be read.
const WITHOUT_CHECKSUM: u32 = 1;

/// Called after every piece of a file that is hashed; a break ends it with [`Error::Stopped`].
pub type GoOn<'a> = dyn FnMut() -> ControlFlow<()> + 'a;

/// A [`GoOn`] that never stops.
pub fn never_stop() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The files of a results directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    format: u32,
    /// The version of Gargalo that wrote them.
    gargalo: String,
    /// By path relative to the directory, with `/`.
    files: BTreeMap<String, Sum>,
    /// The checksum of this manifest as written without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// The fields that every format has.
#[derive(Deserialize)]
struct Header {
    format: u32,
    gargalo: String,
}

/// Length and SHA-256 of a file when it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sum {
    bytes: u64,
    sha256: String,
}

impl Default for Manifest {
    /// A manifest without files.
    fn default() -> Self {
        Self {
            format: FORMAT,
            gargalo: env!("CARGO_PKG_VERSION").to_owned(),
            files: BTreeMap::new(),
            sha256: None,
        }
    }
}

impl Manifest {
    /// The manifest of all files in a directory in their current state.
    ///
    /// # Errors
    /// When one cannot be read, or `go_on` breaks.
    pub fn of(dir: &Path, go_on: &mut GoOn<'_>) -> Result<Self, Error> {
        let mut manifest = Self::default();
        let mut names = Vec::new();
        walk(dir, &mut |name, _| {
            names.push(name.to_owned());
            true
        })?;
        manifest.add(dir, names.iter().map(String::as_str), go_on)?;
        Ok(manifest)
    }

    /// Reads the manifest of a directory; `None` if it has none.
    ///
    /// # Errors
    /// When it is damaged, was written by another version, or cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, Error> {
        let path = dir.join(MANIFEST);
        let text = match read_file(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", &path, e)),
        };
        let bad = |why: String| Error::BadManifest {
            path: path.clone(),
            why,
        };
        let no_manifest = |_| bad("it is damaged, or was not written by gargalo".to_owned());
        let header: Header = serde_json::from_slice(&text).map_err(no_manifest)?;
        if ![FORMAT, WITHOUT_CHECKSUM].contains(&header.format) {
            return Err(bad(format!(
                "gargalo {} wrote it in format {}, and this version knows formats {WITHOUT_CHECKSUM} and {FORMAT}",
                header.gargalo, header.format
            )));
        }
        let mut found: Self = serde_json::from_slice(&text).map_err(no_manifest)?;
        let sum = found.sha256.take();
        if (sum.is_some() || found.format == FORMAT) && found.to_text()? != text {
            return Err(bad("it is damaged: its checksum does not match".to_owned()));
        }
        // From here on it is a manifest of the current format.
        found.format = FORMAT;
        Ok(Some(found))
    }

    /// The content of the file: this manifest with its checksum.
    fn to_text(&self) -> Result<Vec<u8>, Error> {
        let encoded = |manifest: &Self| {
            serde_json::to_vec_pretty(manifest)
                .map_err(|e| Error::io("write", Path::new(MANIFEST), io::Error::from(e)))
        };
        let digest = Sha256::digest(encoded(self)?);
        encoded(&Self {
            sha256: Some(format!("{digest:x}")),
            ..self.clone()
        })
    }

    /// Adds files that were added or rewritten.
    ///
    /// # Errors
    /// When one cannot be read, or `go_on` breaks.
    pub fn add<'a>(
        &mut self,
        dir: &Path,
        names: impl IntoIterator<Item = &'a str>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        for name in names.into_iter().filter(|n| *n != MANIFEST) {
            let sum = Sum::of(&dir.join(name), go_on)?;
            self.files.insert(name.to_owned(), sum);
        }
        Ok(())
    }

    /// Writes it into its directory, atomically.
    ///
    /// # Errors
    /// When the file system reports an error.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(MANIFEST);
        let new = dir.join(format!(".{MANIFEST}"));
        let text = self.to_text()?;
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &path));
        written.map_err(|e| {
            // Best effort: the first error is the one to report.
            let _ = fs::remove_file(&new);
            Error::io("write", &path, e)
        })
    }

    /// Verifies files; a name that is not listed is accepted if there is no such file.
    ///
    /// # Errors
    /// The first that differs; [`Error::Stopped`] when `go_on` breaks.
    pub fn verify<'a>(
        &self,
        dir: &Path,
        names: impl IntoIterator<Item = &'a str>,
        go_on: &mut GoOn<'_>,
    ) -> Result<(), Error> {
        for name in names {
            let path = dir.join(name);
            let damaged = |why: String| {
                Err(Error::Damaged {
                    path: path.clone(),
                    why,
                })
            };
            let Some(was) = self.files.get(name) else {
                if path.symlink_metadata().is_ok() {
                    return damaged(format!("it is not in {MANIFEST}"));
                }
                continue;
            };
            // The length tells it without reading a file that may be long or have no end.
            if let Ok(is) = fs::metadata(&path)
                && (!is.is_file() || is.len() != was.bytes)
            {
                let (is, was) = (is.len(), was.bytes);
                return damaged(format!("it has {is} bytes, and {was} were written"));
            }
            match Sum::of(&path, go_on) {
                Err(Error::Io { source, .. }) => {
                    return damaged(format!("it cannot be read: {}", reason(&source)));
                }
                Err(e) => return Err(e),
                Ok(is) if *was != is => return damaged("its checksum does not match".to_owned()),
                Ok(_) => {}
            }
        }
        Ok(())
    }

    /// Whether a file is as it was written, if it is listed.
    fn check_unchanged(&self, dir: &Path, name: &str, go_on: &mut GoOn<'_>) -> Result<(), Error> {
        let Some(was) = self.files.get(name) else {
            return Ok(());
        };
        let file = dir.join(name);
        if Sum::of(&file, go_on)? == *was {
            return Ok(());
        }
        Err(Error::Edited {
            path: dir.to_owned(),
            file,
        })
    }
}

impl Sum {
    fn of(path: &Path, go_on: &mut GoOn<'_>) -> Result<Self, Error> {
        let failed = |e| Error::io("read", path, e);
        let mut file = File::open(path).map_err(failed)?;
        let mut digest = Sha256::new();
        let mut bytes = 0;
        let mut piece = vec![0; 1 << 16];
        loop {
            let n = file.read(&mut piece).map_err(failed)?;
            if n == 0 {
                break;
            }
            if go_on().is_break() {
                return Err(Error::Stopped);
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

/// Checks that new results may replace a directory: everything in it was written by Gargalo, and is unchanged.
///
/// Gargalo writes the files that the manifest lists, and a report that may be added to them. Older versions wrote
/// no manifest: then `run.json`, `scorecard.json` or `report.json` must have their keys, and every file one of
/// their names. A directory with none of them is foreign.
///
/// # Errors
/// The first file that is foreign or was changed; when the manifest is damaged, the directory cannot be read, or
/// `go_on` breaks.
pub fn check_replaceable(dir: &Path, go_on: &mut GoOn<'_>) -> Result<(), Error> {
    let facts = dir
        .symlink_metadata()
        .map_err(|e| Error::io("read", dir, e))?;
    let foreign = |file: PathBuf| {
        Err(Error::Foreign {
            path: dir.to_owned(),
            file,
        })
    };
    if !facts.is_dir() {
        return foreign(dir.to_owned());
    }
    let manifest = Manifest::read(dir)?;
    let ours = |name: &str| match &manifest {
        Some(m) => UNLISTED.contains(&name) || m.files.contains_key(name),
        None => is_ours(name),
    };
    let mut found = None;
    let mut present = Vec::new();
    walk(dir, &mut |name, plain| {
        if plain && ours(name) {
            present.push(name.to_owned());
        } else {
            found = Some(dir.join(name));
        }
        found.is_none()
    })?;
    if let Some(file) = found {
        return foreign(file);
    }
    let Some(manifest) = manifest else {
        let results = present.is_empty() || MARKS.iter().any(|m| m.is_of(dir));
        return if results {
            Ok(())
        } else {
            foreign(dir.to_owned())
        };
    };
    present
        .iter()
        .try_for_each(|name| manifest.check_unchanged(dir, name, go_on))
}

/// Whether a new file may replace one in a directory that has other files, too: the manifest lists it, and it is
/// unchanged. False if the directory has no manifest.
///
/// # Errors
/// When it is foreign or was changed, the manifest is damaged, or `go_on` breaks.
pub fn check_file(dir: &Path, name: &str, go_on: &mut GoOn<'_>) -> Result<bool, Error> {
    let Some(manifest) = Manifest::read(dir)? else {
        return Ok(false);
    };
    if !manifest.files.contains_key(name) {
        let file = dir.join(name);
        return Err(Error::Foreign {
            path: file.clone(),
            file,
        });
    }
    manifest.check_unchanged(dir, name, go_on)?;
    Ok(true)
}

/// Files that a manifest does not list; the last one is left by a killed writer.
const UNLISTED: [&str; 3] = [MANIFEST, "report.html", ".manifest.json"];

/// A file that identifies a results directory without a manifest.
struct Mark {
    name: &'static str,
    /// The keys that every version wrote.
    keys: [&'static str; 3],
}

const MARKS: [Mark; 3] = [
    Mark {
        name: "run.json",
        keys: ["version", "source", "scenario"],
    },
    Mark {
        name: "scorecard.json",
        keys: ["engine", "algorithm", "criteria"],
    },
    // The report of a study.
    Mark {
        name: "report.json",
        keys: ["format", "claims", "figures"],
    },
];

impl Mark {
    fn is_of(&self, dir: &Path) -> bool {
        let text = read_file(&dir.join(self.name)).unwrap_or_default();
        let found: Option<serde_json::Value> = serde_json::from_slice(&text).ok();
        found.is_some_and(|f| self.keys.iter().all(|key| f.get(key).is_some()))
    }
}

const FILES: [&str; 10] = [
    "run.json",
    "scenario.toml",
    "report.json",
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

/// Whether a path in a results directory is one that Gargalo uses.
fn is_ours(name: &str) -> bool {
    if let Some((folder, file)) = name.split_once('/') {
        return match folder {
            "qlog" => file.ends_with(".sqlog") && !file.contains('/'),
            "scenarios" => file.ends_with(".toml") && file.matches('/').count() == 1,
            "figures" => is_numbered(file, ".json"),
            "tables" => is_numbered(file, ".parquet"),
            _ => false,
        };
    }
    let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
    FILES.contains(&name)
        || (kind == "parquet" && TABLES.iter().any(|t| t.name == stem))
        || (matches!(kind, "png" | "svg") && PICTURES.contains(&stem))
}

/// Whether a file of a study's report has a name like `07.json`.
fn is_numbered(file: &str, suffix: &str) -> bool {
    let number = file.strip_suffix(suffix).unwrap_or_default();
    number.len() >= 2 && number.bytes().all(|b| b.is_ascii_digit())
}

/// Calls `tell` for every file below a directory, with its relative path and whether it is a plain file; false
/// stops the walk.
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
