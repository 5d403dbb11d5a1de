//! Whether a shared library of Linux is whole: what the system's loader takes on trust is checked before it is loaded.
//!
//! The loader reads tables of a file with few checks; in a damaged one it writes anywhere, or ends the process.
//! Here all that it follows is looked at: segments and sections, the dynamic table, names and their hashes,
//! symbols, versions and relocations (System V ABI, "Object Files"; the GNU extensions as in the LSB Core
//! Specification). Code and data are not: of these [`seal`] keeps a digest in libraries that `gargalo plugin build`
//! makes.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// How an ELF file begins.
const MAGIC: &[u8] = b"\x7fELF";
/// What is before the digest at the end of a sealed file.
const SEAL: &[u8; 16] = b"\x56\x41\xf8\xa1\x7a\x21\xf9\x79\xa2\x82\xed\x2b\xce\x0a\x82\xcd";
const SEALED: usize = SEAL.len() + 32;
/// So many wrong bits in it are damage; of what is no seal about half are wrong, and never so few by chance.
const MOST_WRONG_BITS: u32 = 24;

/// Bytes of memory that a library may ask for.
const MOST_MEMORY: u64 = 4 << 30;
/// Pointers that are made for it may be this far before or behind what it has.
const BESIDE: i64 = 1 << 20;

type Checked<T = ()> = Result<T, String>;

/// The file with a digest of itself at its end, which loaders do not look at; other kinds of libraries as they are.
pub fn seal(library: &[u8]) -> Vec<u8> {
    let mut sealed = library.to_vec();
    if library.starts_with(MAGIC) && !is_sealed(library) {
        sealed.extend(SEAL);
        sealed.extend(Sha256::digest(library));
    }
    sealed
}

/// Checks a library before it is loaded; other kinds than ELF of this machine are left to its loader.
///
/// # Errors
/// In words, what is damaged.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    if is_sealed(bytes) {
        let (library, seal) = bytes.split_at(bytes.len() - SEALED);
        if seal[..SEAL.len()] != SEAL[..] || Sha256::digest(library)[..] != seal[SEAL.len()..] {
            return Err("it is not what was compiled: its digest is another".to_owned());
        }
    }
    // 64 bits, the least byte first, version 1: others are refused by the loader in words.
    let of_this_kind = bytes.starts_with(b"\x7fELF\x02\x01\x01");
    if !of_this_kind || cfg!(any(target_pointer_width = "32", target_endian = "big")) {
        return Ok(());
    }
    let image = Image::read(bytes)?;
    let sections = Sections::read(&image)?;
    sections.check(&image)?;
    let dynamic = Dynamic::read(&image)?;
    dynamic.check_places(&image)?;
    let names = Names::read(&image, &dynamic)?;
    let symbols = dynamic.symbols(&image, &names)?;
    check_symbols(&image, &names, &symbols, sections.count)?;
    check_versions(&image, &dynamic, &names, symbols.len())?;
    check_relocations(&image, &dynamic, symbols.len())
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

/// Integers in a file, the least byte first.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn part(self, at: u64, length: u64) -> Option<Bytes<'a>> {
        let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
        self.0.get(at..at.checked_add(length)?).map(Bytes)
    }

    fn array<const N: usize>(self, at: u64) -> Option<[u8; N]> {
        self.part(at, N as u64)?.0.try_into().ok()
    }

    fn u16(self, at: u64) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: u64) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: u64) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn len(self) -> u64 {
        self.0.len() as u64
    }

    /// Its parts of this size.
    fn rows(self, size: usize) -> impl Iterator<Item = Bytes<'a>> {
        self.0.chunks_exact(size).map(Bytes)
    }
}

/// An entry of the table of segments, or a section: where it is in the file and in memory.
#[derive(Clone, Copy, Debug)]
struct Extent {
    kind: u32,
    flags: u64,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
    align: u64,
}

impl Extent {
    fn end(&self) -> Option<u64> {
        self.address.checked_add(self.in_memory)
    }

