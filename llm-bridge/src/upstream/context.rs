//! How large the context of a model is at its server, and whether what was sent fits in there.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use moka::sync::Cache;
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};
use toolrack_apis::{Request, Usage};

use super::{
    api::{UpstreamApi, root_of},
    asker::Asker,
    error::UpstreamError,
    estimate::Estimate,
    http::HttpUpstream,
    kind::ContextSource,
    models::name_of,
    via::carried,
};

/// How long what a server has said is taken for granted. It is asked anew beside the requests.
const FRESH: Duration = Duration::from_secs(60);
/// How long the first request for a model waits for the size of its context.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a server may take to say it.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Of how many models the sizes are kept; those that were asked for least give way.
const MODELS: u64 = 1024;
/// Of how many users' models is known how they are estimated.
const MAX_RATIOS: u64 = 10_000;
/// So many tokens are left for an answer, or fewer where it has a lower limit.
pub(crate) const ANSWER: u64 = 4096;
/// The smallest context that Ollama gives a model by default, and what is left of it for a short answer.
const OLLAMA_DEFAULT: (u64, u64) = (4096, 1024);
/// The smallest context that Ollama is asked for, in tokens.
const LEAST_NUM_CTX: u64 = 8192;
/// A smaller request, in tokens, fits in every context and says little about a tokenizer.
const LARGE: u64 = 1024;
/// How near to half of the context a count is that means just that, in tokens.
const NEAR: u64 = 8;
/// How many tokens there are for one that is estimated, in percent: at first, and as the counts of a server may change it.
const RATIO: (u64, std::ops::RangeInclusive<u64>) = (120, 80..=300);

/// The size of a model's context in tokens, as its server says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ContextSize {
    /// What a request has now; `None` if that is not known.
    pub(crate) now: Option<u64>,
    /// What the model can have at most.
    pub(crate) most: Option<u64>,
}

impl ContextSize {
    /// As a model's entry in a list of OpenAI's form says: `max_model_len` of vLLM and SGLang, `loaded_context_length` of LM Studio, `meta` of
    /// llama.cpp.
    pub(crate) fn of_entry(entry: &Value) -> Self {
        const NOW: [&str; 5] =
            ["/max_model_len", "/loaded_context_length", "/meta/n_ctx", "/context_length", "/context_window"];
        const MOST: [&str; 2] = ["/max_context_length", "/meta/n_ctx_train"];
        let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| size_at(entry, pointer));
        Self { now: first(&NOW), most: first(&MOST) }
    }
}

/// The contexts of a server's models, by their names.
#[derive(Debug)]
pub(super) struct Contexts {
    models: Cache<String, Arc<ModelContext>>,
    ratios: Ratios,
}

/// How many tokens there are for one that is estimated, in percent, in the requests of a user to a model: by their texts alone, as those of
/// others may have been chosen to be estimated badly.
type Ratios = Cache<(String, Asker), u64>;

impl Default for Contexts {
    fn default() -> Self {
        Self { models: Cache::new(MODELS), ratios: Cache::new(MAX_RATIOS) }
    }
}

impl Contexts {
    /// The size of a model's context now, if its server has said it.
    pub(super) fn known(&self, model: &str) -> Option<u64> {
        self.models.get(model)?.size().now
    }

    /// Another server may stand at the address when it answers again.
    pub(super) fn forget(&self) {
        self.models.invalidate_all();
        self.ratios.invalidate_all();
    }
}

/// What is known of a model's context.
#[derive(Debug)]
pub(super) struct ModelContext {
    size: watch::Sender<Option<(Instant, ContextSize)>>,
    /// Until when requests wait for the size.
    patience: Instant,
    is_being_asked: AtomicBool,
    /// The size that Ollama was asked for last.
    num_ctx: AtomicU64,
}

/// What is estimated of a model's requests, and what its server has counted of them.
#[derive(Debug)]
pub(super) struct Ratio {
    ratios: Ratios,
    key: (String, Asker),
}

impl Ratio {
    /// The tokens that there are for so many estimated ones.
    pub(super) fn expected(&self, estimated: u64) -> u64 {
        let ratio = self.ratios.get(&self.key).unwrap_or(RATIO.0);
        estimated.saturating_mul(ratio).div_ceil(100)
    }

