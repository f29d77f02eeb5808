//! Documents in a database, whichever it is.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use jiff::Timestamp;
use registry_core::ToolError;
use serde_json::Value;

use super::{
    Added, Contents, Document, DocumentFilter, DocumentIndex, Extracted, Forgotten, Graph, GraphQuery,
    MetadataRows, Passage, Quota, StoredDocument, UnreadPassage,
    database::{Database, Statement},
    graph::walk,
    query::{TextQuery, fill_up},
    rows::{Rows, extracted_rows, folder},
    sql::{PASSAGE, narrow, seconds},
    vectors::{all_normalised, normalised},
};

/// How long vectors are compared for a question, until it is answered by words alone.
const COMPARING: Duration = Duration::from_secs(5);

const UNREAD: &str = "SELECT passage.id, title, section, text";

#[async_trait]
impl<D: Database> DocumentIndex for D {
    fn contents(&self) -> Contents {
        Database::contents(self)
    }

    async fn refresh(&self) {
        self.look(false).boxed().await
    }

    async fn add_within(
        &self,
        mut document: Document,
        quota: Option<&Quota>,
    ) -> Result<Option<Added>, ToolError> {
        if self.has(&document.path, &document.hash).await? {
            return Ok(Some(Added::Unchanged));
        }
        // Neither the words of SQLite nor any text of PostgreSQL has a place for it.
        for line in document.lines.iter_mut().filter(|line| line.text.contains('\0')) {
            line.text = line.text.replace('\0', " ");
        }
        let (document, rows) = Rows::of(document, D::words).await?;
        let added = in_transaction(self, async |transaction| {
            if let Some(quota) = quota {
                let kept = D::write(transaction, kept(self, quota, &document.path)).await?;
                if !fits(quota, kept, u64::try_from(rows.kept).unwrap_or_default()) {
                    return Ok(None);
                }
            }
            replace(self, transaction, &document, &rows).await.map(Some)
        });
        let added = added.await?;
        if added == Some(Added::Updated) {
            self.give_back().await;
        }
        if added.is_some() {
            self.update(|contents| contents.documents = true);
        }
        Ok(added)
    }

    async fn has_room(&self, quota: &Quota, path: &str, bytes: u64) -> Result<bool, ToolError> {
        Ok(fits(quota, self.rows(kept(self, quota, path)).await?, bytes))
    }

    async fn has(&self, path: &str, hash: &str) -> Result<bool, ToolError> {
        let found = self.rows(Statement::new(self, D::SQL.has).given(path).given(hash)).await?;
        Ok(found.contains(&(true,)))
    }

    async fn remove(&self, path: &str) -> Result<Vec<String>, ToolError> {
        let removed = in_transaction(self, async |transaction| {
            let remove = Statement::new(self, D::SQL.remove).given(path).given(&*folder(path));
            let removed = D::write::<(String,)>(transaction, remove).await?;
            remove_unmentioned(self, transaction).await?;
            Ok(removed)
        });
        let mut removed: Vec<String> = removed.await?.into_iter().map(|(path,)| path).collect();
        removed.sort();
        if !removed.is_empty() {
            self.give_back().await;
        }
        self.look(true).await;
        Ok(removed)
    }

    async fn list(&self, filter: &DocumentFilter) -> Result<Vec<StoredDocument>, ToolError> {
        let mut list = Statement::new(self, D::SQL.list);
        narrow(&mut list, filter);
        list.push(" ORDER BY path");
        self.rows(list).await
    }

