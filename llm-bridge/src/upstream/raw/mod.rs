//! The raw route: this server renders the prompt from the model's own template and reads the text that comes back, so that no template and no
//! parser of the model server stands between.
//!
//! The template comes from a file of the settings, from `/props` of llama.cpp (`tools/server/README.md`), or from the model's file where
//! [Ollama](ollama) names it. Other servers do not give it.

mod messages;
mod model;
mod ollama;
mod shape;

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use moka::future::Cache;
use registry_core::UserPlaces;
use serde_json::{Value, json};
use tokio::{sync::oneshot, task::spawn_blocking, time::timeout};
use toolrack_apis::{
    Message, Request,
    completion::{CompletionForm, CompletionWire},
};
use toolrack_templates::{GgufTemplate, MAX_SOURCE};

pub(crate) use model::{Prompt, RawModel, RawTools};

use super::{api::root_of, asker::Asker, error::UpstreamError, http::HttpUpstream, recognize::Recognized};
use model::Given;

/// For how long a template is taken for that of the model: a server is started anew with another.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// How long a template may take for a prompt. Its work is bounded, but a machine may be busy.
const RENDER_TIME: Duration = Duration::from_secs(10);
const STUCK: &str =
    "the chat template of the model took too long for a prompt; set another as `template` of the model";
/// How many prompts of a server's models are rendered at once: one of a user, so that long ones of a few hold up nobody else's.
const RENDERED_AT_ONCE: usize = 8;
/// The longest conversation that is put into a prompt, in bytes. The chat endpoint of the server takes longer ones.
const MAX_RENDERED: usize = 8 << 20;
/// Why a template is not read or rendered now, which says nothing about it.
const BUSY: &str = "as many prompts are rendered as may be at once";
/// Of how many models of a server.
const MODELS: u64 = 64;

/// The templates of a server's models, by the model and the file of its settings.
#[derive(Debug)]
pub(super) struct RawModels {
    known: Cache<(String, Option<PathBuf>), Result<Arc<RawModel>, UpstreamError>>,
    renderers: Renderers,
}

impl Default for RawModels {
    fn default() -> Self {
        let known = Cache::builder().time_to_live(KNOWN_FOR).max_capacity(MODELS).build();
        Self { known, renderers: Renderers::new(RENDER_TIME) }
    }
}

/// Threads on which prompts are rendered. A thread cannot be stopped: one that does not end in time keeps its place until it does.
#[derive(Debug)]
struct Renderers {
    places: UserPlaces,
    /// How long a place may take to be free, and what is done there.
    patience: Duration,
}

impl Renderers {
    fn new(patience: Duration) -> Self {
        Self { places: UserPlaces::default().among(RENDERED_AT_ONCE), patience }
    }

    /// Does something at a place of a user.
    async fn at_place<T: Send + 'static>(
        &self,
        asker: &Asker,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, UpstreamError> {
        let busy = |_| UpstreamError::failed(BUSY);
        let place = self.places.enter(&asker.tenant, &asker.user);
        let place = timeout(self.patience, place).await.map_err(busy)?;
        let (begins, has_begun) = oneshot::channel();
        let working = spawn_blocking(move || {
            let _place = place;
            let _ = begins.send(());
            work()
        });
        // Its time begins when there is a thread for it.
        let _ = timeout(self.patience, has_begun).await.map_err(busy)?;
        let done = timeout(self.patience, working).await.map_err(|_| UpstreamError::failed(STUCK))?;
        done.map_err(|_| UpstreamError::failed("this server is being stopped"))
    }
}

/// A prompt with all that its request needs.
#[derive(Debug)]
pub(crate) struct RawQuestion {
    pub(super) wire: CompletionWire,
    /// The definitions of the server's tools in it, by which its size is estimated.
    pub(super) definitions: String,
    /// Whether the answer begins within the model's thinking.
    pub(crate) thinking: bool,
}

impl RawQuestion {
    /// Asks for this text of the answer as it is, also if it is a special token.
    pub(crate) fn preserve(&mut self, token: Option<&str>) {
        self.wire.tokens.extend(token.map(str::to_owned));
    }
}