    /// Takes note of how many tokens a server has counted of a request that it has read whole.
    fn calibrate(&self, estimated: u64, counted: u64) {
        // In steps, so that it is the same from one request to the next.
        let ratio = (counted.saturating_mul(10) / estimated.max(1)).saturating_add(1).saturating_mul(10);
        self.ratios.insert(self.key.clone(), ratio.clamp(*RATIO.1.start(), *RATIO.1.end()));
    }
}

impl ModelContext {
    fn new() -> Self {
        Self {
            size: watch::Sender::new(None),
            patience: Instant::now() + PATIENCE,
            is_being_asked: AtomicBool::new(false),
            num_ctx: AtomicU64::new(0),
        }
    }

    /// What the server has said; nothing where it has not.
    fn size(&self) -> ContextSize {
        self.size.borrow().map(|(_, size)| size).unwrap_or_default()
    }

    /// Whether the server is to be asked, by whoever gets to know it.
    fn is_due(&self) -> bool {
        let is_fresh = self.size.borrow().is_some_and(|(at, _)| at.elapsed() < FRESH);
        !is_fresh && !self.is_being_asked.swap(true, Ordering::AcqRel)
    }

    /// Takes what the server has said; what it said before stands where it says nothing.
    fn learn(&self, said: Option<ContextSize>) {
        self.size.send_modify(|size| {
            let before = size.map(|(_, size)| size).unwrap_or_default();
            *size = Some((Instant::now(), said.unwrap_or(before)));
        });
        self.is_being_asked.store(false, Ordering::Release);
    }

    /// The context that Ollama is asked for, for a request with so many tokens that may get an answer of so many; `None` where it is left
    /// to Ollama. It grows in steps and never shrinks, as Ollama loads a model anew for another size.
    fn num_ctx(&self, tokens: u64, answer: u64, largest: u64) -> Option<u64> {
        if largest == 0 {
            return None;
        }
        let ContextSize { now, most } = self.size();
        let (needed, before) = (tokens.saturating_add(answer), self.num_ctx.load(Ordering::Relaxed));
        let (default, rest) = OLLAMA_DEFAULT;
        if before == 0 && now.is_none() && tokens.saturating_add(rest) <= default {
            return None;
        }
        // What is loaded now is asked for in any case: without a word Ollama might load the model anew with its default.
        let had = before.max(now.unwrap_or_default());
        let wanted = match needed <= had {
            true => had,
            false => needed.max(LEAST_NUM_CTX).checked_next_power_of_two().unwrap_or(u64::MAX).min(largest),
        };
        let wanted = wanted.max(had).min(most.unwrap_or(u64::MAX));
        self.num_ctx.fetch_max(wanted, Ordering::Relaxed);
        Some(wanted)
    }
}

/// A request on its way, as far as its size goes.
#[derive(Debug)]
pub(super) struct SentSize {
    ratio: Ratio,
    /// The estimated tokens, and those of what the server cannot have read before.
    estimate: Estimate,
    news: Estimate,
    /// The size of the context that the server is asked for.
    asked: Option<u64>,
    /// The size of the context, if it is known.
    context: Option<u64>,
}

/// A request that its server has cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The tokens that the server has read.
    pub(crate) read: u64,
    /// About how many it was sent.
    pub(crate) sent: u64,
    /// The size of the context, if it is known.
    pub(crate) context: Option<u64>,
}

impl SentSize {
    /// The size of the context that Ollama is to be asked for.
    pub(super) fn asked(&self) -> Option<u64> {
        self.asked
    }