    /// Whether these bytes of memory are in it.
    fn holds(&self, address: u64, length: u64) -> bool {
        let end = address.checked_add(length);
        address >= self.address && end.is_some_and(|e| self.end().is_some_and(|own| e <= own))
    }

    fn is_in(&self, file: Bytes<'_>) -> bool {
        file.part(self.offset, self.in_file).is_some()
    }
}

mod segment {
    pub(super) const LOAD: u32 = 1;
    pub(super) const DYNAMIC: u32 = 2;
    pub(super) const TLS: u32 = 7;
    pub(super) const STACK: u32 = 0x6474_e551;
    pub(super) const EXECUTE: u64 = 1;
    pub(super) const WRITE: u64 = 2;
}

/// The file and what is made of it in memory.
struct Image<'a> {
    file: Bytes<'a>,
    machine: u16,
    segments: Vec<Extent>,
    loaded: Vec<Extent>,
    end: u64,
}

impl<'a> Image<'a> {
    /// The segments (`Elf64_Phdr`).
    fn read(bytes: &'a [u8]) -> Checked<Self> {
        const SIZE: u16 = 56;
        let cut = || "it ends within its header".to_owned();
        let file = Bytes(bytes);
        let header = file.part(0, 64).ok_or_else(cut)?;
        let at = header.u64(32).ok_or_else(cut)?;
        let size = header.u16(54).ok_or_else(cut)?;
        let count = header.u16(56).ok_or_else(cut)?;
        let machine = header.u16(18).ok_or_else(cut)?;
        let table = file.part(at, u64::from(SIZE) * u64::from(count));
        let table = table.filter(|_| size == SIZE);
        let table = table.ok_or("its table of segments is not in the file")?;
        let segments = table.rows(SIZE.into()).map(|row| {
            Some(Extent {
                kind: row.u32(0)?,
                flags: row.u32(4)?.into(),
                offset: row.u64(8)?,
                address: row.u64(16)?,
                in_file: row.u64(32)?,
                in_memory: row.u64(40)?,
                align: row.u64(48)?,
            })
        });
        let segments: Vec<_> = segments.collect::<Option<_>>().ok_or_else(cut)?;
        let of = |kind| segments.iter().filter(move |s: &&Extent| s.kind == kind);
        let loaded: Vec<_> = of(segment::LOAD).copied().collect();
        let mut end = 0;
        for part in &loaded {
            let congruent = part.align <= 1
                || part.align.is_power_of_two()
                    && part.address % part.align == part.offset % part.align;
            let until = part.end().filter(|&e| e <= MOST_MEMORY);
            let fits = part.in_file <= part.in_memory && part.address >= end && congruent;
            end = until
                .filter(|_| fits && part.is_in(file))
                .ok_or("a segment is not in the file, or where no segment can be in memory")?;
        }
        let first = loaded.first().filter(|s| s.address == 0 || s.offset == 0);
        if first.is_none() || of(segment::DYNAMIC).count() != 1 || of(segment::TLS).count() > 1 {
            return Err("its table of segments is not that of a shared library".to_owned());
        }
        let image = Self {
            file,
            machine,
            segments,
            loaded,
            end,
        };
        for part in image.segments.iter().filter(|s| s.kind != segment::STACK) {
            let aligned = part.align <= 1 || part.align.is_power_of_two();
            let has_place = part.in_memory == 0
                || part.kind == segment::TLS
                || image.holds(part.address, part.in_memory.min(part.in_file));
            let is_sound = part.in_file <= part.in_memory && part.in_memory <= MOST_MEMORY;
            if !(aligned && has_place && is_sound && part.is_in(file)) {
                return Err(format!(
                    "a segment of kind {:#x} is outside of it",
                    part.kind
                ));
            }
        }
        Ok(image)
    }

    /// Whether a segment has these bytes of memory.
    fn holds(&self, address: u64, length: u64) -> bool {
        self.loaded.iter().any(|s| s.holds(address, length))
    }

    fn holds_with(&self, flag: u64, address: u64, length: u64) -> bool {
        let mut with = self.loaded.iter().filter(|s| s.flags & flag != 0);
        with.any(|s| s.holds(address, length))
    }

