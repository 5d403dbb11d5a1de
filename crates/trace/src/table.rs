//! Typed columns that grow by rows.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use arrow_array::builder::{
    ArrayBuilder, BooleanBuilder, Float64Builder, LargeStringBuilder, UInt32Builder, UInt64Builder,
};
use gargalo_units::{Bytes, Count, Duration, Instant, Rate};
use serde_json::Value as Json;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Unsigned 64-bit integer.
    U64,
    /// Unsigned 32-bit integer.
    U32,
    /// 64-bit floating-point number.
    F64,
    /// True or false.
    Bool,
    /// Text in UTF-8.
    String,
}

impl Type {
    /// The name in the reference: `u64`, `f64`, `string`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::U64 => "u64",
            Self::U32 => "u32",
            Self::F64 => "f64",
            Self::Bool => "bool",
            Self::String => "string",
        }
    }
}

/// A column of a results table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in files, with the unit as suffix where there is one.
    pub name: &'static str,
    /// Type of the values.
    pub ty: Type,
    /// Whether values may be missing.
    pub nullable: bool,
    /// Unit: "s", "byte", "bit/s", "packet"; "1" for ratios and counts; empty where there is none.
    pub unit: &'static str,
    pub(crate) doc: &'static str,
}

impl Column {
    /// What the column means, in a sentence or two.
    pub fn doc(&self) -> &'static str {
        self.doc.trim()
    }
}

/// A results table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Name; the file is `<name>.parquet`.
    pub name: &'static str,
    /// The columns in order.
    pub columns: &'static [Column],
    pub(crate) doc: &'static str,
}

impl Schema {
    /// The meaning of a row.
    pub fn doc(&self) -> &'static str {
        self.doc.trim()
    }
}

/// The values of one column.
#[derive(Debug)]
pub enum Buffer {
    /// Unsigned 64-bit integers.
    U64(UInt64Builder),
    /// Unsigned 32-bit integers.
    U32(UInt32Builder),
    /// 64-bit floating-point numbers.
    F64(Float64Builder),
    /// Booleans, one bit each.
    Bool(BooleanBuilder),
    /// Texts, one after the other in one buffer.
    String(LargeStringBuilder),
}

impl Buffer {
    fn new(ty: Type, rows: usize) -> Self {
        match ty {
            Type::U64 => Self::U64(UInt64Builder::with_capacity(rows)),
            Type::U32 => Self::U32(UInt32Builder::with_capacity(rows)),
            Type::F64 => Self::F64(Float64Builder::with_capacity(rows)),
            Type::Bool => Self::Bool(BooleanBuilder::with_capacity(rows)),
            Type::String => Self::String(LargeStringBuilder::with_capacity(rows, rows * 8)),
        }
    }

    pub(crate) fn to_array(&self) -> arrow_array::ArrayRef {
        match self {
            Self::U64(b) => std::sync::Arc::new(b.finish_cloned()),
            Self::U32(b) => std::sync::Arc::new(b.finish_cloned()),
            Self::F64(b) => std::sync::Arc::new(b.finish_cloned()),
            Self::Bool(b) => std::sync::Arc::new(b.finish_cloned()),
            Self::String(b) => std::sync::Arc::new(b.finish_cloned()),
        }
    }

    /// The value of a row; null: it is missing, or there is no such row.
    fn cell(&self, row: usize) -> Json {
        let bit = |bits: &[u8]| bits.get(row / 8).is_some_and(|b| b & (1 << (row % 8)) != 0);
        if self.present().is_some_and(|bits| !bit(bits)) {
            return Json::Null;
        }
        match self {
            Self::U64(b) => b.values_slice().get(row).copied().into(),
            Self::U32(b) => b.values_slice().get(row).copied().into(),
            Self::F64(b) => b.values_slice().get(row).copied().into(),
            Self::Bool(b) => (row < b.len()).then(|| bit(b.values_slice())).into(),
            Self::String(b) => {
                let place = |i: usize| usize::try_from(*b.offsets_slice().get(i)?).ok();
                let text = place(row).zip(place(row + 1));
                let text = text.and_then(|(from, to)| b.values_slice().get(from..to));
                text.map(String::from_utf8_lossy).into()
            }
        }
    }

    /// A bit for each row: whether its value is there. `None`: all are.
    fn present(&self) -> Option<&[u8]> {
        match self {
            Self::U64(b) => b.validity_slice(),
            Self::U32(b) => b.validity_slice(),
            Self::F64(b) => b.validity_slice(),
            Self::Bool(b) => b.validity_slice(),
            Self::String(b) => b.validity_slice(),
        }
    }

    fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        match self {
            Self::U64(b) => values(b.values_slice(), u64::to_le_bytes, sink),
            Self::U32(b) => values(b.values_slice(), u32::to_le_bytes, sink),
            Self::F64(b) => values(b.values_slice(), f64::to_le_bytes, sink),
            Self::Bool(b) => sink(b.values_slice()),
            Self::String(b) => {
                values(b.offsets_slice(), i64::to_le_bytes, sink);
                sink(b.values_slice());
            }
        }
        sink(self.present().unwrap_or_default());
    }

    fn push_null(&mut self) {
        match self {
            Self::U64(b) => b.append_null(),
            Self::U32(b) => b.append_null(),
            Self::F64(b) => b.append_null(),
            Self::Bool(b) => b.append_null(),
            Self::String(b) => b.append_null(),
        }
    }
}