    /// Compares it with what the server has counted. Servers that do not count say 0. Some count only what was not in their caches, as Ollama 0.30.0
    /// did, so that a small count proves nothing where the request fits in the context, or could have been read before.
    pub(super) fn compare(&self, usage: &Usage) -> Option<Cut> {
        let cached = usage.cached.unwrap_or_default();
        // Mostly the cached tokens are among the others.
        let read = if cached > usage.input { usage.input.saturating_add(cached) } else { usage.input };
        // What the model gets in any case; of a small request most is the template's.
        let sent = self.estimate.sure;
        if read == 0 || sent < LARGE {
            return None;
        }
        let is_small = read.saturating_mul(2) < sent;
        let is_cut = match self.context {
            Some(context) if self.ratio.expected(sent).saturating_mul(10) > context.saturating_mul(9) => {
                // Ollama leaves half of the context to a request that does not fit: <https://github.com/ollama/ollama/issues/17427>.
                is_small || read.abs_diff(context / 2) <= NEAR
            }
            Some(_) => false,
            None => read.saturating_mul(2) < self.news.sure,
        };
        if !is_cut && !is_small && self.estimate.perhaps.saturating_mul(10) <= sent {
            self.ratio.calibrate(sent, read);
        }
        is_cut.then_some(Cut { read, sent, context: self.context })
    }
}

impl HttpUpstream {
    /// What is known of a model's context. The server is asked beside the request, which waits for a moment where nothing is known yet.
    pub(super) async fn context(self: &Arc<Self>, model: &str) -> Arc<ModelContext> {
        let context = self.contexts.models.get_with_by_ref(model, || Arc::new(ModelContext::new()));
        if context.is_due() {
            let (this, asked, model) = (Arc::clone(self), Arc::clone(&context), model.to_owned());
            tokio::spawn(carried(async move {
                let said = timeout(TIMEOUT, this.ask_context(&model)).await;
                let said = said.ok().and_then(|said| {
                    said.inspect_err(|error| tracing::debug!(model, %error, "context_size_not_known")).ok()
                });
                asked.learn(said);
            }));
        }
        let is_known = context.size.borrow().is_some();
        if !is_known {
            let mut size = context.size.subscribe();
            let _ = timeout_at(context.patience, size.wait_for(Option::is_some)).await;
        }
        context
    }

    /// What is known of how requests of a user to a model are estimated.
    pub(super) fn ratio(&self, model: &str, asker: &Asker) -> Ratio {
        Ratio { ratios: self.contexts.ratios.clone(), key: (model.to_owned(), asker.clone()) }
    }

    /// The size of the context that a request for a model may have; `None` if it is not known. `set` is what the settings say of the model.
    pub(super) async fn context_limit(
        self: &Arc<Self>,
        model: &str,
        request: &Request,
        set: Option<u64>,
        asker: &Asker,
    ) -> Option<u64> {
        let api = self.recognized().await.api;
        let is_ollama = api == UpstreamApi::Ollama;
        let said = api.asked_context(request).filter(|_| self.lets_load(asker));
        let said = said.or(set).or(self.settings.num_ctx.filter(|_| is_ollama));
        if said.is_some() {
            return said;
        }
        let ContextSize { now, most } = self.context(model).await.size();
        if !is_ollama || self.settings.max_num_ctx == 0 {
            return now;
        }
        let largest = self.settings.max_num_ctx.max(now.unwrap_or_default());
        Some(largest.min(most.unwrap_or(u64::MAX)))
    }

    /// Measures a request, and chooses the context that Ollama is asked for. `set` is what the settings say of the model.
    pub(super) async fn measure(
        self: &Arc<Self>,
        api: UpstreamApi,
        request: &Request,
        definitions: &str,
        set: Option<u64>,
        asker: &Asker,
    ) -> SentSize {
        let name = request.model.as_deref().unwrap_or_default();
        let (model, ratio) = (self.context(name).await, self.ratio(name, asker));
        let estimate = Estimate::of_request(request, definitions);
        let news = Estimate::of_news(&request.messages);
        let asked = match api {
            UpstreamApi::Ollama => {
                let wanted = api.asked_context(request);
                // Ollama loads the model anew for another size, for all who ask it: so what others want counts as what they need.
                let (said, needed) = if self.lets_load(asker) { (wanted, None) } else { (None, wanted) };
                said.or(set).or(self.settings.num_ctx).or_else(|| {
                    let answer = request.sampling.max_tokens.map_or(ANSWER, |most| most.min(ANSWER));
                    let tokens = ratio.expected(estimate.total());
                    let tokens = needed.map_or(tokens, |needed| tokens.max(needed.saturating_sub(answer)));
                    model.num_ctx(tokens, answer, self.settings.max_num_ctx)
                })
            }
            UpstreamApi::OpenAi => None,
        };
        let context = asked.or(set).or(model.size().now);
        SentSize { ratio, estimate, news, asked, context }
    }

