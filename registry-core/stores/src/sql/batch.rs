//! What is written in one transaction: calls counted, records added to their chains, and other statements, as many as wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use sha2::{Digest, Sha256};

use super::link::{Link, Row, Statement, Value, parameters, statement};
use registry_core::{
    guard::{
        audit::chain,
        limits::{self, Charge, Limited},
    },
    store::StoreError,
};

/// Something to be written.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    Charge(Charge),
    Refund(Charge),
    Record(Entry),
    /// All of them, or none.
    Statements(Vec<Statement>),
}

/// A record as it goes into the audit.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) chain: ChainKey,
    /// `ts`, `user_id`, `tool`, `call_id`, `happened`.
    pub(crate) columns: [Value; 5],
    pub(crate) record: Arc<str>,
}

/// Tenant and server.
pub(crate) type ChainKey = (Arc<str>, Arc<str>);
/// Tenant, user and tool.
type CountKey = (Arc<str>, Arc<str>, Arc<str>);

/// What came of it.
#[derive(Debug)]
pub(crate) enum Answer {
    Done,
    Charged(Option<Limited>),
    /// The rows of each statement.
    Rows(Vec<Vec<Row>>),
}

/// So many rows go into one statement, the largest number that is left over first: few statements for any number of rows, and few
/// different ones to be prepared.
const SIZES: [usize; 9] = [256, 128, 64, 32, 16, 8, 4, 2, 1];

/// Numbers of what the work writes to: two batches with a number in common are not written at once.
pub(crate) fn locks(work: &[Work]) -> BTreeSet<i32> {
    /// Users and tools share so many locks, because a database has room for only some thousands.
    const COUNTS: u32 = 256;
    let number = |parts: &[&str]| {
        let hash = Sha256::digest(parts.join("\n"));
        hash.iter().take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
    };
    let one = |work: &Work| match work {
        Work::Charge(charge) | Work::Refund(charge) => {
            number(&[&charge.tenant, &charge.user, &charge.tool]) % COUNTS
        }
        Work::Statements(_) => COUNTS,
        // Any number but those, of which there are enough.
        Work::Record(entry) => number(&[&entry.chain.0, &entry.chain.1]).max(COUNTS + 1),
    };
    // The same bits: which lock has which number says nothing.
    work.iter().map(|work| one(work).cast_signed()).collect()
}

/// Writes all of it, inside a transaction that is open. The answers are in the order of the work.
pub(crate) async fn write(link: &mut dyn Link, work: &[Work]) -> Result<Vec<Answer>, StoreError> {
    let mut counts = read_counts(link, work).await?;
    let mut heads = read_heads(link, work).await?;
    let mut touched = BTreeSet::new();
    let mut entries = Vec::new();
    let mut answers = Vec::with_capacity(work.len());
    for work in work {
        answers.push(match work {
            Work::Charge(charge) => {
                let key = count_key(charge);
                Answer::Charged(match limits::UsageRow::charged(counts.get(&key).copied(), charge) {
                    Ok(row) => {
                        counts.insert(key.clone(), row);
                        touched.insert(key);
                        None
                    }
                    Err(limited) => Some(limited),
                })
            }
            Work::Refund(charge) => {
                let key = count_key(charge);
                if let Some(row) = counts.get_mut(&key) {
                    *row = row.refunded(charge);
                    touched.insert(key);
                }
                Answer::Done
            }
            Work::Record(entry) => {
                let (tenant, server) = &entry.chain;
                let head = heads
                    .entry(&entry.chain)
                    .or_insert_with(|| chain::Head { seq: 0, sha256: chain::origin(tenant, server) });
                let seq = head.seq + 1;
                let sha256 = chain::link(&head.sha256, seq, &entry.record);
                let previous = std::mem::replace(&mut head.sha256, sha256.clone());
                head.seq = seq;
                entries.extend([tenant.clone().into(), server.clone().into(), Value::Int(seq.cast_signed())]);
                entries.extend(entry.columns.iter().cloned());
                entries.extend([previous.into(), sha256.into(), entry.record.clone().into()]);
                Answer::Done
            }
            Work::Statements(statements) => {
                let mut rows = Vec::with_capacity(statements.len());
                for statement in statements {
                    rows.push(link.fetch(statement.clone()).await?);
                }
                Answer::Rows(rows)
            }
        });
    }
    let counts = touched.iter().filter_map(|key| counts.get(key).map(|row| count_values(key, row))).flatten();
    in_rows(link, INSERT_COUNTS, 8, counts.collect()).await?;
    in_rows(link, INSERT_RECORDS, 11, entries).await?;
    Ok(answers)
}

