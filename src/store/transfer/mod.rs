//! Carrying all records from one store to another (data transfer, `unionhall move`), for a union that outgrows its machine.
//!
//! The source is held so that nobody can change it, every row is copied, the copy is read back and compared, and only
//! then is it made valid, at once. Last the source is retired: it refuses every write from then on, so that a forgotten
//! process cannot take sign-ups that nobody would ever see. Interrupted at any moment, the source is as it was, or the
//! copy is complete; running it again does the rest.

mod tables;

use ring::digest::{Context, SHA256};

pub use self::tables::{TABLES, Table};
use super::StoreError;
use super::sql::{Columns, Failure, SqlReply, Value};
use crate::domain::time::Timestamp;

/// A value, whatever a store makes of it.
#[derive(Clone, PartialEq, Eq)]
pub enum Cell {
    Null,
    /// Truth is 0 or 1.
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<Value<'_>> for Cell {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Flag(flag) => Self::Number(flag.into()),
            Value::Number(number) => Self::Number(number),
            Value::Text(text) => Self::Text(text.to_owned()),
            Value::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}

impl<'a> From<&'a Cell> for Value<'a> {
    fn from(cell: &'a Cell) -> Self {
        match cell {
            Cell::Null => Self::Null,
            Cell::Number(number) => Self::Number(*number),
            Cell::Text(text) => Self::Text(text),
            Cell::Bytes(bytes) => Self::Bytes(bytes),
        }
    }
}

pub type Cells = Vec<Cell>;

/// Every cell of a row.
pub(super) fn cells(row: &dyn Columns, columns: usize) -> Result<Cells, Failure> {
    (0..columns).map(|column| row.value(column).map(Cell::from)).collect()
}

/// Records that nobody else can change while this is there. Nobody else sees any of a copy before it is finished.
pub trait Transfer: Send {
    /// The rows of a question, with `$1` for the key after which they begin.
    fn select<'a>(&'a mut self, sql: String, after: Option<&'a Cell>) -> SqlReply<'a, Vec<Cells>>;

