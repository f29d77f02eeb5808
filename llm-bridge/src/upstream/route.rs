//! The servers that are asked for a model, one after another.

use std::{fmt, path::Path, sync::Arc};

use serde_json::{Map, Value};
use toolrack_apis::{Provider, Request};

use super::{
    answer::Answer,
    asker::Asker,
    demo,
    error::UpstreamError,
    estimate::Estimate,
    kind::ServerKind,
    raw::{RawModel, RawQuestion, RawTools},
    servers::Server,
    settings::UpstreamSettings,
    tokens,
};

/// Fields of servers of OpenAI's API that change what others get of a model: its slots and adapters, how long it stays loaded, whose turn it is, and
/// where it fetches what it has computed.
const LOADING: [&str; 13] = [
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "draft_model",
    "id_slot",
    "keep_alive",
    "kv_transfer_params",
    "lora",
    "lora_path",
    "priority",
    "session_params",
    "slot_id",
    "ttl",
];

/// A server, and a model's name there.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) server: Arc<Server>,
    pub(super) model: String,
}

/// As `SERVER/MODEL`; the model alone where the server was given no name.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server.http.settings.name.as_str() {
            UpstreamSettings::DEFAULT_NAME => f.write_str(&self.model),
            name => write!(f, "{name}/{}", self.model),
        }
    }
}

/// Where a model is asked: at one server, and at others where that is away before the first word. Each is asked once.
#[derive(Debug, Clone, Default)]
pub struct Route {
    /// The server to ask, and those after it.
    targets: std::vec::IntoIter<Target>,
    /// `None` for the demo model.
    target: Option<Target>,
    /// The size of the model's context, where the settings say it.
    context: Option<u64>,
    asker: Asker,
}

impl Route {
    pub(super) fn through(targets: Vec<Target>) -> Self {
        let mut targets = targets.into_iter();
        let target = targets.next();
        Self { targets, target, ..Self::default() }
    }

    /// The model's name at the server, as it stands in requests.
    pub fn model(&self) -> &str {
        self.target.as_ref().map_or(demo::NAME, |target| &target.model)
    }

    /// Whether the demo model is asked.
    pub(crate) fn is_demo(&self) -> bool {
        self.target.is_none()
    }

    /// The model's name among those of all servers.
    pub(crate) fn full_name(&self) -> String {
        self.target.as_ref().map_or_else(|| demo::NAME.to_owned(), Target::to_string)
    }

    /// The API that the server is asked in; the demo model takes OpenAI's definitions.
    pub(crate) async fn api(&self) -> Provider {
        match &self.target {
            Some(target) => target.server.http.recognized().await.wire.api(),
            None => Provider::OpenAi,
        }
    }

