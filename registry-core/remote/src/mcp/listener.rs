//! What a server says unasked: that its tools have changed, and how far calls are. What it asks for is declined.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use registry_core::ToolContext;
use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, Implementation, NumberOrString, ProgressNotificationParam,
        ProgressToken,
    },
    service::NotificationContext,
};
use tokio::{sync::Notify, time::Instant};

use crate::text::shown;

/// How many words of calls that are not known yet are kept, and for how long.
const MAX_EARLY: usize = 16;
const EARLY_FOR: Duration = Duration::from_secs(10);
/// The longest token that is kept of them, in bytes. Those of the calls made here are numbers.
const MAX_TOKEN: usize = 128;

/// Hears a server. It declares no capability, so a server that asks for input, a model or folders is refused.
#[derive(Clone, Default)]
pub(super) struct Listener {
    /// Woken when the server's tools are to be looked at.
    pub(super) wake: Arc<Notify>,
    pub(super) calls: Arc<Calls>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("toolrack", env!("CARGO_PKG_VERSION")).with_title("Toolrack");
        ClientConfig::new(ClientCapabilities::default(), me)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.wake.notify_one();
    }

    async fn on_progress(&self, word: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.calls.report(word.into());
    }
}

/// The calls that run, by their progress tokens.
#[derive(Default)]
pub(super) struct Calls(Mutex<Routes>);

#[derive(Default)]
struct Routes {
    running: HashMap<ProgressToken, (ToolContext, f64)>,
    /// A token is known only after its request is sent, so a quick server may be heard first.
    early: Vec<(Instant, Word)>,
}

/// What a server says of a call, with as much of its text as is shown: the whole one may have megabytes.
struct Word {
    token: ProgressToken,
    progress: f64,
    total: Option<f64>,
    message: String,
}

impl From<ProgressNotificationParam> for Word {
    fn from(word: ProgressNotificationParam) -> Self {
        let ProgressNotificationParam { progress_token: token, progress, total, message, .. } = word;
        Self { token, progress, total, message: shown(message.as_deref().unwrap_or_default()) }
    }
}

impl Word {
    fn is_worth_keeping(&self) -> bool {
        match &self.token.0 {
            NumberOrString::String(token) => token.len() <= MAX_TOKEN,
            NumberOrString::Number(_) => true,
        }
    }
}

/// A call that is heard of, until this is dropped.
pub(super) struct Route {
    calls: Arc<Calls>,
    token: ProgressToken,
}

impl Drop for Route {
    fn drop(&mut self) {
        self.calls.0.lock().running.remove(&self.token);
    }
}

impl Routes {
    fn forget_old(&mut self) {
        self.early.retain(|(at, _)| at.elapsed() < EARLY_FOR);
    }
}

impl Calls {
    /// Reports the progress of the call to its caller from now on.
    pub(super) fn route(self: &Arc<Self>, token: ProgressToken, context: ToolContext) -> Route {
        let early = {
            let mut routes = self.0.lock();
            routes.running.insert(token.clone(), (context, f64::NEG_INFINITY));
            routes.forget_old();
            let (mine, others) =
                std::mem::take(&mut routes.early).into_iter().partition(|(_, word)| word.token == token);
            routes.early = others;
            let mine: Vec<_> = mine;
            mine
        };
        early.into_iter().for_each(|(_, word)| self.report(word));
        Route { calls: Arc::clone(self), token }
    }

    fn report(&self, word: Word) {
        let context = {
            let mut routes = self.0.lock();
            match routes.running.get_mut(&word.token) {
                // They may come in another order than they were sent; a call does not go backwards.
                Some((_, before)) if word.progress <= *before => return,
                Some((context, before)) => {
                    *before = word.progress;
                    context.clone()
                }
                None => {
                    routes.forget_old();
                    if !word.is_worth_keeping() {
                        return;
                    }
                    if routes.early.len() == MAX_EARLY {
                        routes.early.remove(0);
                    }
                    return routes.early.push((Instant::now(), word));
                }
            }
        };
        let Word { progress, total, message, .. } = word;
        match total.filter(|total| *total > 0.0 && progress.is_finite()) {
            Some(total) => context.progress(progress / total, message),
            None if !message.is_empty() => context.status(message),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(token: NumberOrString, message: &str) -> Word {
        ProgressNotificationParam::new(ProgressToken(token), 1.0).with_message(message).into()
    }

    #[tokio::test(start_paused = true)]
    async fn b9_what_a_server_says_of_calls_that_nobody_makes_is_short_and_soon_forgotten() {
        let calls = Calls::default();
        let long = "x".repeat(1 << 20);
        calls.report(word(NumberOrString::String(long.as_str().into()), "long token"));
        assert!(calls.0.lock().early.is_empty());
        for number in 0..100 {
            calls.report(word(NumberOrString::Number(number), &long));
        }
        let kept: usize = {
            let routes = calls.0.lock();
            assert_eq!(routes.early.len(), MAX_EARLY);
            routes.early.iter().map(|(_, word)| word.message.capacity()).sum()
        };
        assert!(kept < 64 << 10, "{kept}");
        tokio::time::advance(EARLY_FOR).await;
        calls.report(word(NumberOrString::Number(7), "new"));
        assert_eq!(calls.0.lock().early.len(), 1);
    }
}
