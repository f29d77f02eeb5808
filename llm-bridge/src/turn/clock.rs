//! The time that the tools of a turn take, without the time in which a person is waited for.

use std::{collections::HashSet, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// Counts the time while tools run.
#[derive(Debug)]
pub(super) struct ToolClock {
    limit: Duration,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    spent: Duration,
    /// Since when it counts; `None` while it stands.
    since: Option<Instant>,
    /// How many calls are on their way.
    calls: usize,
    /// The ids of those that wait for a person.
    waiting: HashSet<String>,
}

impl State {
    /// Counts from now on, or stands.
    fn set(&mut self) {
        let runs = self.calls > 0 && self.waiting.is_empty();
        let now = Instant::now();
        self.spent += self.since.take().map_or(Duration::ZERO, |since| now - since);
        self.since = runs.then_some(now);
    }
}

impl ToolClock {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, state: Mutex::default(), changed: Notify::new() }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
        self.changed.notify_one();
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        self.change(|state| {
            state.calls += 1;
            state.set();
        });
    }

    /// A call is done. It says so itself: the turn may be read much later.
    pub(super) fn end(&self, call: &str) {
        self.change(|state| {
            state.calls = state.calls.saturating_sub(1);
            state.waiting.remove(call);
            state.set();
        });
    }

    /// A call waits for a person, or does so no more.
    pub(super) fn waits(&self, call: &str, waits: bool) {
        self.change(|state| {
            if waits {
                state.waiting.insert(call.to_owned());
            } else {
                state.waiting.remove(call);
            }
            state.set();
        });
    }

    /// Waits until the tools have taken all of the time.
    pub(super) async fn run_out(&self) {
        loop {
            let changed = self.changed.notified();
            let end = {
                let state = self.state.lock();
                state.since.and_then(|since| since.checked_add(self.limit.saturating_sub(state.spent)))
            };
            match end {
                None => changed.await,
                Some(end) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(end) => return,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// How many of these seconds pass before the time is up.
    async fn after(clock: Arc<ToolClock>) -> u64 {
        let begin = Instant::now();
        clock.run_out().await;
        begin.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn g5_only_tools_take_time_and_a_person_takes_none() {
        let clock = Arc::new(ToolClock::new(Duration::from_secs(600)));
        let end = tokio::spawn(after(Arc::clone(&clock)));
        let pass = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        pass(5_000).await;
        clock.begin();
        clock.begin();
        pass(100).await;
        clock.waits("a", true);
        clock.waits("b", true);
        pass(1_000).await;
        clock.waits("a", false);
        pass(1_000).await;
        clock.waits("b", false);
        clock.end("a");
        pass(100).await;
        clock.end("b");
        pass(10_000).await;
        clock.begin();
        assert_eq!(end.await.unwrap(), 5_000 + 100 + 2_000 + 100 + 10_000 + 400);
    }
}