impl HttpUpstream {
    /// The model of this name, if the server completes prompts and there is a template.
    pub(super) async fn raw_model(
        self: &Arc<Self>,
        name: &str,
        file: Option<&Path>,
    ) -> Result<Arc<RawModel>, UpstreamError> {
        let known = self.recognized().await;
        let form = form_of(&known)?;
        let key = (name.to_owned(), file.map(Path::to_owned));
        if let Some(found) = self.raw_models.known.get(&key).await {
            return found;
        }
        let found = self.read_raw_model(&known, form, name, file).await;
        // A server that is away says nothing about its models, nor does this one that has no place to read their templates.
        let is_known = match &found {
            Ok(_) => true,
            Err(UpstreamError::Failed(failure)) => failure.message != BUSY,
            Err(_) => false,
        };
        if is_known {
            self.raw_models.known.insert(key, found.clone()).await;
        }
        found
    }

    async fn read_raw_model(
        &self,
        known: &Recognized,
        form: CompletionForm,
        name: &str,
        file: Option<&Path>,
    ) -> Result<Arc<RawModel>, UpstreamError> {
        let given = match file {
            Some(file) => {
                let mut given = given_in(file.to_owned(), self.adds_bos(known, form).await).await?;
                // The file of a template has no tokens, and the server has those of the model.
                if given.bos_token.is_none()
                    && given.eos_token.is_none()
                    && form == CompletionForm::LlamaCpp
                    && let Ok(props) = self.props(known, name).await
                {
                    (given.bos_token, given.eos_token) =
                        (text(&props, "bos_token"), text(&props, "eos_token"));
                }
                given
            }
            None => self.given_by_server(known, form, name).await?,
        };
        let model =
            self.raw_models.renderers.at_place(&Asker::default(), move || RawModel::new(given)).await?;
        model.map(Arc::new).map_err(|error| UpstreamError::failed(error.to_string()))
    }

    /// Puts a request with these tools into a prompt; `ends_thinking` where the answer is kept to calls.
    pub(super) async fn raw_question(
        self: &Arc<Self>,
        model: Arc<RawModel>,
        request: Request,
        tools: RawTools,
        ends_thinking: bool,
        asker: &Asker,
    ) -> Result<RawQuestion, UpstreamError> {
        let form = form_of(&*self.recognized().await)?;
        let (renderer, definitions) = (Arc::clone(&model), tools.definitions.clone());
        check_size(&request.messages)?;
        let renderers = &self.raw_models.renderers;
        let prompt = renderers.at_place(asker, move || renderer.prompt(&request, tools)).await?;
        let prompt = prompt.map_err(|error| UpstreamError::failed(error.to_string()))?;
        let Prompt { text, thinking } = if ends_thinking { prompt.without_thinking() } else { prompt };
        let wire = CompletionWire {
            form,
            prompt: text,
            stop: model.end().map(str::to_owned).into_iter().collect(),
            tokens: model.tokens.clone(),
            num_ctx: None,
            keep_alive: self.settings.keep_alive.clone(),
            loads: self.lets_load(asker),
        };
        Ok(RawQuestion { wire, definitions, thinking })
    }

    async fn given_by_server(
        &self,
        known: &Recognized,
        form: CompletionForm,
        name: &str,
    ) -> Result<Given, UpstreamError> {
        if form == CompletionForm::LlamaCpp {
            let props = self.props(known, name).await?;
            if let Some(source) = template_of(&props) {
                let adds_bos = self.adds_bos(known, form).await;
                let (bos_token, eos_token) = (text(&props, "bos_token"), text(&props, "eos_token"));
                return Ok(Given { source, bos_token, eos_token, adds_bos });
            }
        }
        if form == CompletionForm::Ollama {
            let url = format!("{}/api/show", root_of(&known.openai_base));
            let shown = self.post(url, &json!({"model": name})).await?;
            return ollama::given(&self.base, &shown, self.adds_bos(known, form).await).await;
        }
        Err(UpstreamError::failed(
            "the server does not give the chat template of the model; set its file as `template` of the model",
        ))
    }

    /// What llama.cpp knows of a model.
    async fn props(&self, known: &Recognized, name: &str) -> Result<Value, UpstreamError> {
        let url = format!("{}/props", root_of(&known.openai_base));
        let props = self.get(url.clone()).await?;
        if template_of(&props).is_some() {
            return Ok(props);
        }
        // One that has several models asks which.
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("model", name).finish();
        self.get(format!("{url}?{query}")).await
    }

    /// Whether the server puts the first token before a prompt: llama.cpp has it in the tokens of an empty text, and others do it where they
    /// cannot be asked not to.
    async fn adds_bos(&self, known: &Recognized, form: CompletionForm) -> bool {
        if form != CompletionForm::LlamaCpp {
            return !form.takes_prompt_as_it_is();
        }
        let asked = json!({"content": "", "add_special": true});
        let reply = self.post(format!("{}/tokenize", root_of(&known.openai_base)), &asked).await;
        let tokens = reply.ok().and_then(|reply| reply.get("tokens")?.as_array().map(Vec::len));
        tokens.is_none_or(|tokens| tokens > 0)
    }
}