    /// The kind of the server, if it is known.
    pub(crate) fn kind(&self) -> Option<&'static ServerKind> {
        let server = &self.target.as_ref()?.server.http;
        server.recognition().last()?.kind
    }

    /// The base address of the server, or `demo`.
    #[cfg(feature = "cli")]
    pub(crate) fn address(&self) -> &str {
        self.target.as_ref().map_or(super::DEMO, |target| &target.server.http.base)
    }

    /// Asks the server. The request has to name [`model`](Self::model), and the definitions of the server's tools have to be in the
    /// form of the server's API: separated by commas, without brackets.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn ask(&self, request: &Request, definitions: &str) -> Result<Answer, UpstreamError> {
        match &self.target {
            Some(target) => target.server.http.ask(request, definitions, self.context, &self.asker).await,
            None => Ok(Answer::demo(request, definitions)),
        }
    }

    /// Says who asks.
    pub(crate) fn set_asker(&mut self, asker: Asker) {
        self.asker = asker;
    }

    /// What is learned of the model is kept under this: what one user's requests make a server say counts for nobody else.
    pub(crate) fn learner(&self) -> (String, Asker) {
        (self.full_name(), self.asker.clone())
    }

    /// Leaves out of a request what only those may say who may say how the model is loaded, as far as the API leaves no choice.
    pub(crate) fn restrict(&self, request: &mut Request) {
        let lets_load = self.target.as_ref().is_none_or(|target| target.server.http.lets_load(&self.asker));
        if !lets_load {
            for name in LOADING {
                if request.passing.get(Provider::OpenAi, name).is_some() {
                    request.passing.remove(name);
                }
            }
        }
    }

    /// Says how large the model's context is, in place of the server.
    pub(crate) fn set_context(&mut self, size: Option<u64>) {
        self.context = size;
    }

    /// The size of the context in tokens that a request to the model may have; `None` if it is not known.
    pub(crate) async fn context(&self, request: &Request) -> Option<u64> {
        let target = self.target.as_ref()?;
        target.server.http.context_limit(&target.model, request, self.context, &self.asker).await
    }

    /// The size of the model's context, asked of the server anew. Nothing is known of a server that does not answer.
    #[cfg(feature = "cli")]
    pub(crate) async fn context_size(&self) -> super::ContextSize {
        let Some(target) = &self.target else { return super::ContextSize::default() };
        target.server.http.ask_context(&target.model).await.unwrap_or_default()
    }

    /// How many tokens there are for a hundred estimated ones, as far as the server has counted in requests of the same user.
    pub(crate) fn tokens_per_hundred(&self) -> u64 {
        match &self.target {
            Some(target) => target.server.http.ratio(&target.model, &self.asker).expected(100),
            None => 100,
        }
    }

    /// The model with its template: that of the server, or of a file.
    ///
    /// # Errors
    /// When the server does not complete prompts, or there is no template; the text says what to do.
    pub(crate) async fn raw_model(&self, file: Option<&Path>) -> Result<Arc<RawModel>, UpstreamError> {
        match &self.target {
            Some(Target { server, model }) => server.http.raw_model(model, file).await,
            None => Err(UpstreamError::failed("the built-in demo model has no template")),
        }
    }

    /// The prompt of a request with these tools, from the model's own template. With `ends_thinking` it leaves the model no room to
    /// think.
    pub(crate) async fn raw_question(
        &self,
        model: Arc<RawModel>,
        request: Request,
        tools: RawTools,
        ends_thinking: bool,
    ) -> Result<RawQuestion, UpstreamError> {
        match &self.target {
            Some(target) => {
                target.server.http.raw_question(model, request, tools, ends_thinking, &self.asker).await
            }
            None => Err(UpstreamError::failed("the built-in demo model has no template")),
        }
    }

    /// Asks for the completion of a prompt.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub(crate) async fn ask_raw(
        &self,
        request: &Request,
        question: &RawQuestion,
    ) -> Result<Answer, UpstreamError> {
        match &self.target {
            Some(target) => target.server.http.ask_raw(request, question, self.context, &self.asker).await,
            None => Err(UpstreamError::failed("the built-in demo model has no template")),
        }
    }

    /// Asks for the continuation of a text, by a request in OpenAI's form.
    pub(super) async fn complete(&self, request: &Map<String, Value>) -> Result<Answer, UpstreamError> {
        match &self.target {
            Some(target) => target.server.http.complete(request, &self.asker).await,
            None => Err(UpstreamError::failed("the built-in demo model answers chats only")),
        }
    }

    /// How many tokens a request has, with definitions as for [`ask`](Self::ask): by the server's own tokenizer where it has one, otherwise
    /// estimated. Never 0.
    pub(crate) async fn count_tokens(&self, request: &Request, definitions: &str) -> u64 {
        let counted = match &self.target {
            Some(target) => tokens::counted(&target.server.http, request, definitions).await,
            None => None,
        };
        counted.unwrap_or_else(|| Estimate::of_request(request, definitions).total()).max(1)
    }

    /// Asks for the vectors of texts, whatever model the request names; gives the reply as it came.
    pub(super) async fn embeddings(&self, request: &Value) -> Result<Vec<u8>, UpstreamError> {
        match &self.target {
            Some(target) => {
                let mut request = request.clone();
                if let Value::Object(fields) = &mut request {
                    fields.insert("model".to_owned(), target.model.as_str().into());
                }
                target.server.http.embeddings(&request).await
            }
            None => Err(UpstreamError::failed("the built-in demo model makes no vectors of texts")),
        }
    }

    /// Goes on to the next server after an error, if the error is about the server and there is a next one. The caller must not
    /// have shown anything of the answer.
    pub fn fall_back(&mut self, error: &UpstreamError) -> bool {
        if !error.is_about_server() {
            return false;
        }
        let Some(next) = self.targets.next() else { return false };
        if let Some(target) = &self.target {
            tracing::warn!(%error, "the upstream of {target} does not answer; asking {next}");
        }
        self.target = Some(next);
        true
    }
}
