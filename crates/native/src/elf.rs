//! Whether a shared library of Linux is the file that was compiled: what can be known without following its tables.
//!
//! The loader takes its tables on trust; what damaged ones do to a process is seen in a trial
//! (`python/gargalo/plugins/_trial.py`). Two kinds of damage are named before: a file that ends too early, and one that
//! `gargalo plugin build` made and that has another digest.

use sha2::{Digest, Sha256};

/// How an ELF file begins.
const MAGIC: &[u8] = b"\x7fELF";
/// How one of 64 bits with the least byte first begins; others are left to their loaders.
const OF_64_BITS: &[u8] = b"\x7fELF\x02\x01\x01";
/// What is before the digest at the end of a sealed file.
const SEAL: &[u8; 16] = b"\x56\x41\xf8\xa1\x7a\x21\xf9\x79\xa2\x82\xed\x2b\xce\x0a\x82\xcd";
const SEALED: usize = SEAL.len() + 32;
/// So many wrong bits in it are damage; of what is no seal about half are wrong, and never so few by chance.
const MOST_WRONG_BITS: u32 = 24;

/// The file with a digest of itself at its end, which loaders do not look at; other kinds of libraries as they are.
pub fn seal(library: &[u8]) -> Vec<u8> {
    let mut sealed = library.to_vec();
    if library.starts_with(MAGIC) && !is_sealed(library) {
        sealed.extend(SEAL);
        sealed.extend(Sha256::digest(library));
    }
    sealed
}

/// Checks a library before it is loaded.
///
/// # Errors
/// In words, what is damaged.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    if is_sealed(bytes) {
        let (library, seal) = bytes.split_at(bytes.len() - SEALED);
        if seal[..SEAL.len()] != SEAL[..] || Sha256::digest(library)[..] != seal[SEAL.len()..] {
            return Err("it is not what was compiled: its digest is another".to_owned());
        }
    }
    if bytes.starts_with(OF_64_BITS) && end(bytes).is_none_or(|end| end > bytes.len() as u64) {
        return Err("it ends before what its headers name".to_owned());
    }
    Ok(())
}

/// Where the last segment or section ends, and the headers of both (System V ABI, "Object Files"), if they are there.
fn end(bytes: &[u8]) -> Option<u64> {
    let u16 = |at| {
        Some(u64::from(u16::from_le_bytes(
            *bytes.get(at..)?.first_chunk()?,
        )))
    };
    let u64 = |at| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let (segments, sections) = (u64(32)?, u64(40)?);
    let (segment, section) = (u16(54)?, u16(58)?);
    let mut end = 0;
    for (table, row, rows, offset, size) in [
        (segments, segment, u16(56)?, 8, 32),
        (sections, section, u16(60)?, 24, 32),
    ] {
        end = end.max(table.checked_add(row * rows)?);
        for i in 0..rows {
            let at = usize::try_from(table.checked_add(row * i)?).ok()?;
            // Sections of zeros (SHT_NOBITS) have a size and nothing in the file.
            if offset == 24 && bytes.get(at.checked_add(4)?) == Some(&8) {
                continue;
            }
            end = end.max(u64(at.checked_add(offset)?)?.checked_add(u64(at.checked_add(size)?)?)?);
        }
    }
    Some(end)
}

/// Whether the file has a seal, be it damaged.
fn is_sealed(bytes: &[u8]) -> bool {
    let Some(at) = bytes.len().checked_sub(SEALED) else {
        return false;
    };
    let wrong = bytes[at..]
        .iter()
        .zip(SEAL)
        .map(|(a, b)| (a ^ b).count_ones());
    wrong.sum::<u32>() <= MOST_WRONG_BITS
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64;

    /// Shared libraries below a folder.
    fn libraries(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_link = path.is_symlink();
            if path.is_dir() && !is_link {
                libraries(&path, found);
            } else if path.to_string_lossy().contains(".so") && !is_link && path.is_file() {
                found.push(path);
            }
        }
    }

    /// Those of the system, by several linkers and of several languages; with all of `GARGALO_LIBRARIES`, a folder.
    #[test]
    fn sound_libraries_are_not_refused() {
        let mut found = Vec::new();
        let own = std::env::var_os("GARGALO_LIBRARIES").map(PathBuf::from);
        let folders = [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
        ]
        .map(PathBuf::from);
        for folder in folders.iter().chain(&own) {
            libraries(folder, &mut found);
        }
        found.sort();
        let every = if own.is_some() {
            1
        } else {
            found.len() / 100 + 1
        };
        for path in found.iter().step_by(every) {
            // Not texts of linkers, programs, debugging symbols, and other machines.
            let Ok(bytes) = fs::read(path) else { continue };
            let is_shared = bytes.starts_with(MAGIC) && bytes.get(16) == Some(&3);
            if is_shared && bytes.len() < 50_000_000 {
                assert_eq!(check(&bytes), Ok(()), "{}", path.display());
            }
        }
    }

    #[test]
    fn damaged_tables_are_no_panic() {
        let mut found = Vec::new();
        for folder in [
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib/aarch64-linux-gnu",
            "/usr/lib64",
        ] {
            libraries(Path::new(folder), &mut found);
        }
        let size = |path: &PathBuf| fs::metadata(path).map_or(u64::MAX, |m| m.len());
        found.sort_by_key(|path| (size(path), path.clone()));
        let smallest = found.iter().filter_map(|path| fs::read(path).ok());
        let mut random = Pcg64::seed_from_u64(1);
        for library in smallest.filter(|b| b.starts_with(MAGIC)).take(4) {
            let refused = (0..5_000).filter(|_| {
                let mut damaged = library.clone();
                for _ in 0..random.random_range(1..20) {
                    let at = random.random_range(0..damaged.len());
                    damaged[at] = random.random();
                }
                check(&damaged).is_err()
            });
            assert!(refused.count() > 0);
        }
    }

    #[test]
    fn a_sealed_file_is_what_was_compiled() {
        let library = b"\x7fELF and more".to_vec();
        let sealed = seal(&library);
        assert_eq!(seal(&sealed), sealed);
        assert_eq!(seal(b"MZ"), b"MZ");
        assert_eq!(check(&sealed), Ok(()));
        for at in 0..sealed.len() {
            let mut flipped = sealed.clone();
            flipped[at] ^= 1;
            // Loaders look at the beginning.
            assert!(
                check(&flipped).is_err() || flipped[at] == sealed[at],
                "{at}"
            );
        }
    }
}