    /// Asks the server for the size of a model's context as it is now.
    pub(super) async fn ask_context(self: &Arc<Self>, model: &str) -> Result<ContextSize, UpstreamError> {
        let known = self.recognized().await;
        let root = root_of(&known.openai_base);
        let source = match known.api {
            UpstreamApi::Ollama => ContextSource::Ollama,
            UpstreamApi::OpenAi => known.kind.map_or(ContextSource::List, |kind| kind.context),
        };
        match source {
            ContextSource::List => {
                let models = self.models().await?;
                let is_asked = |entry: &&Value| name_of(entry) == Some(model);
                Ok(match models.as_slice() {
                    // A server of one model may answer to any name.
                    [only] => ContextSize::of_entry(only),
                    all => all.iter().find(is_asked).map(ContextSize::of_entry).unwrap_or_default(),
                })
            }
            ContextSource::Json { path, pointer } => {
                let url = format!("{root}{path}");
                let now = size_at(&self.get(url.clone()).await?, pointer);
                if now.is_some() {
                    return Ok(ContextSize { now, most: None });
                }
                // A server of several models; the question alone does not load one.
                let query = [("model", model), ("autoload", "false")];
                let url = reqwest::Url::parse_with_params(&url, query)
                    .map_err(|error| UpstreamError::failed(error.to_string()))?;
                Ok(ContextSize { now: size_at(&self.get(url.into()).await?, pointer), most: None })
            }
            ContextSource::Ollama => {
                let shown = self.post(format!("{root}/api/show"), &json!({"model": model})).await;
                let shown = shown.unwrap_or_default();
                let loaded = self.get(format!("{root}/api/ps")).await.unwrap_or_default();
                Ok(of_ollama(&shown, &loaded, model))
            }
        }
    }
}

/// A number of tokens; some servers say 0 where they do not know.
fn size_at(json: &Value, pointer: &str) -> Option<u64> {
    json.pointer(pointer)?.as_u64().filter(|size| *size > 0)
}

/// The size that a model has in Ollama: loaded, the context it was loaded with; otherwise that of its model file, if it has one there.
fn of_ollama(shown: &Value, loaded: &Value, model: &str) -> ContextSize {
    let latest = format!("{model}:latest");
    let is_asked = |entry: &&Value| {
        let name = entry.get("model").or_else(|| entry.get("name")).and_then(Value::as_str);
        name.is_some_and(|name| name == model || name == latest)
    };
    let loaded = loaded.get("models").and_then(Value::as_array).and_then(|all| all.iter().find(is_asked));
    let parameters = shown.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let of_file =
        parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    let facts = shown.get("model_info").and_then(Value::as_object);
    let most = facts.and_then(|facts| {
        let (_, size) = facts.iter().find(|(name, _)| name.ends_with(".context_length"))?;
        size.as_u64().filter(|size| *size > 0)
    });
    let now = loaded.and_then(|entry| size_at(entry, "/context_length"));
    ContextSize { now: now.or(of_file), most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b11_what_a_user_sends_changes_what_is_estimated_for_that_user_alone() {
        let contexts = Contexts::default();
        let sent = |user: &str, model: &str| {
            let key = (model.to_owned(), Asker::new("default", user));
            let ratio = Ratio { ratios: contexts.ratios.clone(), key };
            let estimate = Estimate { sure: 2000, ..Estimate::default() };
            SentSize { ratio, estimate, news: Estimate::default(), asked: None, context: Some(32_768) }
        };
        let counted = |input: u64| Usage { input, ..Usage::default() };
        // A text of rare characters.
        assert!(sent("eve", "m").compare(&counted(6000)).is_none());
        assert_eq!(sent("eve", "m").ratio.expected(100), 300);
        assert_eq!(sent("ada", "m").ratio.expected(100), RATIO.0);
        assert!(sent("ada", "m").compare(&counted(2000)).is_none());
        assert_eq!(sent("ada", "m").ratio.expected(100), 110);
        assert_eq!(sent("eve", "m").ratio.expected(100), 300);
        assert_eq!(sent("ada", "n").ratio.expected(100), RATIO.0);
    }
}
