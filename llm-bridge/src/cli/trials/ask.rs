//! Asks the model a question of an example, as a chat would, and reads which tool it calls.

use std::{sync::Arc, time::Duration};

use registry_core::{
    Caller, Example, SEARCH_TOOLS, Selection,
    store::{ConversationLimits, Conversations, MemoryStore},
};
use tokio::time::timeout;
use toolrack_apis::{Message, Request, Role, ToolStatus, TurnEvent};

use super::{
    compare::{Difference, differences},
    stand_in::{Calls, stand_in},
};
use crate::{
    turn::{Backend, ChatSettings},
    upstream::Upstream,
};

/// What came of a question.
#[derive(Debug)]
pub(super) enum Answer {
    /// The tool was called, with these differences from the arguments that were expected.
    Called(Vec<Difference>),
    /// The tool was called with arguments that it does not take.
    Invalid(String),
    /// Another tool was called.
    Other(String),
    /// No tool was called.
    NoCall,
    /// There was no whole answer.
    Failed(String),
}

/// The model, with tools that do not run.
pub(super) struct Model {
    backend: Backend,
    calls: Calls,
    caller: Caller,
    patience: Duration,
    /// Its name, once it has answered.
    pub(super) name: String,
}

impl Model {
    pub(super) fn new(
        selection: &Selection,
        upstream: Upstream,
        settings: ChatSettings,
        caller: Caller,
        patience: Duration,
    ) -> Result<Self, String> {
        let (registry, calls) = stand_in(selection)?;
        let name = settings.model.clone().unwrap_or_default();
        // Each try is a conversation of its own, although all begin alike.
        let limits = ConversationLimits { retention: Duration::ZERO, ..ConversationLimits::default() };
        let nothing_kept = Conversations::new(Arc::new(MemoryStore::default()), limits);
        let backend = Backend::new(registry, upstream, settings).with_conversations(nothing_kept);
        Ok(Self { backend, calls, caller, patience, name })
    }

    /// Asks once.
    ///
    /// # Errors
    /// When the model server has not answered at all yet, so that asking on is useless.
    pub(super) async fn ask(&mut self, tool: &str, example: &Example) -> Result<Answer, String> {
        let mut made = Vec::new();
        let patience = self.patience;
        let answered = timeout(patience, self.read(&example.question, &mut made)).await;
        let calls = std::mem::take(&mut *self.calls.lock());
        match answered {
            Err(_) => return Ok(Answer::Failed(format!("no answer in {} s", patience.as_secs()))),
            Ok(Err(failure)) if self.name.is_empty() => return Err(failure),
            Ok(Err(failure)) => return Ok(Answer::Failed(failure)),
            Ok(Ok(())) => {}
        }
        let taken = made.iter().find(|(name, _)| name == tool).or(made.first());
        Ok(match taken {
            None => Answer::NoCall,
            Some((name, _)) if name != tool => Answer::Other(name.clone()),
            Some((_, error)) => match calls.into_iter().find(|(name, _)| name == tool) {
                Some((_, arguments)) => Answer::Called(differences(&example.arguments, &arguments)),
                None => Answer::Invalid(error.clone().unwrap_or_default()),
            },
        })
    }

    /// Reads the first calls of an answer, each with its error, but those that look for tools.
    async fn read(&mut self, question: &str, made: &mut Vec<(String, Option<String>)>) -> Result<(), String> {
        let messages = vec![Message::text(Role::User, question)];
        let request = Request { messages, stream: true, ..Request::default() };
        let mut turn = self.backend.start(request, self.caller.clone()).map_err(|bad| bad.message)?;
        let mut running = 0;
        while let Some(event) = turn.next().await {
            match event {
                TurnEvent::Model(name) => self.name = name,
                TurnEvent::Tool(ToolStatus::Started { name, .. }) if name != SEARCH_TOOLS => running += 1,
                TurnEvent::Tool(ToolStatus::Finished(tool)) if tool.name != SEARCH_TOOLS => {
                    made.push((tool.name, tool.error));
                    if made.len() >= running {
                        return Ok(());
                    }
                }
                TurnEvent::Failed(failure) if made.is_empty() => return Err(failure.to_string()),
                _ => {}
            }
        }
        Ok(())
    }
}