/// Passes numbers to a digest in batches.
fn values<T: Copy, const N: usize>(
    all: &[T],
    bytes: impl Fn(T) -> [u8; N],
    sink: &mut dyn FnMut(&[u8]),
) {
    for some in all.chunks(1024) {
        let some: Vec<u8> = some.iter().flat_map(|x| bytes(*x)).collect();
        sink(&some);
    }
}

/// A type that a row field may have; fixes type and unit of the column.
pub trait Cell {
    /// Type of the column.
    const TYPE: Type;
    /// Whether values may be missing.
    const NULLABLE: bool = false;
    /// Appends the value to a buffer of [`Cell::TYPE`].
    fn push(self, column: &mut Buffer);
}

macro_rules! cells {
    ($($ty:ty => $variant:ident, |$x:ident| $value:expr;)+) => { $(
        impl Cell for $ty {
            const TYPE: Type = Type::$variant;
            #[inline]
            fn push(self, column: &mut Buffer) {
                // Buffers are created from the schema, whose types are those of the cells.
                if let Buffer::$variant(b) = column {
                    let $x = self;
                    b.append_value($value);
                }
            }
        }
    )+ };
}

cells! {
    u64 => U64, |x| x;
    u32 => U32, |x| x;
    f64 => F64, |x| x;
    bool => Bool, |x| x;
    &str => String, |x| x;
    Instant => F64, |x| x.decimal_secs();
    Duration => F64, |x| x.decimal_secs();
    Bytes => U64, |x| x.get();
    Rate => F64, |x| x.as_bps() as f64;
}

impl<T: Cell> Cell for Option<T> {
    const TYPE: Type = T::TYPE;
    const NULLABLE: bool = true;
    #[inline]
    fn push(self, column: &mut Buffer) {
        match self {
            Some(x) => x.push(column),
            None => column.push_null(),
        }
    }
}

impl Cell for Count {
    const TYPE: Type = Type::U64;
    const NULLABLE: bool = true;
    #[inline]
    fn push(self, column: &mut Buffer) {
        self.get().push(column);
    }
}

/// A kind of results table: its schema and row type. The kinds are in [`schema`](crate::schema).
pub trait Kind {
    /// A row; texts are borrowed.
    type Row<'a>;
    /// Name, meaning and columns of the table.
    const SCHEMA: &'static Schema;
    /// Appends a row to buffers created from [`Kind::SCHEMA`].
    fn push(row: &Self::Row<'_>, columns: &mut [Buffer]);
}

/// The columns of a table of any kind.
#[derive(Debug)]
pub struct Columns {
    schema: &'static Schema,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl Columns {
    /// Names, types, units.
    pub const fn schema(&self) -> &'static Schema {
        self.schema
    }
    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.rows
    }
    /// Whether there is no row.
    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }
    /// The values of a float column; missing ones are zero.
    pub fn f64s(&self, column: &str) -> Option<&[f64]> {
        match self.buffer(column)? {
            Buffer::F64(b) => Some(b.values_slice()),
            _ => None,
        }
    }
    /// The values of an integer column; missing ones are zero.
    pub fn u64s(&self, column: &str) -> Option<&[u64]> {
        match self.buffer(column)? {
            Buffer::U64(b) => Some(b.values_slice()),
            _ => None,
        }
    }
    /// Each row as an object of its columns; missing values are null.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Json> {
        let row = |i: usize| {
            let cells = self.schema.columns.iter().zip(&self.buffers);
            let cells = cells.map(|(c, buffer)| (c.name.to_owned(), buffer.cell(i)));
            Json::Object(cells.collect())
        };
        (0..self.rows).map(row)
    }
    /// Passes the content to a digest, column by column: equal bytes mean equal rows.
    pub fn feed(&self, sink: &mut dyn FnMut(&[u8])) {
        sink(self.schema.name.as_bytes());
        sink(&(self.rows as u64).to_le_bytes());
        for buffer in &self.buffers {
            buffer.feed(sink);
        }
    }
    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }
    fn buffer(&self, column: &str) -> Option<&Buffer> {
        let i = self.schema.columns.iter().position(|c| c.name == column)?;
        self.buffers.get(i)
    }
}

/// A table of results of one kind, filled row by row.
///
/// A row costs some nanoseconds per column and allocates only when a column doubles. Operations on any table are
/// methods of [`Columns`], to which it dereferences.
pub struct Table<K> {
    columns: Columns,
    kind: PhantomData<fn(K)>,
}

impl<K: Kind> Table<K> {
    /// An empty table.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }
    /// An empty table with room for `rows` rows.
    pub fn with_capacity(rows: usize) -> Self {
        let of = |c: &Column| Buffer::new(c.ty, rows);
        Self {
            columns: Columns {
                schema: K::SCHEMA,
                buffers: K::SCHEMA.columns.iter().map(of).collect(),
                rows: 0,
            },
            kind: PhantomData,
        }
    }
    /// Appends a row.
    #[inline]
    pub fn push(&mut self, row: &K::Row<'_>) {
        K::push(row, &mut self.columns.buffers);
        self.columns.rows += 1;
    }
}
impl<K: Kind> Default for Table<K> {
    fn default() -> Self {
        Self::new()
    }
}
impl<K> Deref for Table<K> {
    type Target = Columns;
    fn deref(&self) -> &Columns {
        &self.columns
    }
}
impl<K> fmt::Debug for Table<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {} rows)", self.schema.name, self.rows)
    }
}
