//! Names the engine: its version and a digest of the sources that it is built from, `0.1.0+1a2b3c4d`.
//!
//! Results say which engine made them and stores find runs by it, between releases too.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest as _, Sha256};

/// The files that decide what the engine does, below a crate.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("Cargo.lock"), root.join("Cargo.toml")];
    for krate in fs::read_dir(root.join("crates"))? {
        let krate = krate?.path();
        let source = krate.join("src");
        // Cargo watches whole folders for new files.
        println!("cargo::rerun-if-changed={}", source.display());
        files.push(krate.join("Cargo.toml"));
        sources(&source, &mut files)?;
    }
    files.sort();
    let mut digest = Sha256::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy();
        // The same name on all systems.
        let name = name.replace('\\', "/");
        let text = fs::read(file)?;
        digest.update(format!("{name} {}\n", text.len()));
        digest.update(text);
    }
    let whole = digest.finalize();
    let short: String = whole[..4].iter().map(|b| format!("{b:02x}")).collect();
    println!(
        "cargo::rustc-env=GARGALO_ENGINE={}+{short}",
        env!("CARGO_PKG_VERSION")
    );
    Ok(())
}
