//! The vectors that are in memory, kept as they are in the store.

use std::{collections::HashSet, sync::Arc};

use tokio::sync::Mutex;

use super::vectors::VectorMatrix;

/// Vectors in memory take no more bytes.
const MAX_BYTES: usize = 1 << 30;

/// Some vectors of a store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'m> {
    pub(super) model: &'m str,
    /// How many numbers each has.
    pub(super) dimensions: i64,
    /// The number of the write that is known already.
    pub(super) since: i64,
}

/// What has to be read of the vectors in a store, all of it as it is at one moment. Every write has a number, higher than those before.
pub(super) trait VectorRows: Send {
    /// The number of the last write.
    fn last_write(&mut self) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;

    /// How many there are, and how many of them were written since.
    fn count(&mut self, wanted: Wanted<'_>) -> impl Future<Output = Result<(i64, i64), sqlx::Error>> + Send;

    /// The passages whose vectors are as they were.
    fn unchanged(
        &mut self,
        wanted: Wanted<'_>,
    ) -> impl Future<Output = Result<HashSet<i64>, sqlx::Error>> + Send;

    /// Adds those that were written since.
    fn add_new(
        &mut self,
        wanted: Wanted<'_>,
        matrix: &mut VectorMatrix,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// The vectors that were asked for last, as they were in the store then.
#[derive(Default)]
pub(super) struct LoadedVectors(Mutex<Option<Loaded>>);

struct Loaded {
    model: String,
    /// The number of the write that they are up to.
    up_to: i64,
    matrix: Arc<VectorMatrix>,
}

/// Why there are no vectors in memory.
pub(super) enum NotLoaded {
    TooMany,
    Store(sqlx::Error),
}

impl From<sqlx::Error> for NotLoaded {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error)
    }
}

impl LoadedVectors {
    /// The vectors of a model that are so long, as they are in the store now. One at a time looks whether there are others, and only
    /// that one begins to read, so that those who wait hold no connection.
    pub(super) async fn matrix<R: VectorRows>(
        &self,
        begin: impl Future<Output = Result<R, sqlx::Error>> + Send,
        model: &str,
        dimensions: usize,
    ) -> Result<Arc<VectorMatrix>, NotLoaded> {
        let mut held = self.0.lock().await;
        let rows = &mut begin.await?;
        let of_this = |loaded: &Loaded| loaded.model == model && loaded.matrix.dimensions() == dimensions;
        let loaded = held.take().filter(of_this).unwrap_or_else(|| Loaded {
            model: model.to_owned(),
            up_to: -1,
            matrix: Arc::new(VectorMatrix::new(dimensions)),
        });
        Ok(Arc::clone(&held.insert(loaded.brought_up(rows).await?).matrix))
    }
}

impl Loaded {
    /// With what changed since.
    async fn brought_up(mut self, rows: &mut impl VectorRows) -> Result<Self, NotLoaded> {
        let last_write = rows.last_write().await?;
        if last_write == self.up_to {
            return Ok(self);
        }
        let dimensions = self.matrix.dimensions();
        let wanted = Wanted {
            model: &self.model,
            dimensions: i64::try_from(dimensions).unwrap_or(i64::MAX),
            since: self.up_to,
        };
        let (all, new) = rows.count(wanted).await?;
        let count = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        if count(all).saturating_mul(dimensions * size_of::<f32>()) > MAX_BYTES {
            return Err(NotLoaded::TooMany);
        }
        let matrix = Arc::make_mut(&mut self.matrix);
        // Those that changed, that went, and that were taken from the model are not among the old ones any more.
        if matrix.len() > 0 {
            let unchanged = rows.unchanged(wanted).await?;
            if unchanged.len() < matrix.len() {
                matrix.retain(|passage| unchanged.contains(&passage));
            }
        }
        matrix.reserve(count(new));
        rows.add_new(wanted, matrix).await?;
        Ok(Self { up_to: last_write, ..self })
    }
}

impl NotLoaded {
    /// Why, for the operator.
    pub(super) fn told(self, model: &str) -> String {
        match self {
            Self::TooMany => {
                format!("the vectors of {model} take more than {} MiB of memory", MAX_BYTES >> 20)
            }
            Self::Store(error) => error.to_string(),
        }
    }
}