    async fn first(
        &self,
        own: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<(Vec<StoredDocument>, usize), ToolError> {
        let own = folder(own);
        let mut list = Statement::new(self, D::SQL.listed);
        narrow(&mut list, filter);
        list.push(" ORDER BY substr(path, 1, CAST(").bind(own.chars().count());
        list.push(" AS INTEGER)) = ").bind(&*own).push(" DESC, path LIMIT ").bind(limit);
        let mut count = Statement::new(self, D::SQL.count);
        narrow(&mut count, filter);
        Ok((self.rows(list).await?, counted(self.rows(count).await?)))
    }

    async fn search(
        &self,
        question: &str,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let asked = TextQuery::of(question)?;
        let matching = async |beginning| {
            let words = D::query(&asked, beginning);
            let found = Statement::new(self, [PASSAGE, D::SQL.matching].concat()).given(&*words);
            self.found(best::<D>(found, limit, filter)).await
        };
        let mut passages = matching(false).await?;
        if passages.len() < limit {
            fill_up(&mut passages, matching(true).await?, limit);
        }
        Ok(passages)
    }

    async fn without_vectors(&self, model: &str, limit: usize) -> Result<Vec<UnreadPassage>, ToolError> {
        self.rows(Statement::new(self, D::SQL.without_vectors).given(model).given(limit)).await
    }

    async fn keep_vectors(&self, model: &str, vectors: Vec<(i64, Vec<f32>)>) -> Result<(), ToolError> {
        let (vectors, dimensions) = all_normalised(vectors);
        in_transaction(self, async |transaction| {
            if dimensions > 0 {
                // Of what the model's name stood for before.
                let others = Forgotten::OtherThan(dimensions);
                D::write::<(i64,)>(transaction, forget(self, model, others)).await?;
            }
            for (passage, vector) in vectors {
                let length = vector.len();
                let keep = Statement::new(self, D::SQL.keep_vector).given(model).given(passage);
                D::write::<()>(transaction, keep.given(vector).given(length)).await?;
            }
            Ok(())
        })
        .await
    }

    async fn forget_vectors(
        &self,
        model: &str,
        which: Forgotten,
        filter: &DocumentFilter,
    ) -> Result<usize, ToolError> {
        let mut forget = forget(self, model, which);
        if *filter != DocumentFilter::default() {
            forget.push(D::SQL.of_passages);
            narrow(&mut forget, filter);
            forget.push(")");
        }
        forget.push(" RETURNING chunk");
        in_transaction(self, async |transaction| Ok(D::write::<(i64,)>(transaction, forget).await?.len()))
            .await
    }

    async fn claim(&self, work: &str, holder: &str, seconds: u32) -> Result<bool, ToolError> {
        let claim = Statement::new(self, D::SQL.claim).given(work).given(holder).given(i64::from(seconds));
        let given = async |transaction: &mut D::Transaction| D::write::<(i64,)>(transaction, claim).await;
        Ok(!in_transaction(self, given).await?.is_empty())
    }

    async fn release(&self, work: &str, holder: &str) -> Result<(), ToolError> {
        let release = Statement::new(self, D::SQL.release).given(work).given(holder);
        let gone = async |transaction: &mut D::Transaction| D::write::<()>(transaction, release).await;
        in_transaction(self, gone).await.map(drop)
    }

    async fn nearest(
        &self,
        model: &str,
        vector: &[f32],
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<Passage>, ToolError> {
        let Some(vector) = normalised(vector.to_vec()) else {
            return Err(ToolError::invalid("a vector of zeros or of no finite numbers is near to nothing"));
        };
        let (nearest, length) = (Database::nearest(self).await?, vector.len());
        let found = Statement::new(self, [PASSAGE, nearest].concat());
        let found = found.given(vector).given(model).given(length);
        let compared = self.rows_within(best::<D>(found, limit, filter), COMPARING);
        let late = || self.fault(format!("vectors were not compared within {} s", COMPARING.as_secs()));
        tokio::time::timeout(COMPARING, compared).await.unwrap_or_else(|_| Err(late()))
    }

    async fn select(&self, sql: &str) -> Result<MetadataRows, ToolError> {
        Database::select(self, sql).await
    }

    async fn unextracted(
        &self,
        limit: usize,
        filter: &DocumentFilter,
    ) -> Result<Vec<UnreadPassage>, ToolError> {
        let mut unread = Statement::new(self, [UNREAD, D::SQL.unextracted].concat());
        narrow(&mut unread, filter);
        unread.push(" ORDER BY passage.id LIMIT ").bind(limit);
        self.rows(unread).await
    }

    async fn count_unextracted(&self, filter: &DocumentFilter) -> Result<usize, ToolError> {
        let mut count = Statement::new(self, ["SELECT count(*)", D::SQL.unextracted].concat());
        narrow(&mut count, filter);
        Ok(counted(self.rows(count).await?))
    }

    async fn keep_extracted(&self, model: &str, passages: Vec<(i64, Extracted)>) -> Result<(), ToolError> {
        in_transaction(self, async |transaction| {
            for (passage, extracted) in &passages {
                let mark = Statement::new(self, D::SQL.mark_extracted).given(model).given(*passage);
                if D::write::<(i64,)>(transaction, mark).await?.is_empty() {
                    continue;
                }
                let (names, relations) = extracted_rows(extracted);
                let [add_names, add_mentions] = D::SQL.add_names;
                let steps = [(add_names, &names), (add_mentions, &names), (D::SQL.add_relations, &relations)];
                for (sql, rows) in steps {
                    let add = Statement::new(self, sql).given(*passage).given(rows.as_str());
                    D::write::<()>(transaction, add).await?;
                }
            }
            Ok(())
        })
        .await?;
        if passages.iter().any(|(_, extracted)| !extracted.names.is_empty()) {
            self.update(|contents| contents.graph = true);
        }
        Ok(())
    }

    async fn graph(&self, query: &GraphQuery) -> Result<Graph, ToolError> {
        walk(self, query).await
    }
}

/// What is done is kept whole, or none of it.
async fn in_transaction<D: Database, T>(
    database: &D,
    work: impl AsyncFnOnce(&mut D::Transaction) -> Result<T, sqlx::Error>,
) -> Result<T, ToolError> {
    let mut transaction = database.begin().await?;
    let done = match work(&mut transaction).await {
        Ok(done) => D::commit(transaction).await.map(|()| done),
        Err(error) => Err(error),
    };
    done.map_err(|error| database.fault(error))
}

/// The passages of the best rows of an inner query, which is open at its conditions. They are known before their texts are read.
fn best<D: Database>(mut found: Statement, limit: usize, filter: &DocumentFilter) -> Statement {
    if *filter != DocumentFilter::default() {
        found.push(D::SQL.of_documents);
        narrow(&mut found, filter);
        found.push(")");
    }
    found.push(" ORDER BY score DESC, id LIMIT ").bind(limit).push(") AS best");
    found.push(D::SQL.joined).push(" ORDER BY best.score DESC, best.id");
    found
}

/// Forgets vectors; open at its conditions.
fn forget<D: Database>(database: &D, model: &str, which: Forgotten) -> Statement {
    let mut forget = Statement::new(database, D::SQL.forget_vectors).given(model);
    match which {
        Forgotten::All => {}
        Forgotten::Refused => {
            forget.push(" AND dimensions = 0");
        }
        Forgotten::OtherThan(length) => {
            forget.push(" AND dimensions NOT IN (0, ").bind(length).push(")");
        }
    }
    forget
}

fn counted(count: Vec<(i64,)>) -> usize {
    count.first().and_then(|(count,)| usize::try_from(*count).ok()).unwrap_or_default()
}

/// What is kept in the folder of a quota beside the document of that path.
fn kept<D: Database>(database: &D, quota: &Quota, path: &str) -> Statement {
    Statement::new(database, D::SQL.kept).given(&*folder(&quota.folder)).given(path)
}

/// Whether there is room for one more document, of so many bytes.
fn fits(quota: &Quota, kept: Vec<(i64, i64)>, bytes: u64) -> bool {
    let (documents, others) = kept.into_iter().next().unwrap_or_default();
    let size = |number: i64| u64::try_from(number).unwrap_or_default();
    size(documents) < quota.documents && size(others).saturating_add(bytes) <= quota.bytes
}

async fn replace<D: Database>(
    database: &D,
    transaction: &mut D::Transaction,
    document: &Document,
    rows: &Rows,
) -> Result<Added, sqlx::Error> {
    let known = Statement::new(database, D::SQL.known).given(&*document.path);
    let added = match D::write::<(i64, String)>(transaction, known).await?.pop() {
        Some((_, hash)) if hash == document.hash => return Ok(Added::Unchanged),
        Some((id, _)) => {
            D::write::<()>(transaction, Statement::new(database, D::SQL.remove_known).given(id)).await?;
            remove_unmentioned(database, transaction).await?;
            Added::Updated
        }
        None => Added::New,
    };
    let add = Statement::new(database, D::SQL.add)
        .given(&*document.path)
        .given(&*document.title)
        .given(document.kind.as_str())
        .given(i64::try_from(document.bytes).unwrap_or(i64::MAX))
        .given(rows.count)
        .given(document.language.clone())
        .given(document.modified.map(seconds))
        .given(&*seconds(Timestamp::now()))
        .given(&*document.hash)
        .given(&*Value::Object(document.metadata.clone()).to_string())
        .given(rows.kept);
    for (id,) in D::write::<(i64,)>(transaction, add).await? {
        for sql in D::SQL.add_passages {
            let add = Statement::new(database, *sql).given(id).given(&*rows.json).given(&*rows.title_words);
            D::write::<()>(transaction, add).await?;
        }
    }
    Ok(added)
}

async fn remove_unmentioned<D: Database>(
    database: &D,
    transaction: &mut D::Transaction,
) -> Result<(), sqlx::Error> {
    D::write::<()>(transaction, Statement::new(database, D::SQL.remove_unmentioned)).await.map(drop)
}
