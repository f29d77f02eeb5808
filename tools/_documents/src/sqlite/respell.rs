//! Words of passages that an earlier version looked up otherwise.

use sqlx::{AssertSqlSafe, SqliteConnection};

use crate::{rows::titled, unspaced::spaced};

/// The letters of the scripts that are looked up one by one since version 5: Thai, Lao, Burmese, Khmer, Korean.
const LETTERS: &str = "\u{e01}-\u{e5b}\u{e81}-\u{edf}\u{1000}-\u{109f}\u{1780}-\u{17e9}\u{ac00}-\u{d7a3}";
/// Passages that are in memory at once.
const AT_ONCE: i64 = 500;

/// Looks up the passages that have such letters as those that are added now.
pub(super) async fn respell(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let next = format!(
        "SELECT chunk.id, path, title, section, text FROM chunk JOIN document ON document.id = document
         WHERE chunk.id > $1 AND (path || title || section || text) GLOB '*[{LETTERS}]*'
         ORDER BY chunk.id LIMIT $2"
    );
    let mut last = 0_i64;
    loop {
        let passages: Vec<(i64, String, String, String, String)> =
            sqlx::query_as(AssertSqlSafe(next.as_str()))
                .bind(last)
                .bind(AT_ONCE)
                .fetch_all(&mut *connection)
                .await?;
        let Some((id, ..)) = passages.last() else { return Ok(()) };
        last = *id;
        for (id, path, title, section, text) in &passages {
            sqlx::query("DELETE FROM chunk_words WHERE rowid = $1")
                .bind(id)
                .execute(&mut *connection)
                .await?;
            sqlx::query("INSERT INTO chunk_words (rowid, title, section, text) VALUES ($1, $2, $3, $4)")
                .bind(id)
                .bind(spaced(&titled(title, path)).into_owned())
                .bind(spaced(section).into_owned())
                .bind(spaced(text).into_owned())
                .execute(&mut *connection)
                .await?;
        }
    }
}