    /// What the file has for these bytes of memory.
    fn at(&self, address: u64, length: u64) -> Option<Bytes<'a>> {
        let part = self.loaded.iter().find(|s| s.holds(address, length))?;
        let within = address - part.address;
        let in_file = within.checked_add(length)? <= part.in_file;
        self.file
            .part(part.offset + within, length)
            .filter(|_| in_file)
    }

    /// From this address to the end of what the file has for its segment.
    fn from(&self, address: u64) -> Option<Bytes<'a>> {
        let part = self.loaded.iter().find(|s| s.holds(address, 1))?;
        let left = part.in_file.checked_sub(address - part.address)?;
        self.at(address, left)
    }
}

/// The sections (`Elf64_Shdr`): no loader needs them, and what is not as they say is damaged.
struct Sections {
    all: Vec<Extent>,
    count: u16,
}

impl Sections {
    fn read(image: &Image<'_>) -> Checked<Self> {
        const SIZE: u16 = 64;
        let header = |at| image.file.u16(at).unwrap_or(0);
        let (at, size, count) = (image.file.u64(40).unwrap_or(0), header(58), header(60));
        if at == 0 {
            return Ok(Self {
                all: Vec::new(),
                count: 0,
            });
        }
        let table = image.file.part(at, u64::from(SIZE) * u64::from(count));
        let table = table.filter(|_| size == SIZE && header(62) < count.max(1));
        let table = table.ok_or("its table of sections is not in the file: it is cut off")?;
        let all = table.rows(SIZE.into()).map(|row| {
            let kind = row.u32(4)?;
            let size = row.u64(32)?;
            Some(Extent {
                kind,
                flags: row.u64(8)?,
                address: row.u64(16)?,
                offset: row.u64(24)?,
                in_file: if kind == Self::EMPTY { 0 } else { size },
                in_memory: size,
                align: row.u64(48)?,
            })
        });
        let all = all
            .collect::<Option<_>>()
            .ok_or("its table of sections is cut off")?;
        Ok(Self { all, count })
    }

    /// Takes no room in the file.
    const EMPTY: u32 = 8;
    const ALLOCATED: u64 = 2;
    const OF_THREADS: u64 = 0x400;

    fn check(&self, image: &Image<'_>) -> Checked {
        for part in self.all.iter().skip(1) {
            let is_used = part.flags & Self::ALLOCATED != 0 && part.in_memory > 0;
            let is_virtual = part.kind == Self::EMPTY && part.flags & Self::OF_THREADS != 0;
            let has_place = !is_used
                || is_virtual
                || image.loaded.iter().any(|s| {
                    let same =
                        part.offset.wrapping_sub(part.address) == s.offset.wrapping_sub(s.address);
                    s.holds(part.address, part.in_memory)
                        && (part.kind == Self::EMPTY
                            || same && part.address - s.address + part.in_file <= s.in_file)
                });
            if !(part.is_in(image.file) && has_place) {
                return Err("a section is not in the file, or not in a segment".to_owned());
            }
        }
        Ok(())
    }
}

