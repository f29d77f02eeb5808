//! The shapes of the addresses beside `/api/chat` and `/api/generate`: `tags`, `show`, `ps`, `version` and `embed`.
//!
//! A field that a server does not know is left out, as Ollama does, but for those that clients require.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::OllamaFront;
use crate::{ListModels, ListedModel, front::json_reply};

/// The replies of `tags` and `show` about models of a server that is no Ollama.
impl ListModels for OllamaFront {
    fn list(&self, models: &[ListedModel]) -> http::Response<Vec<u8>> {
        json_reply(&ModelList { models: models.iter().map(Model::of).collect() })
    }

    fn model(&self, model: &ListedModel) -> http::Response<Vec<u8>> {
        let mut capabilities = if model.embeds { vec!["embedding"] } else { vec!["completion", "tools"] };
        if model.pictures.unwrap_or_else(|| model.can(&["vision", "multimodal", "image", "vlm"])) {
            capabilities.push("vision");
        }
        if model.can(&["thinking", "reasoning"]) {
            capabilities.push("thinking");
        }
        json_reply(&ModelInfo {
            modelfile: format!("# {}, served by Toolrack", model.id),
            template: if model.embeds { "{{ .Prompt }}" } else { TEMPLATE }.to_owned(),
            capabilities: capabilities.into_iter().map(str::to_owned).collect(),
            model_info: facts(model),
            modified_at: Some(modified_at(model)),
            ..ModelInfo::default()
        })
    }
}

/// A template: some clients look into it for what the model can do.
const TEMPLATE: &str = "{{ .System }}{{ .Tools }}{{ .Prompt }}";
/// The size of a context, in tokens, that is not known: clients take a model without one for much too small.
const USUAL_CONTEXT: u64 = 8192;

/// The name of the model's architecture, which clients require, and the size of the context, whose field has that name.
fn facts(model: &ListedModel) -> Map<String, Value> {
    // LM Studio; other servers do not say it.
    let architecture = model.fields.get("arch").and_then(Value::as_str).unwrap_or("unknown");
    let context = model.context.or((!model.embeds).then_some(USUAL_CONTEXT));
    let facts = [
        ("general.architecture".to_owned(), Some(json!(architecture))),
        ("general.basename".to_owned(), Some(json!(model.id))),
        (format!("{architecture}.context_length"), context.map(Value::from)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// With a fraction, as Ollama writes it: some clients read no time without.
fn modified_at(model: &ListedModel) -> String {
    format!("{:.9}", model.created_at())
}

/// Stands for the digest of the manifest: clients cut it, and know a model by it.
fn digest(model: &ListedModel) -> String {
    format!("{:x}", Sha256::digest(&model.id))
}

/// The reply of `GET /api/tags`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelList {
    /// The models.
    pub models: Vec<Model>,
}

/// A model of [`ModelList`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Model {
    /// Its name, which a request repeats.
    pub name: String,
    /// The same name.
    pub model: String,
    /// When it was changed (RFC 3339).
    pub modified_at: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of its manifest.
    pub digest: String,
    /// What it consists of.
    pub details: ModelDetails,
}

impl Model {
    /// A model of a server that is no Ollama.
    fn of(model: &ListedModel) -> Self {
        let name = model.id.clone();
        let (modified_at, digest) = (modified_at(model), digest(model));
        Self { model: name.clone(), name, modified_at, digest, ..Self::default() }
    }
}

/// What a model consists of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelDetails {
    /// The model that it was made from.
    pub parent_model: String,
    /// The format of its file, such as `gguf`.
    pub format: String,
    /// Its family, such as `llama`.
    pub family: String,
    /// All its families.
    pub families: Option<Vec<String>>,
    /// How many parameters it has, such as `8.0B`.
    pub parameter_size: String,
    /// How they are quantized, such as `Q4_K_M`.
    pub quantization_level: String,
}

/// The request to `POST /api/show`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ShowRequest {
    /// The model.
    pub model: String,
    /// The same, as old clients send it; Go's client sends both, one of them empty.
    #[serde(skip_serializing)]
    pub name: String,
    /// Whether long values are sent, too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub verbose: bool,
}

/// The reply of `POST /api/show`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Its license.
    pub license: String,
    /// Its model file.
    pub modelfile: String,
    /// Its options, one a line.
    pub parameters: String,
    /// Its template.
    pub template: String,
    /// Its system prompt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// What it consists of.
    pub details: ModelDetails,
    /// Facts of its file, such as `llama.context_length`. Clients require the field.
    pub model_info: Map<String, Value>,
    /// What it can do: `completion`, `tools`, `thinking`, `vision`, `embedding`, `insert`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// When it was changed (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified_at: Option<String>,
}

/// The reply of `GET /api/ps`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunningModels {
    /// The models that are loaded.
    pub models: Vec<RunningModel>,
}

/// A model of [`RunningModels`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunningModel {
    /// Its name.
    pub name: String,
    /// The same name.
    pub model: String,
    /// Its size in memory, in bytes.
    pub size: u64,
    /// SHA-256 of its manifest.
    pub digest: String,
    /// What it consists of.
    pub details: ModelDetails,
    /// When it will be unloaded (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// How much of it is in the memory of a graphics card, in bytes.
    pub size_vram: u64,
    /// The size of its context, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u64>,
}

impl RunningModels {
    /// The models of a server that is no Ollama: all of them count as loaded.
    pub fn of(models: &[ListedModel]) -> Self {
        let running = |model: &ListedModel| RunningModel {
            name: model.id.clone(),
            model: model.id.clone(),
            digest: digest(model),
            context_length: model.context,
            ..RunningModel::default()
        };
        Self { models: models.iter().map(running).collect() }
    }
}

/// The reply of `GET /api/version`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// The version of Ollama whose API is spoken. Clients compare it, so it is not that of Toolrack.
    pub version: String,
}

/// The request to `POST /api/embed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmbedRequest {
    /// The model.
    pub model: String,
    /// A text or several.
    pub input: EmbedInput,
    /// Whether texts that are too long are cut; by default they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<bool>,
    /// The length of the vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u64>,
    /// All other fields, such as `options` and `keep_alive`.
    #[serde(flatten)]
    pub others: Map<String, Value>,
}

/// What is embedded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EmbedInput {
    /// A text.
    One(String),
    /// Several texts.
    Many(Vec<String>),
}

/// The reply of `POST /api/embed`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmbedReply {
    /// The model.
    pub model: String,
    /// A vector for each text.
    pub embeddings: Vec<Vec<f32>>,
    /// How long it took, in nanoseconds.
    pub total_duration: u64,
    /// How long it took to load the model, in nanoseconds.
    pub load_duration: u64,
    /// Tokens of the texts.
    pub prompt_eval_count: u64,
}
