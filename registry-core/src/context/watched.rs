//! A resource that comes and goes.

use std::{fmt, sync::Arc, time::Duration};

use arc_swap::ArcSwap;

/// Something of the host's that is there at times, such as a database that can be reached. A call reads what is known; finding out is
/// the work of a task in the background.
///
/// ```
/// use registry_core::{Resources, Watched};
///
/// struct Index;
///
/// let index = Watched::absent("nobody has looked yet");
/// let mut resources = Resources::new();
/// resources.insert_watched(&index);
/// index.set(Ok(Index));
/// ```
pub struct Watched<T>(Arc<ArcSwap<Result<Arc<T>, String>>>);

impl<T> Watched<T> {
    /// Not there yet; `why` is for listings.
    pub fn absent(why: impl Into<String>) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Err(why.into()))))
    }

    /// What is there now, or why nothing is.
    pub fn set(&self, value: Result<T, String>) {
        self.0.store(Arc::new(value.map(Arc::new)));
    }

    /// What was last set.
    ///
    /// # Errors
    /// Why it is not there.
    pub fn get(&self) -> Result<Arc<T>, String> {
        Result::clone(&self.0.load())
    }

    /// Asks again and again, with a pause between. The host runs it as a task and ends it by dropping it.
    pub async fn refresh<F>(&self, pause: Duration, mut ask: impl FnMut() -> F)
    where
        F: Future<Output = Result<T, String>>,
    {
        loop {
            self.set(ask().await);
            tokio::time::sleep(pause).await;
        }
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("is_there", &self.0.load().is_ok()).finish()
    }
}