mod tag {
    pub(super) const NEEDED: u64 = 1;
    pub(super) const JUMPS_SIZE: u64 = 2;
    pub(super) const HASH: u64 = 4;
    pub(super) const STRINGS: u64 = 5;
    pub(super) const SYMBOLS: u64 = 6;
    pub(super) const RELOCATIONS: u64 = 7;
    pub(super) const RELOCATIONS_SIZE: u64 = 8;
    pub(super) const RELOCATION_SIZE: u64 = 9;
    pub(super) const STRINGS_SIZE: u64 = 10;
    pub(super) const SYMBOL_SIZE: u64 = 11;
    pub(super) const INIT: u64 = 12;
    pub(super) const FINI: u64 = 13;
    pub(super) const OWN_NAME: u64 = 14;
    pub(super) const RPATH: u64 = 15;
    pub(super) const WITHOUT_ADDENDS: u64 = 17;
    pub(super) const JUMPS_KIND: u64 = 20;
    pub(super) const TEXT: u64 = 22;
    pub(super) const JUMPS: u64 = 23;
    pub(super) const INIT_ARRAY: u64 = 25;
    pub(super) const FINI_ARRAY: u64 = 26;
    pub(super) const INIT_SIZE: u64 = 27;
    pub(super) const FINI_SIZE: u64 = 28;
    pub(super) const RUNPATH: u64 = 29;
    pub(super) const FLAGS: u64 = 30;
    pub(super) const PACKED_SIZE: u64 = 35;
    pub(super) const PACKED: u64 = 36;
    pub(super) const PACKED_ONE: u64 = 37;
    /// Those of the system's and the machine's are above.
    pub(super) const LAST: u64 = 64;
    pub(super) const SYSTEM: std::ops::RangeInclusive<u64> = 0x6000_0000..=0x7fff_ffff;
    pub(super) const GNU_HASH: u64 = 0x6fff_fef5;
    pub(super) const VERSIONS: u64 = 0x6fff_fff0;
    pub(super) const RELATIVE_COUNT: u64 = 0x6fff_fff9;
    pub(super) const DEFINED: u64 = 0x6fff_fffc;
    pub(super) const DEFINED_COUNT: u64 = 0x6fff_fffd;
    pub(super) const WANTED: u64 = 0x6fff_fffe;
    pub(super) const WANTED_COUNT: u64 = 0x6fff_ffff;
}

/// A row of [`Dynamic`] (`Elf64_Rela`).
const RELOCATION: u64 = 24;
/// A row of the table of symbols (`Elf64_Sym`).
const SYMBOL: u64 = 24;

/// The dynamic table (`Elf64_Dyn`): where all other tables are.
struct Dynamic {
    values: BTreeMap<u64, u64>,
    needed: Vec<u64>,
}

impl Dynamic {
    fn read(image: &Image<'_>) -> Checked<Self> {
        let part = image.segments.iter().find(|s| s.kind == segment::DYNAMIC);
        let table = part.and_then(|s| image.at(s.address, s.in_file));
        let table = table.ok_or("its dynamic table is not in the file")?;
        let rows: Option<Vec<_>> = table
            .rows(16)
            .map(|r| Some((r.u64(0)?, r.u64(8)?)))
            .collect();
        let rows = rows.unwrap_or_default();
        let end = rows.iter().position(|r| r.0 == 0);
        let end = end.filter(|&e| rows[e..].iter().all(|r| r.0 == 0));
        let end = end.ok_or("its dynamic table does not end")?;
        let (mut values, mut needed) = (BTreeMap::new(), Vec::new());
        for &(tag, value) in &rows[..end] {
            if tag > tag::LAST && !tag::SYSTEM.contains(&tag) {
                return Err(format!("its dynamic table has the unknown entry {tag:#x}"));
            }
            if tag == tag::NEEDED {
                needed.push(value);
            } else if values.insert(tag, value).is_some() {
                return Err(format!("its dynamic table has the entry {tag:#x} twice"));
            }
        }
        Ok(Self { values, needed })
    }

    fn get(&self, tag: u64) -> Option<u64> {
        self.values.get(&tag).copied()
    }

