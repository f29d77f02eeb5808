//! The turn: ask the model, run the calls it makes, give it the results, until it answers.

mod accepted;
mod announce;
mod ask;
mod beginning;
mod call;
mod calls;
mod clock;
mod constrain;
mod context;
mod continuing;
mod count;
mod elsewhere;
mod files;
mod flow;
mod form;
mod found;
mod handle;
mod history;
mod interrupted;
mod kept;
mod learned;
mod limits;
mod live;
mod models;
mod narrow;
mod native;
mod offer;
mod paragraphs;
mod parts;
mod pictures;
mod prepared;
pub mod prompt;
mod quoted;
mod raw;
mod read_result;
mod reader;
mod recover;
mod require;
mod reread;
mod room;
mod run;
mod runner;
mod shorten;
mod show;
mod style;
pub(crate) mod traced;
mod transcript;
mod untold;

use std::{sync::Arc, time::Duration};

use moka::sync::Cache;
use registry_core::{
    Caller, CallerAuthority, Permission, Registry, Tool, ToolContext, store::Conversations, trace::Trace,
};
use tokio::task::JoinHandle;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolrack_apis::{BadRequest, Request};
use toolrack_dialects::ParseOptions;

pub(crate) use beginning::PLAIN;
pub(crate) use elsewhere::ToldTurn;
pub use elsewhere::TurnsElsewhere;
pub use handle::{Turn, TurnAnswer};
pub(crate) use interrupted::INTERRUPTED;
pub use kept::ResultFile;
pub use limits::Limits;
pub(crate) use live::{LiveTurn, LiveTurns};
pub(crate) use models::known_dialect;
pub use models::{ModelRoute, ModelSettings, Models};
#[cfg(feature = "cli")]
pub(crate) use native::NativeCalls;
pub(crate) use pictures::{has_pictures_of_user, without_pictures, write_within};
pub(crate) use recover::most_pictures;
#[cfg(feature = "cli")]
pub(crate) use recover::{could_not_read, raw_text};
pub(crate) use transcript::{approval_notice, question_notice};

use crate::upstream::{Asker, Route, Upstream};
use prepared::Prepared;

/// How long the tools of a turn that was stopped may take to say so.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is said besides where a model's calls go wrong.
const SEE_DOCTOR: &str = "`toolrack doctor` tells what the model can do";

/// How tools are described to the model and its calls replayed to it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ToolStyle {
    /// In the fields of the API, and in the prompt where the server refuses those.
    #[default]
    Auto,
    /// In the fields of the API.
    Native,
    /// In the prompt, as text.
    Prompt,
}

/// How the bridge conducts a chat.
#[derive(Debug, Clone)]
pub struct ChatSettings {
    /// The model to ask for where the client names none; `None` for the first that the server has.
    pub model: Option<String>,
    /// How far a turn may go.
    pub limits: Limits,
    /// Put before a conversation without a system message when no tool is offered; empty for nothing.
    pub system_prompt: String,
    /// The same when tools are offered.
    pub system_prompt_with_tools: String,
    /// How tools are described to the model.
    pub tool_style: ToolStyle,
    /// Reads text calls in this dialect only, and tells tools in it where they are described in the prompt.
    pub dialect: Option<&'static str>,
    /// What is set for single models; it goes before what is set for all.
    pub models: Models,
    /// Whether the server's template opens the model's thinking, so that an answer begins inside of it.
    pub thinking: bool,
    /// What to decide differently where parsers of text calls disagree.
    pub parsing: ParseOptions,
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            model: None,
            limits: Limits::default(),
            system_prompt: prompt::SYSTEM_PROMPT.to_owned(),
            system_prompt_with_tools: prompt::SYSTEM_PROMPT_WITH_TOOLS.to_owned(),
            tool_style: ToolStyle::Auto,
            dialect: None,
            models: Models::default(),
            thinking: false,
            parsing: ParseOptions::default(),
        }
    }
}

impl ChatSettings {
    /// The one dialect in which text calls of a model are read.
    pub fn dialect_of(&self, model: &str) -> Option<&'static str> {
        self.models.dialect(model).or(self.dialect)
    }

    /// How tools are described to a model.
    pub fn tool_style_of(&self, model: &str) -> ToolStyle {
        self.models.tool_style(model).unwrap_or(self.tool_style)
    }

    /// The size of a model's context in tokens, where it is set.
    pub fn context_of(&self, model: &str) -> Option<u64> {
        self.models.context(model)
    }
}

/// A chat backend: a registry of tools in front of a model. Cheap to clone.
#[derive(Clone, derive_more::Debug)]
pub struct Backend {
    registry: Registry,
    /// Who knows what the caller of the next turn may do by the time it makes a call.
    #[debug(skip)]
    standing: Option<Arc<dyn CallerAuthority>>,
    transcripts: transcript::Transcripts,
    /// Where files of results last longer than this process.
    file_store: Option<Conversations>,
    /// The tool that reads what was left out of results.
    #[debug(skip)]
    read_result: Arc<Tool>,
    /// The address at which the client of the next turn reaches the server, for the files that its tools give.
    base_url: Option<Arc<str>>,
    /// Where the next turn is in a trace.
    trace: Option<Trace>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstream: Upstream,
    settings: ChatSettings,
    findings: found::Findings,
    /// The definitions of the tools of all tenants.
    definitions: Arc<Prepared>,
    learned: learned::Learned,
    /// The models, by their full names, of which the log has said that the tools take much of their context.
    crowded: Cache<String, ()>,
    /// What was left out of results.
    kept: kept::KeptResults,
    /// What the person gets of results as files.
    files: kept::KeptFiles,
    pictures: pictures::Pictures,
    documents: files::Files,
    turns: TaskTracker,
    /// Those that run.
    live: LiveTurns,
    stopping: CancellationToken,
}

