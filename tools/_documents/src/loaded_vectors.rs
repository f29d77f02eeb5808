//! The vectors that are in memory, kept as they are in the store.

use std::{
    collections::HashSet,
    sync::{
        Arc, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Mutex;

use super::vectors::VectorMatrix;

/// The vectors of all tenants take no more bytes of memory.
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

/// The memory that the vectors of all tenants share. Where it is full, those give way that were asked for longest ago.
pub(super) struct VectorMemory {
    max_bytes: usize,
    /// Those that were asked for last at the end.
    slots: std::sync::Mutex<Vec<Weak<Slot>>>,
}

impl Default for VectorMemory {
    fn default() -> Self {
        Self { max_bytes: MAX_BYTES, slots: std::sync::Mutex::default() }
    }
}

impl VectorMemory {
    /// Notes that a slot is asked for.
    fn touch(&self, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|other| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(slot));
        slots.push(Arc::downgrade(slot));
    }

    /// Makes room for so many bytes in a slot; `false` where there is none, also when all others give way that are not asked just now.
    fn make_room(&self, slot: &Arc<Slot>, bytes: usize) -> bool {
        // Until the end, so that nobody else counts the same room as free.
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let others = slots.iter().filter_map(Weak::upgrade).filter(|other| !Arc::ptr_eq(other, slot));
        let others: Vec<_> = others.collect();
        let taken = others.iter().map(|other| other.bytes.load(Ordering::Relaxed));
        let mut taken = taken.fold(bytes, usize::saturating_add);
        for other in others {
            if taken <= self.max_bytes {
                break;
            }
            if let Ok(mut held) = other.held.try_lock() {
                *held = None;
                taken = taken.saturating_sub(other.bytes.swap(0, Ordering::Relaxed));
            }
        }
        let fits = taken <= self.max_bytes;
        slot.bytes.store(if fits { bytes } else { 0 }, Ordering::Relaxed);
        fits
    }
}

/// The vectors of a tenant that were asked for last, as they were in the store then.
pub(super) struct LoadedVectors {
    slot: Arc<Slot>,
    memory: Arc<VectorMemory>,
}

#[derive(Default)]
struct Slot {
    held: Mutex<Option<Loaded>>,
    /// The memory that they take.
    bytes: AtomicUsize,
}

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
    /// None yet.
    pub(super) fn new(memory: Arc<VectorMemory>) -> Self {
        Self { slot: Arc::default(), memory }
    }

    /// The vectors of a model that are so long, as they are in the store now. One at a time looks whether there are others, and only
    /// that one begins to read, so that those who wait hold no connection.
    pub(super) async fn matrix<R: VectorRows>(
        &self,
        begin: impl Future<Output = Result<R, sqlx::Error>> + Send,
        model: &str,
        dimensions: usize,
    ) -> Result<Arc<VectorMatrix>, NotLoaded> {
        let mut held = self.slot.held.lock().await;
        self.memory.touch(&self.slot);
        let rows = &mut begin.await?;
        let of_this = |loaded: &Loaded| loaded.model == model && loaded.matrix.dimensions() == dimensions;
        let loaded = held.take().filter(of_this).unwrap_or_else(|| Loaded {
            model: model.to_owned(),
            up_to: -1,
            matrix: Arc::new(VectorMatrix::new(dimensions)),
        });
        let make_room = |bytes| self.memory.make_room(&self.slot, bytes);
        Ok(Arc::clone(&held.insert(loaded.brought_up(rows, make_room).await?).matrix))
    }
}

impl Loaded {
    /// With what changed since.
    async fn brought_up(
        mut self,
        rows: &mut impl VectorRows,
        make_room: impl Fn(usize) -> bool,
    ) -> Result<Self, NotLoaded> {
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
        if !make_room(count(all).saturating_mul(dimensions * size_of::<f32>())) {
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
                format!("the vectors of {model} do not fit into {} MiB of memory", MAX_BYTES >> 20)
            }
            Self::Store(error) => error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::{Place, to_bytes};

    /// A store with so many vectors of one number.
    struct Stored(i64);

    impl VectorRows for Stored {
        async fn last_write(&mut self) -> Result<i64, sqlx::Error> {
            Ok(self.0)
        }

        async fn count(&mut self, _: Wanted<'_>) -> Result<(i64, i64), sqlx::Error> {
            Ok((self.0, self.0))
        }

        async fn unchanged(&mut self, _: Wanted<'_>) -> Result<HashSet<i64>, sqlx::Error> {
            Ok(HashSet::new())
        }

        async fn add_new(&mut self, _: Wanted<'_>, matrix: &mut VectorMatrix) -> Result<(), sqlx::Error> {
            (0..self.0)
                .for_each(|passage| matrix.push(Place { passage, document: passage }, &to_bytes(&[1.0])));
            Ok(())
        }
    }

    impl LoadedVectors {
        /// How many come of a store with so many, or why none do.
        async fn load(&self, stored: i64) -> Result<usize, String> {
            let matrix = self.matrix(async { Ok(Stored(stored)) }, "m", 1).await;
            matrix.map(|matrix| matrix.len()).map_err(|fault| fault.told("m"))
        }

        async fn is_loaded(&self) -> bool {
            self.slot.held.lock().await.is_some()
        }
    }

    #[tokio::test]
    async fn p6_tenants_share_the_memory_and_the_one_asked_longest_ago_gives_way() {
        let memory = Arc::new(VectorMemory { max_bytes: 40, slots: std::sync::Mutex::default() });
        let tenant = || LoadedVectors::new(Arc::clone(&memory));
        let (ada, bob, eve) = (tenant(), tenant(), tenant());
        assert_eq!((ada.load(4).await, bob.load(4).await), (Ok(4), Ok(4)));
        assert_eq!(ada.load(4).await, Ok(4));
        assert_eq!(eve.load(5).await, Ok(5));
        assert_eq!((ada.is_loaded().await, bob.is_loaded().await), (true, false));
        assert_eq!(ada.load(11).await, Err("the vectors of m do not fit into 1024 MiB of memory".into()));
        assert_eq!(bob.load(10).await, Ok(10), "what did not fit takes no room");
        let in_use = bob.slot.held.lock().await;
        assert!(ada.load(1).await.is_err(), "what is asked just now stays");
        drop(in_use);
        assert_eq!(ada.load(1).await, Ok(1));
        assert!(!bob.is_loaded().await);
        drop(ada);
        assert_eq!(bob.load(10).await, Ok(10));
    }
}