    /// A table, if there is one: its address has one entry, its size another.
    fn table<'a>(&self, image: &Image<'a>, at: u64, size: u64, row: u64) -> Checked<Bytes<'a>> {
        let found = match (self.get(at), self.get(size)) {
            (None, None | Some(0)) => Some(Bytes(&[])),
            (Some(address), Some(size)) if size.is_multiple_of(row) => image.at(address, size),
            _ => None,
        };
        found.ok_or_else(|| {
            format!("a table is not in the file (entry {at:#x} of the dynamic table)")
        })
    }

    /// The functions that are called when it is loaded and unloaded, and the sizes of rows.
    fn check_places(&self, image: &Image<'_>) -> Checked {
        for (tag, wanted) in [
            (tag::SYMBOL_SIZE, SYMBOL),
            (tag::RELOCATION_SIZE, RELOCATION),
            (tag::JUMPS_KIND, tag::RELOCATIONS),
            (tag::PACKED_ONE, 8),
        ] {
            if self.get(tag).is_some_and(|found| found != wanted) {
                return Err(format!("entry {tag:#x} of its dynamic table is wrong"));
            }
        }
        if self.get(tag::WITHOUT_ADDENDS).is_some() {
            return Err("its relocations are of another kind than this machine's".to_owned());
        }
        for tag in [tag::INIT, tag::FINI] {
            let wrong = |&at: &u64| !image.holds_with(segment::EXECUTE, at, 1);
            if self.get(tag).as_ref().is_some_and(wrong) {
                return Err(
                    "a function that is called when it is loaded is outside of its code".to_owned(),
                );
            }
        }
        Ok(())
    }

    /// The rows of the symbols; how many there are is in the hashes of their names.
    fn symbols<'a>(&self, image: &Image<'a>, names: &Names<'a>) -> Checked<Vec<Bytes<'a>>> {
        let wrong = || "the hashes of its names are damaged".to_owned();
        let rows = self.get(tag::SYMBOLS).and_then(|at| image.from(at));
        let rows = rows.ok_or("its table of symbols is not in the file")?;
        let (gnu, old) = (self.get(tag::GNU_HASH), self.get(tag::HASH));
        let counted = |count: u64| rows.part(0, count.checked_mul(SYMBOL)?);
        let by_old = match old {
            Some(at) => Some(image.from(at).and_then(of_old_hash).ok_or_else(wrong)?),
            None => None,
        };
        let by_gnu = match gnu {
            Some(at) => {
                let table = image.from(at).ok_or_else(wrong)?;
                Some(of_gnu_hash(table, rows, names).ok_or_else(wrong)?)
            }
            None => None,
        };
        let count = by_old.or(by_gnu).ok_or("it has no hashes of its names")?;
        let table = counted(count).filter(|_| by_gnu.is_none_or(|g| g <= count));
        Ok(table.ok_or_else(wrong)?.rows(SYMBOL as usize).collect())
    }
}

/// How many symbols the table of hashes of System V has, if it is sound.
fn of_old_hash(table: Bytes<'_>) -> Option<u64> {
    let (buckets, chains) = (u64::from(table.u32(0)?), u64::from(table.u32(4)?));
    let rows = table.part(8, (buckets + chains).checked_mul(4)?)?;
    let sound = rows
        .rows(4)
        .all(|r| r.u32(0).is_some_and(|n| u64::from(n) < chains.max(1)));
    // Each symbol is in one chain, so there are no circles.
    let starts = rows.part(0, buckets * 4)?.rows(4).filter_map(|r| r.u32(0));
    let mut left = chains;
    for start in starts {
        let mut at = u64::from(start);
        while at != 0 {
            left = left.checked_sub(1)?;
            at = rows.u32((buckets + at) * 4)?.into();
        }
    }
    (sound && buckets > 0).then_some(chains)
}

/// The same of the GNU table, whose hashes are compared with the names.
fn of_gnu_hash(table: Bytes<'_>, symbols: Bytes<'_>, names: &Names<'_>) -> Option<u64> {
    let (buckets, first) = (table.u32(0)?, table.u32(4)?);
    let (words, shift) = (u64::from(table.u32(8)?), table.u32(12)?);
    if buckets == 0 || !words.is_power_of_two() || shift >= 64 {
        return None;
    }
    let starts = table.part(16 + words * 8, u64::from(buckets) * 4)?;
    let chains = 16 + words * 8 + u64::from(buckets) * 4;
    let mut count = u64::from(first);
    for (bucket, row) in (0..buckets).zip(starts.rows(4)) {
        let start = row.u32(0)?;
        if start == 0 {
            continue;
        }
        if u64::from(start) != count {
            return None;
        }
        loop {
            let kept = table.u32(chains + (count - u64::from(first)) * 4)?;
            let name = names.get(symbols.u32(count.checked_mul(SYMBOL)?)?.into())?;
            let hash = name
                .iter()
                .fold(5381_u32, |h, &c| h.wrapping_mul(33).wrapping_add(c.into()));
            let filter = table.u64(16 + (u64::from(hash) / 64 % words) * 8)?;
            let bits = 1_u64 << (hash % 64) | 1 << ((u64::from(hash) >> shift) % 64);
            if hash | 1 != kept | 1 || hash % buckets != bucket || filter & bits != bits {
                return None;
            }
            count += 1;
            if kept & 1 == 1 {
                break;
            }
        }
    }
    Some(count)
}