    /// The names of a table's columns.
    fn columns(&mut self, table: &'static Table) -> SqlReply<'_, Vec<String>>;

    /// The last number that was given to a row of a numbered table, even if that row is gone.
    fn last_number(&mut self, table: &'static Table) -> SqlReply<'_, i64>;

    fn append<'a>(&'a mut self, table: &'a TableColumns, rows: &'a [Cells]) -> SqlReply<'a, ()>;

    /// Numbers go on after this one: links and message ids are made from them, and none may come back.
    fn number_after(&mut self, table: &'static Table, last: i64) -> SqlReply<'_, ()>;

    /// Makes the copy valid.
    fn finish(&mut self) -> SqlReply<'_, ()>;

    /// Refuses every write from now on, for good; `place` is where the records are now.
    fn retire<'a>(&'a mut self, place: &'a str, now: Timestamp) -> SqlReply<'a, ()>;
}

/// Some rows of the table, in the order of their keys, after the one with that key.
async fn rows(
    records: &mut dyn Transfer,
    TableColumns { table: Table { name, key, .. }, columns }: &TableColumns,
    after: Option<&Cell>,
    most: usize,
) -> Result<Vec<Cells>, Failure> {
    let rest = if after.is_some() { format!("WHERE {key} > $1") } else { String::new() };
    records.select(format!("SELECT {columns} FROM {name} {rest} ORDER BY {key} LIMIT {most}"), after).await
}

/// A table and its columns, separated by commas, the key first.
pub struct TableColumns {
    pub table: &'static Table,
    pub columns: String,
}

/// All tables as the source has them; the target has the same schema.
async fn tables(source: &mut dyn Transfer) -> Result<Vec<TableColumns>, MoveError> {
    let mut all = Vec::with_capacity(TABLES.len());
    for table in TABLES {
        let mut columns = source.columns(table).await.map_err(from(table))?;
        columns.sort_by_key(|column| column != table.key);
        all.push(TableColumns { table, columns: columns.join(", ") });
    }
    Ok(all)
}

async fn count(records: &mut dyn Transfer, table: &Table) -> Result<u64, Failure> {
    let counted = records.select(format!("SELECT count(*) FROM {}", table.name), None).await?;
    match counted.first().and_then(|row| row.first()) {
        Some(Cell::Number(count)) => Ok(count.unsigned_abs()),
        _ => Err(Failure::Unusable("a table cannot be counted".to_owned())),
    }
}

#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error("the source, at {table}: {error}")]
    Source { table: &'static str, error: StoreError },
    #[error("the target, at {table}: {error}")]
    Target { table: &'static str, error: StoreError },
    #[error("the target is not empty: {0}; give a new database, or one that nothing was written to")]
    NotEmpty(String),
    #[error(
        "the copy of {table} is not what was copied ({copied} of {rows} rows, or other values); nothing was kept of it, \
         and the source is as it was"
    )]
    Differs { table: &'static str, rows: u64, copied: u64 },
}

/// How far it is.
#[derive(Clone, Copy)]
pub struct Progress {
    pub phase: Phase,
    pub table: &'static str,
    pub done: u64,
    pub all: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Copying,
    Comparing,
}

/// What was found in a table.
#[derive(Clone, PartialEq, Eq)]
pub struct Sum {
    pub table: &'static str,
    pub rows: u64,
    pub checksum: [u8; 32],
}

/// Rows carried at a time.
const COPY_BATCH: usize = 2000;

/// Copies everything and compares it. The target is finished; the source is not retired yet.
pub async fn copy(
    source: &mut dyn Transfer,
    target: &mut dyn Transfer,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Sum>, MoveError> {
    refuse_unless_empty(target).await?;
    let tables = tables(source).await?;
    let mut sums = Vec::new();
    for columns in &tables {
        let table = columns.table;
        let all = count(source, table).await.map_err(from(table))?;
        let mut sum = Summing::new(columns);
        while let Some(rows) = sum.next(source).await.map_err(from(table))? {
            target.append(columns, &rows).await.map_err(to(table))?;
            progress(Progress { phase: Phase::Copying, table: table.name, done: sum.rows, all });
        }
        if sum.rows != all {
            return Err(MoveError::Differs { table: table.name, rows: all, copied: sum.rows });
        }
        if table.numbered {
            let last = source.last_number(table).await.map_err(from(table))?;
            target.number_after(table, last).await.map_err(to(table))?;
        }
        sums.push(sum.finish());
    }
    compare(target, &tables, &sums, progress).await?;
    // A source whose connection broke is no longer held, and may have changed.
    count(source, &TABLES[0]).await.map_err(from(&TABLES[0]))?;
    target.finish().await.map_err(to(&TABLES[0]))?;
    Ok(sums)
}

fn from(table: &Table) -> impl Fn(Failure) -> MoveError + use<> {
    let table = table.name;
    move |failure| MoveError::Source { table, error: failure.into() }
}

fn to(table: &Table) -> impl Fn(Failure) -> MoveError + use<> {
    let table = table.name;
    move |failure| MoveError::Target { table, error: failure.into() }
}

/// Whether the target holds these very records already: a move that was interrupted before its last step.
pub async fn is_copied(
    source: &mut dyn Transfer,
    target: &mut dyn Transfer,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Option<Vec<Sum>>, MoveError> {
    let mut sums = Vec::new();
    for table in TABLES {
        let (here, there) = (count(source, table).await, count(target, table).await);
        if here.map_err(from(table))? != there.map_err(to(table))? {
            return Ok(None);
        }
    }
    let tables = tables(source).await?;
    for columns in &tables {
        let mut sum = Summing::new(columns);
        while sum.next(source).await.map_err(from(columns.table))?.is_some() {}
        sums.push(sum.finish());
    }
    match compare(target, &tables, &sums, progress).await {
        Ok(()) => Ok(Some(sums)),
        Err(MoveError::Differs { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn compare(
    target: &mut dyn Transfer,
    tables: &[TableColumns],
    sums: &[Sum],
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), MoveError> {
    for (columns, expected) in tables.iter().zip(sums) {
        let table = columns.table;
        let mut sum = Summing::new(columns);
        while sum.next(target).await.map_err(to(table))?.is_some() {
            progress(Progress { phase: Phase::Comparing, table: table.name, done: sum.rows, all: expected.rows });
        }
        let found = sum.finish();
        if found != *expected {
            return Err(MoveError::Differs { table: table.name, rows: expected.rows, copied: found.rows });
        }
    }
    Ok(())
}

/// A new store has rows in some tables already; the one about the installation is claimed by the first start.
async fn refuse_unless_empty(target: &mut dyn Transfer) -> Result<(), MoveError> {
    for table in TABLES.iter().filter(|table| !table.has_row) {
        if count(target, table).await.map_err(to(table))? > 0 {
            return Err(MoveError::NotEmpty(format!("there are rows in {}", table.name)));
        }
    }
    let claimed = "SELECT id FROM installation WHERE secret_fingerprint IS NOT NULL".to_owned();
    match target.select(claimed, None).await.map_err(to(&TABLES[0]))?.is_empty() {
        true => Ok(()),
        false => Err(MoveError::NotEmpty("a node has been started on it".to_owned())),
    }
}

/// Reads a table from one end to the other, counting and summing up.
struct Summing<'a> {
    table: &'a TableColumns,
    digest: Context,
    last: Option<Cell>,
    rows: u64,
}

impl<'a> Summing<'a> {
    fn new(table: &'a TableColumns) -> Self {
        Self { table, digest: Context::new(&SHA256), last: None, rows: 0 }
    }

    /// The next rows; none at the end.
    async fn next(&mut self, records: &mut dyn Transfer) -> Result<Option<Vec<Cells>>, Failure> {
        let rows = rows(records, self.table, self.last.as_ref(), COPY_BATCH).await?;
        let Some(last) = rows.last().and_then(|row| row.first()) else { return Ok(None) };
        self.last = Some(last.clone());
        self.rows += rows.len() as u64;
        for cell in rows.iter().flatten() {
            match cell {
                Cell::Null => self.digest.update(b"-"),
                Cell::Number(number) => {
                    self.digest.update(b"n");
                    self.digest.update(&number.to_le_bytes());
                }
                Cell::Text(text) => self.add(b"t", text.as_bytes()),
                Cell::Bytes(bytes) => self.add(b"b", bytes),
            }
        }
        Ok(Some(rows))
    }

    fn add(&mut self, kind: &[u8], bytes: &[u8]) {
        self.digest.update(kind);
        self.digest.update(&(bytes.len() as u64).to_le_bytes());
        self.digest.update(bytes);
    }

    fn finish(self) -> Sum {
        let mut checksum = [0; 32];
        checksum.copy_from_slice(self.digest.finish().as_ref());
        Sum { table: self.table.table.name, rows: self.rows, checksum }
    }
}