fn text(props: &Value, name: &str) -> Option<String> {
    let text = props.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned)
}

/// A template for conversations with tools goes before the other.
fn template_of(props: &Value) -> Option<String> {
    text(props, "chat_template_tool_use").or_else(|| text(props, "chat_template"))
}

fn check_size(messages: &[Message]) -> Result<(), UpstreamError> {
    match messages.iter().map(Message::size).sum::<usize>() {
        size if size <= MAX_RENDERED => Ok(()),
        size => {
            Err(UpstreamError::failed(format!("a conversation of {size} bytes is not put into a prompt")))
        }
    }
}

fn form_of(known: &Recognized) -> Result<CompletionForm, UpstreamError> {
    known.kind.and_then(|kind| kind.completion).ok_or_else(|| {
        UpstreamError::failed(
            "this kind of server is not asked for completions; leave `route` of the model at `chat`",
        )
    })
}

/// What a file has: a template, or a model with one.
async fn given_in(file: PathBuf, adds_bos: bool) -> Result<Given, UpstreamError> {
    let read = move || -> Result<Given, String> {
        let is_model = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
        let open = File::open(&file).map_err(|error| error.to_string());
        let told = |error: String| format!("the template {}: {error}", file.display());
        if is_model {
            let read = GgufTemplate::read(&mut BufReader::new(open.map_err(told)?));
            let read = read.map_err(|error| told(error.to_string()))?;
            let GgufTemplate { source, bos_token, eos_token } = read;
            return Ok(Given { source, bos_token, eos_token, adds_bos });
        }
        let size =
            open.and_then(|file| file.metadata().map_err(|error| error.to_string())).map_err(told)?.len();
        if usize::try_from(size).map_or(true, |size| size > MAX_SOURCE) {
            return Err(told(format!("it has {size} bytes, and at most {MAX_SOURCE} are read")));
        }
        let source = std::fs::read_to_string(&file).map_err(|error| told(error.to_string()))?;
        Ok(Given { source, adds_bos, ..Given::default() })
    };
    let read =
        spawn_blocking(read).await.map_err(|_| UpstreamError::failed("this server is being stopped"))?;
    read.map_err(UpstreamError::failed)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn failure(error: &UpstreamError) -> &str {
        error.message().unwrap_or_default()
    }

    #[tokio::test]
    async fn b14_a_prompt_that_is_not_rendered_in_time_holds_up_its_user_alone_and_until_it_is() {
        let renderers = Renderers::new(Duration::from_millis(200));
        let (eve, ada) = (Asker::new("default", "eve"), Asker::new("default", "ada"));
        let (ends, end) = mpsc::channel::<()>();
        let stuck = renderers.at_place(&eve, move || end.recv().is_ok()).await.unwrap_err();
        assert_eq!(failure(&stuck), STUCK);
        let again = renderers.at_place(&eve, || 1).await.unwrap_err();
        assert_eq!(failure(&again), BUSY, "which is not learned from");
        assert_eq!(renderers.at_place(&ada, || 2).await.unwrap(), 2);
        drop(ends);
        while renderers.at_place(&eve, || 3).await.is_err() {}
    }

    #[test]
    fn b14_a_conversation_of_such_a_size_is_rendered_and_no_larger_one() {
        let half = || Message::text(toolrack_apis::Role::User, "x".repeat(MAX_RENDERED / 2 - 4096));
        assert!(check_size(&[half(), half()]).is_ok());
        assert!(check_size(&[half(), half(), half()]).is_err());
    }

    #[tokio::test]
    async fn b14_so_many_prompts_are_rendered_at_once() {
        let renderers = Renderers::new(Duration::from_millis(200));
        let mut all = Vec::new();
        for number in 0..RENDERED_AT_ONCE {
            let (ends, end) = mpsc::channel::<()>();
            all.push(ends);
            let asker = Asker::new("default", &number.to_string());
            assert!(renderers.at_place(&asker, move || end.recv().is_ok()).await.is_err());
        }
        let ada = Asker::new("default", "ada");
        assert_eq!(failure(&renderers.at_place(&ada, || 1).await.unwrap_err()), BUSY);
        all.pop();
        while renderers.at_place(&ada, || 1).await.is_err() {}
    }
}
