//! Tables as Parquet files and Arrow IPC streams. Both carry unit and meaning of each column as field
//! metadata (`unit`, `doc`) and of the table as schema metadata (`table`, `doc`).
//!
//! The same table gives the same bytes: there is no time stamp, `created_by` is fixed, and the arrow crates sort
//! the metadata.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::Error;
use crate::schema::{Column, Schema, Type};
use crate::table::{Buffer, Columns};

const CREATED_BY: &str = concat!("gargalo-trace ", env!("CARGO_PKG_VERSION"));

/// Rows encoded at once: a multiple of the encoder's own batches, so that slices do not change the file.
const SLICE: usize = 1 << 16;

impl Schema {
    /// The schema for Arrow and Parquet.
    pub fn to_arrow(&self) -> SchemaRef {
        let fields: Vec<_> = self.columns.iter().map(field).collect();
        let metadata = [("table", self.name), ("doc", self.doc())];
        let metadata = metadata.map(|(k, v)| (k.to_owned(), v.to_owned()));
        Arc::new(arrow_schema::Schema::new_with_metadata(
            fields,
            std::collections::HashMap::from(metadata),
        ))
    }
}

fn field(c: &Column) -> Field {
    let ty = match c.ty {
        Type::U64 => DataType::UInt64,
        Type::U32 => DataType::UInt32,
        Type::F64 => DataType::Float64,
        Type::Bool => DataType::Boolean,
        Type::String => DataType::LargeUtf8,
    };
    let mut metadata = std::collections::HashMap::from([("doc".to_owned(), c.doc().to_owned())]);
    if !c.unit.is_empty() {
        metadata.insert("unit".to_owned(), c.unit.to_owned());
    }
    Field::new(c.name, ty, c.nullable).with_metadata(metadata)
}

impl Columns {
    /// A copy as an Arrow record batch.
    ///
    /// # Errors
    /// When the columns do not fit the schema, which cannot happen with a [`Table`](crate::Table).
    pub fn to_batch(&self) -> Result<RecordBatch, Error> {
        let arrays = self.buffers().iter().map(Buffer::to_array).collect();
        RecordBatch::try_new(self.schema().to_arrow(), arrays).map_err(|e| self.failed(&e))
    }

    /// Writes the table as a Parquet file (snappy).
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn write_parquet<W: Write + Send>(&self, out: W) -> Result<W, Error> {
        self.write_parquet_while(out, &mut |_| ControlFlow::Continue(()))
    }

    /// The same; `go_on` is called at intervals with the number of rows written so far.
    ///
    /// # Errors
    /// When `out` cannot be written, or `go_on` breaks.
    pub(crate) fn write_parquet_while<W: Write + Send>(
        &self,
        out: W,
        go_on: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> Result<W, Error> {
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::SNAPPY)
            .build();
        let batch = self.to_batch()?;
        let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))
            .map_err(|e| self.failed(&e))?;
        let rows = batch.num_rows();
        for from in (0..rows.max(1)).step_by(SLICE) {
            if go_on(from).is_break() {
                return Err(Error::Stopped);
            }
            let slice = batch.slice(from, SLICE.min(rows - from));
            writer.write(&slice).map_err(|e| self.failed(&e))?;
        }
        writer.into_inner().map_err(|e| self.failed(&e))
    }

    /// The table as the bytes of a Parquet file.
    ///
    /// # Errors
    /// Like [`Columns::write_parquet`].
    pub fn to_parquet(&self) -> Result<Vec<u8>, Error> {
        self.write_parquet(Vec::new())
    }

    /// The table as an Arrow IPC stream: pyarrow and polars take it without conversion.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn to_ipc(&self) -> Result<Vec<u8>, Error> {
        let batch = self.to_batch()?;
        let mut writer =
            StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(|e| self.failed(&e))?;
        writer.write(&batch).map_err(|e| self.failed(&e))?;
        writer.into_inner().map_err(|e| self.failed(&e))
    }

    fn failed(&self, e: &dyn std::error::Error) -> Error {
        Error::Encode {
            table: self.schema().name,
            message: e.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;
    use crate::schema::{EventRow, Events};
    use gargalo_units::Instant;

    /// A table of this many rows, with texts and missing values.
    fn table(rows: usize) -> Table<Events> {
        let mut table = Table::new();
        for i in 0..rows {
            let detail = format!("n={}", i * 7919 % 1013);
            table.push(&EventRow {
                time: Instant::from_nanos(i as u64 * 1013),
                flow: (i % 3 > 0).then_some(i as u64 % 5),
                kind: ["loss", "ecn"][i % 2],
                detail: &detail,
            });
        }
        table
    }

    #[test]
    fn slices_do_not_show_in_the_file() {
        let table = table(3 * SLICE + 1717);
        let batch = table.to_batch().unwrap();
        let properties = WriterProperties::builder()
            .set_created_by(CREATED_BY.to_owned())
            .set_compression(Compression::SNAPPY)
            .build();
        let mut writer =
            ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        let at_once = writer.into_inner().unwrap();
        assert!(at_once == table.to_parquet().unwrap());
    }

    #[test]
    fn writing_can_be_stopped_in_the_middle_of_a_table() {
        let table = table(3 * SLICE);
        let mut asked = Vec::new();
        let stopped = table.write_parquet_while(Vec::new(), &mut |rows| {
            asked.push(rows);
            match rows {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        assert!(matches!(stopped, Err(Error::Stopped)));
        assert_eq!(asked, [0, SLICE]);
    }
}