/// The texts.
struct Names<'a>(Bytes<'a>);

impl<'a> Names<'a> {
    fn read(image: &Image<'a>, dynamic: &Dynamic) -> Checked<Self> {
        let table = dynamic.table(image, tag::STRINGS, tag::STRINGS_SIZE, 1)?;
        if table.0.last() != Some(&0) {
            return Err("its table of names does not end".to_owned());
        }
        let names = Self(table);
        let own = [tag::OWN_NAME, tag::RPATH, tag::RUNPATH].map(|t| dynamic.get(t));
        let mut all = dynamic
            .needed
            .iter()
            .copied()
            .chain(own.into_iter().flatten());
        if all.any(|at| names.get(at).is_none()) {
            return Err("a name is outside of its table".to_owned());
        }
        Ok(names)
    }

    fn get(&self, at: u64) -> Option<&'a [u8]> {
        let from = self.0.0.get(usize::try_from(at).ok()?..)?;
        from.split(|&c| c == 0).next()
    }
}

fn check_symbols(
    image: &Image<'_>,
    names: &Names<'_>,
    symbols: &[Bytes<'_>],
    sections: u16,
) -> Checked {
    const KINDS: [u8; 7] = [0, 1, 2, 3, 4, 6, 10];
    const BINDINGS: [u8; 4] = [0, 1, 2, 10];
    const FUNCTIONS: [u8; 2] = [2, 10];
    const OF_THREADS: u8 = 6;
    const ABSOLUTE: u16 = 0xfff1;
    const RESERVED: u16 = 0xff00;
    let sound = |row: &Bytes<'_>| {
        let name = names.get(row.u32(0)?.into())?;
        let [info, _] = row.array(4)?;
        let (section, value, size) = (row.u16(6)?, row.u64(8)?, row.u64(16)?);
        let kind = info & 15;
        let in_memory = || match kind {
            OF_THREADS => value <= MOST_MEMORY,
            _ if FUNCTIONS.contains(&kind) => {
                image.holds_with(segment::EXECUTE, value, size.max(1))
            }
            // Of the end of a segment, too.
            _ => {
                image.loaded.iter().any(|s| s.holds(value, size)) || value <= image.end && size == 0
            }
        };
        let known = section == 0 || sections == 0 || section < sections || section >= RESERVED;
        let placed = section == 0 || section == ABSOLUTE || in_memory();
        let imported = section != 0 || value == 0;
        let text = std::str::from_utf8(name).is_ok();
        (KINDS.contains(&kind)
            && BINDINGS.contains(&(info >> 4))
            && known
            && placed
            && imported
            && text)
            .then_some(())
    };
    if symbols.iter().skip(1).all(|row| sound(row).is_some()) {
        return Ok(());
    }
    Err("its table of symbols is damaged".to_owned())
}

/// Versions of symbols: those of other libraries that it wants, and its own.
fn check_versions(
    image: &Image<'_>,
    dynamic: &Dynamic,
    names: &Names<'_>,
    symbols: usize,
) -> Checked {
    let wrong = || "its table of versions is damaged".to_owned();
    let mut known = BTreeSet::from([0, 1]);
    if let Some(at) = dynamic.get(tag::WANTED) {
        let table = image.from(at).ok_or_else(wrong)?;
        let count = dynamic.get(tag::WANTED_COUNT).ok_or_else(wrong)?;
        wanted(table, count, dynamic, names, &mut known).ok_or_else(wrong)?;
    }
    if let Some(at) = dynamic.get(tag::DEFINED) {
        let table = image.from(at).ok_or_else(wrong)?;
        let count = dynamic.get(tag::DEFINED_COUNT).ok_or_else(wrong)?;
        defined(table, count, names, &mut known).ok_or_else(wrong)?;
    }
    let Some(at) = dynamic.get(tag::VERSIONS) else {
        return Ok(());
    };
    let rows = image.at(at, 2 * symbols as u64).ok_or_else(wrong)?;
    let mut all = rows.rows(2).filter_map(|r| r.u16(0));
    if all.all(|version| known.contains(&(version & 0x7fff))) {
        return Ok(());
    }
    Err(wrong())
}

