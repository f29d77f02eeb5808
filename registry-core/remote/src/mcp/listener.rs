//! What a server says unasked: that its tools have changed, and how far calls are. What it asks for is declined.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use registry_core::ToolContext;
use rmcp::{
    ClientHandler, RoleClient,
    model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken},
    service::NotificationContext,
};
use tokio::sync::Notify;

use crate::text::shown;

/// How many words of calls that are not known yet are kept.
const MAX_EARLY: usize = 16;

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
        self.calls.report(word);
    }
}

/// The calls that run, by their progress tokens.
#[derive(Default)]
pub(super) struct Calls(Mutex<Routes>);

#[derive(Default)]
struct Routes {
    running: HashMap<ProgressToken, (ToolContext, f64)>,
    /// A token is known only after its request is sent, so a quick server may be heard first.
    early: Vec<ProgressNotificationParam>,
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

impl Calls {
    /// Reports the progress of the call to its caller from now on.
    pub(super) fn route(self: &Arc<Self>, token: ProgressToken, context: ToolContext) -> Route {
        let early = {
            let mut routes = self.0.lock();
            routes.running.insert(token.clone(), (context, f64::NEG_INFINITY));
            let (mine, others) =
                std::mem::take(&mut routes.early).into_iter().partition(|word| word.progress_token == token);
            routes.early = others;
            let mine: Vec<_> = mine;
            mine
        };
        early.into_iter().for_each(|word| self.report(word));
        Route { calls: Arc::clone(self), token }
    }

    fn report(&self, word: ProgressNotificationParam) {
        let context = {
            let mut routes = self.0.lock();
            match routes.running.get_mut(&word.progress_token) {
                // They may come in another order than they were sent; a call does not go backwards.
                Some((_, before)) if word.progress <= *before => return,
                Some((context, before)) => {
                    *before = word.progress;
                    context.clone()
                }
                None => {
                    if routes.early.len() == MAX_EARLY {
                        routes.early.remove(0);
                    }
                    return routes.early.push(word);
                }
            }
        };
        let message = shown(word.message.as_deref().unwrap_or_default());
        match word.total.filter(|total| *total > 0.0 && word.progress.is_finite()) {
            Some(total) => context.progress(word.progress / total, message),
            None if !message.is_empty() => context.status(message),
            None => {}
        }
    }
}