impl Shared {
    /// The tool that reads what was left out of results, and finds it in these transcripts where it is not in memory.
    fn read_result(&self, transcripts: transcript::Transcripts) -> Arc<Tool> {
        let limit = self.settings.limits.max_result_characters;
        Arc::new(read_result::tool(self.kept.clone(), transcripts, limit))
    }
}

impl Backend {
    /// A backend.
    pub fn new(registry: Registry, upstream: Upstream, settings: ChatSettings) -> Self {
        let shared = Shared {
            upstream,
            settings,
            findings: found::Findings::default(),
            definitions: Arc::default(),
            learned: learned::Learned::default(),
            crowded: Cache::new(1024),
            kept: kept::KeptResults::default(),
            files: kept::KeptFiles::default(),
            pictures: pictures::Pictures::default(),
            documents: files::Files::default(),
            turns: TaskTracker::new(),
            live: LiveTurns::default(),
            stopping: CancellationToken::new(),
        };
        let transcripts = transcript::Transcripts::default();
        let (read_result, shared) = (shared.read_result(transcripts.clone()), Arc::new(shared));
        let file_store = None;
        let (standing, base_url, trace) = (None, None, None);
        Self { registry, standing, transcripts, file_store, read_result, base_url, trace, shared }
    }

    /// The same backend, which keeps in this store what clients do not see of their conversations, in place of the process's memory, and the
    /// files of results.
    #[must_use]
    pub fn with_conversations(self, conversations: Conversations) -> Self {
        let file_store = Some(conversations.clone()).filter(Conversations::are_kept);
        let transcripts = transcript::Transcripts::new(conversations);
        let read_result = self.shared.read_result(transcripts.clone());
        Self { transcripts, file_store, read_result, ..self }
    }

    /// The same backend for a request of one user: with the tools of the user's tenant, and, where a turn is not to go on with what
    /// the user may do at its beginning, with somebody who is asked before each call.
    #[must_use]
    pub fn for_request(&self, registry: Registry, standing: Option<Arc<dyn CallerAuthority>>) -> Self {
        Self { registry, standing, base_url: None, trace: None, ..self.clone() }
    }

    /// The same backend for a client that reaches the server at this address, without a slash at its end. Its text has links to the files
    /// that tools give; without an address they are only named.
    #[must_use]
    pub fn reached_at(self, base_url: Option<String>) -> Self {
        Self { base_url: base_url.map(Into::into), ..self }
    }

    /// The same backend for a request that is in a trace.
    #[must_use]
    pub fn traced(self, trace: Option<Trace>) -> Self {
        Self { trace, ..self }
    }

    fn context(&self, caller: Caller) -> ToolContext {
        let context = self.registry.context(caller);
        let context = match &self.trace {
            Some(trace) => context.with_trace(trace.clone()),
            None => context,
        };
        match &self.standing {
            Some(standing) => context.with_authority(Arc::clone(standing)),
            None => context,
        }
    }

    /// Whether the user is still there, if somebody knows.
    async fn has_user(&self) -> bool {
        match &self.standing {
            Some(standing) => matches!(standing.caller().await, Ok(Some(_))),
            None => true,
        }
    }

    /// The tools.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The model.
    pub fn upstream(&self) -> &Upstream {
        &self.shared.upstream
    }

    /// How chats are conducted.
    pub fn settings(&self) -> &ChatSettings {
        &self.shared.settings
    }

    /// Begins a turn. It runs while its events are waited for, until it is finished or the [`Turn`] is dropped.
    ///
    /// # Errors
    /// When the request asks for something that is not there, such as a call of a tool that is not offered.
    pub fn start(&self, request: Request, caller: Caller) -> Result<Turn, BadRequest> {
        run::start(self.clone(), request, caller)
    }

    /// Runs something that [`stop`](Self::stop) waits for.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.shared.turns.spawn(task)
    }

    /// The turns that run.
    pub(crate) fn live_turns(&self) -> &LiveTurns {
        &self.shared.live
    }

    /// What [`stop`](Self::stop) waits for.
    pub(crate) fn tasks(&self) -> TaskTracker {
        self.shared.turns.clone()
    }

    /// Who a model is asked for.
    fn asker(&self, caller: &Caller) -> Asker {
        Asker::new(self.registry.tenant(), &caller.user).loading(caller.level >= Permission::Admin)
    }

    /// Whose a conversation is: users of two tenants may have one name.
    fn owner(&self, caller: &Caller) -> String {
        read_result::owner(self.registry.tenant(), &caller.user)
    }

    /// Waits until everything that runs has finished, without cancelling it.
    pub(crate) async fn finished(&self) {
        self.shared.turns.close();
        self.shared.turns.wait().await;
    }

    /// Cancels the turns that run, and those to come, and waits until their tools have left their records.
    pub async fn stop(&self) {
        self.shared.stopping.cancel();
        self.shared.turns.close();
        // A tool that blocks its thread is not waited for, nor a turn that nobody reads.
        let _ = tokio::time::timeout(2 * LAST_WORDS, self.shared.turns.wait()).await;
    }

    /// Whether tools are described to a model in the prompt from the start.
    fn asks_in_prompt(&self, route: &Route) -> bool {
        match self.settings().tool_style_of(route.model()) {
            ToolStyle::Prompt => true,
            ToolStyle::Native => false,
            ToolStyle::Auto => self.shared.learned.prefers_prompt(&route.learner()),
        }
    }
}