/// `Elf64_Verneed`: each file is one that is loaded with it, and the hashes are those of the names.
fn wanted(
    table: Bytes<'_>,
    count: u64,
    dynamic: &Dynamic,
    names: &Names<'_>,
    known: &mut BTreeSet<u16>,
) -> Option<()> {
    let mut at = 0_u64;
    for left in (0..count).rev() {
        let (version, inner) = (table.u16(at)?, table.u16(at + 2)?);
        let file = names.get(table.u32(at + 4)?.into())?;
        let mut needed = dynamic.needed.iter().filter_map(|&n| names.get(n));
        if version != 1 || !needed.any(|n| n == file) {
            return None;
        }
        let mut entry = at.checked_add(table.u32(at + 8)?.into())?;
        for left in (0..inner).rev() {
            let name = names.get(table.u32(entry + 8)?.into())?;
            if table.u32(entry)? != old_hash(name) {
                return None;
            }
            known.insert(table.u16(entry + 6)? & 0x7fff);
            entry = next(entry, table.u32(entry + 12)?, left.into())?;
        }
        at = next(at, table.u32(at + 12)?, left)?;
    }
    Some(())
}

/// `Elf64_Verdef`, in the same way.
fn defined(
    table: Bytes<'_>,
    count: u64,
    names: &Names<'_>,
    known: &mut BTreeSet<u16>,
) -> Option<()> {
    let mut at = 0_u64;
    for left in (0..count).rev() {
        let first = at.checked_add(table.u32(at + 12)?.into())?;
        let name = names.get(table.u32(first)?.into())?;
        if table.u16(at)? != 1 || table.u32(at + 8)? != old_hash(name) {
            return None;
        }
        known.insert(table.u16(at + 4)? & 0x7fff);
        at = next(at, table.u32(at + 16)?, left)?;
    }
    Some(())
}

/// Where the next entry is; the last one says 0.
fn next(at: u64, step: u32, left: u64) -> Option<u64> {
    ((step == 0) == (left == 0)).then(|| at + u64::from(step))
}

fn old_hash(name: &[u8]) -> u32 {
    name.iter().fold(0_u32, |h, &c| {
        let h = (h << 4).wrapping_add(c.into());
        (h ^ (h >> 24 & 0xf0)) & 0x0fff_ffff
    })
}

/// What a relocation writes, by its number.
enum Writes {
    /// An address in the library, of the addend.
    Own,
    /// An address that a function at the addend returns.
    Called,
    /// What a symbol is.
    Symbol,
    /// The same of a table of such addresses.
    Slot,
    /// Two words.
    Pair,
    /// Something of another size.
    Other,
}

/// `None`: the loader does not know it.
fn writes(machine: u16, kind: u32) -> Option<Writes> {
    const X86_64: u16 = 62;
    const AARCH64: u16 = 183;
    Some(match (machine, kind) {
        (X86_64, 8) | (AARCH64, 1027) => Writes::Own,
        (X86_64, 37) | (AARCH64, 1032) => Writes::Called,
        (X86_64, 6 | 7) | (AARCH64, 1025 | 1026) => Writes::Slot,
        (X86_64, 1 | 16 | 17 | 18) | (AARCH64, 257 | 1028..=1030) => Writes::Symbol,
        (X86_64, 36) | (AARCH64, 1031) => Writes::Pair,
        (X86_64, 0 | 2 | 5 | 10 | 24 | 32 | 33) | (AARCH64, 0 | 258 | 1024) => Writes::Other,
        (X86_64 | AARCH64, _) => return None,
        _ => Writes::Other,
    })
}