const INSERT_COUNTS: [&str; 2] = [
    "INSERT INTO call_counts (tenant, user_id, tool, day, calls, last, before, until) VALUES ",
    " ON CONFLICT (tenant, user_id, tool) DO UPDATE SET day = excluded.day, calls = excluded.calls, \
     last = excluded.last, before = excluded.before, until = excluded.until",
];
const INSERT_RECORDS: [&str; 2] = [
    "INSERT INTO audit (tenant, server, seq, ts, user_id, tool, call_id, happened, previous, sha256, record) VALUES ",
    "",
];
/// Joined in this order, so that each key is looked up and the table is never read from end to end. The first column says which key a
/// row is of.
const SELECT_COUNTS: [&str; 2] = [
    "SELECT column1, day, calls, last, before, until FROM (VALUES ",
    ") AS wanted CROSS JOIN call_counts WHERE tenant = column2 AND user_id = column3 AND tool = column4",
];

/// Runs a statement as often as it takes for all rows, which are so many columns wide.
async fn in_rows(
    link: &mut dyn Link,
    [before, behind]: [&'static str; 2],
    columns: usize,
    mut values: Vec<Value>,
) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    while !values.is_empty() {
        let rows = values.len() / columns;
        let size = SIZES.into_iter().find(|size| *size <= rows).unwrap_or(1);
        let rest = values.split_off(values.len().min(size * columns));
        let sql = format!("{before}{}{behind}", parameters(size, columns, link.numbers_parameters()));
        found.extend(link.fetch(Statement::new(sql, std::mem::replace(&mut values, rest))).await?);
    }
    Ok(found)
}

fn count_key(charge: &Charge) -> CountKey {
    (Arc::clone(&charge.tenant), charge.user.as_str().into(), Arc::clone(&charge.tool))
}

fn count_values((tenant, user, tool): &CountKey, row: &limits::UsageRow) -> [Value; 8] {
    [
        tenant.clone().into(),
        user.clone().into(),
        tool.clone().into(),
        row.day.into(),
        i64::from(row.calls).into(),
        row.last.into(),
        row.before.into(),
        row.until.into(),
    ]
}

/// What is known of the calls that are to be counted or taken back.
async fn read_counts(
    link: &mut dyn Link,
    work: &[Work],
) -> Result<BTreeMap<CountKey, limits::UsageRow>, StoreError> {
    let keys: BTreeSet<CountKey> = work
        .iter()
        .filter_map(|work| match work {
            Work::Charge(charge) | Work::Refund(charge) => Some(count_key(charge)),
            _ => None,
        })
        .collect();
    let keys: Vec<CountKey> = keys.into_iter().collect();
    let wanted = |(number, (tenant, user, tool)): (i64, &CountKey)| {
        [number.into(), tenant.clone().into(), user.clone().into(), tool.clone().into()]
    };
    let rows = in_rows(link, SELECT_COUNTS, 4, (0..).zip(&keys).flat_map(wanted).collect()).await?;
    let read = |mut row: Row| {
        let stray = || StoreError::corrupt("a count of nobody who was asked for");
        let key = keys.get(row.count::<usize>()?).cloned().ok_or_else(stray)?;
        let (day, calls, last, before) = (row.int()?, row.count()?, row.time()?, row.text()?);
        let before = match &*before {
            "" => None,
            text => Some(text.parse().map_err(StoreError::corrupt)?),
        };
        Ok((key, limits::UsageRow { day, calls, last, before, until: row.time()? }))
    };
    rows.into_iter().map(read).collect()
}

/// The ends of the chains that records are to be added to.
async fn read_heads<'a>(
    link: &mut dyn Link,
    work: &'a [Work],
) -> Result<BTreeMap<&'a ChainKey, chain::Head>, StoreError> {
    const HEAD: &str =
        "SELECT seq, sha256 FROM audit WHERE tenant = $1 AND server = $2 ORDER BY seq DESC LIMIT 1";
    let chains: BTreeSet<&ChainKey> = work
        .iter()
        .filter_map(|work| match work {
            Work::Record(entry) => Some(&entry.chain),
            _ => None,
        })
        .collect();
    let mut heads = BTreeMap::new();
    for chain in chains {
        if let Some(mut row) = link.fetch(statement!(HEAD, chain.0.clone(), chain.1.clone())).await?.pop() {
            heads.insert(chain, chain::Head { seq: row.count()?, sha256: row.string()? });
        }
    }
    Ok(heads)
}