/// Of each: it writes where data are, nothing twice, what is in the library, and by a symbol that is there.
fn check_relocations(image: &Image<'_>, dynamic: &Dynamic, symbols: usize) -> Checked {
    const TEXT_FLAG: u64 = 4;
    let wrong = || "its table of relocations is damaged".to_owned();
    let plain = dynamic.table(image, tag::RELOCATIONS, tag::RELOCATIONS_SIZE, RELOCATION)?;
    let jumps = dynamic.table(image, tag::JUMPS, tag::JUMPS_SIZE, RELOCATION)?;
    let packed = dynamic.table(image, tag::PACKED, tag::PACKED_SIZE, 8)?;
    let flags = dynamic.get(tag::FLAGS).unwrap_or(0);
    let in_text = dynamic.get(tag::TEXT).is_some() || flags & TEXT_FLAG != 0;
    let writable = |at, length| {
        if in_text {
            image.holds(at, length)
        } else {
            image.holds_with(segment::WRITE, at, length)
        }
    };
    let relative = dynamic.get(tag::RELATIVE_COUNT).unwrap_or(0);
    let mut functions = BTreeMap::new();
    let mut places = Vec::new();
    let mut one = |index: u64, row: Bytes<'_>| {
        let (at, kind, symbol) = (row.u64(0)?, row.u32(8)?, row.u32(12)?);
        let addend = row.u64(16)?.cast_signed();
        let found = writes(image.machine, kind)?;
        let is_own = matches!(found, Writes::Own);
        let length = match found {
            Writes::Pair => 16,
            Writes::Other => 1,
            _ => 8,
        };
        let sound = match found {
            Writes::Own => {
                functions.insert(at, addend.cast_unsigned());
                symbol == 0 && (-BESIDE..=image.end.cast_signed() + BESIDE).contains(&addend)
            }
            Writes::Called => image.holds_with(segment::EXECUTE, addend.cast_unsigned(), 1),
            Writes::Slot => at.is_multiple_of(8) && addend == 0,
            Writes::Symbol | Writes::Pair | Writes::Other => true,
        };
        if kind != 0 {
            places.push((at, length));
        }
        let known = (symbol as usize) < symbols.max(1);
        let in_order = is_own || index >= relative;
        (sound && known && in_order && (kind == 0 || writable(at, length))).then_some(())
    };
    let rows = |table: Bytes<'_>| table.len() / RELOCATION;
    // Some linkers have the jumps at the end of the others.
    let (of_plain, of_jumps) = (dynamic.get(tag::RELOCATIONS), dynamic.get(tag::JUMPS));
    let within = of_plain
        .zip(of_jumps)
        .is_some_and(|(a, b)| b >= a && b < a + plain.len());
    let all = plain.rows(RELOCATION as usize).zip(0..);
    let more = jumps
        .rows(RELOCATION as usize)
        .filter(|_| !within)
        .map(|row| (row, u64::MAX));
    if relative > rows(plain) || !all.chain(more).all(|(row, i)| one(i, row).is_some()) {
        return Err(wrong());
    }
    places.sort_unstable();
    if places.windows(2).any(|two| two[0].0 + two[0].1 > two[1].0) {
        return Err(wrong());
    }
    // A row is an address, if it is even, or bits for what follows (generic ABI, "Relative Relocation Table").
    let mut even = packed
        .rows(8)
        .filter_map(|r| r.u64(0))
        .filter(|a| a % 2 == 0);
    if !even.all(|at| writable(at, 8)) {
        return Err(wrong());
    }
    for (at, size) in [
        (tag::INIT_ARRAY, tag::INIT_SIZE),
        (tag::FINI_ARRAY, tag::FINI_SIZE),
    ] {
        let table = dynamic.table(image, at, size, 8)?;
        let begin = dynamic.get(at).unwrap_or(0);
        let mut called = (0..table.len() / 8).filter_map(|i| functions.get(&(begin + 8 * i)));
        if !called.all(|&function| image.holds_with(segment::EXECUTE, function, 1)) {
            return Err(
                "a function that is called when it is loaded is outside of its code".to_owned(),
            );
        }
    }
    Ok(())
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
            let is_shared = bytes.starts_with(MAGIC) && Bytes(&bytes).u16(16) == Some(3);
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
            assert!(refused.count() > 100);
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
