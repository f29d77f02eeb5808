//! A document as it is read.

use std::path::Path;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr};
use toolrack_web::Line;

/// A document to add.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where it is from: the path of a file, or an address. There is one document of a path.
    pub path: String,
    /// Its title, else the name of the file.
    pub title: String,
    /// How it was read.
    pub kind: DocumentKind,
    /// The size of what was read, in bytes.
    pub bytes: u64,
    /// The SHA-256 of what was read, in hexadecimal digits.
    pub hash: String,
    /// Its language where it says so, such as `en`.
    pub language: Option<String>,
    /// When it was changed last.
    pub modified: Option<Timestamp>,
    /// What else it says of itself, such as its author.
    pub metadata: Map<String, Value>,
    /// Its text.
    pub lines: Vec<Line>,
}

/// How a document is read.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    Display,
    EnumString,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", parse_err_ty = String, parse_err_fn = unknown_kind)]
pub enum DocumentKind {
    /// Markdown, with or without front matter.
    Markdown,
    /// Plain text.
    Text,
    /// A page of HTML.
    Html,
    /// A table whose first row names its columns.
    Csv,
    /// PDF; its places are pages.
    Pdf,
    /// Word, PowerPoint, Excel, LibreOffice; its places are paragraphs, slides or rows.
    Office,
}

/// The endings of texts that are read whatever their encoding, those of prose first.
const TEXT: [&str; 51] = [
    "txt",
    "text",
    "rst",
    "adoc",
    "org",
    "log",
    "tex",
    "eml",
    "vtt",
    "srt", // prose
    "json",
    "jsonl",
    "yaml",
    "yml",
    "toml",
    "ini",
    "conf",
    "cfg",
    "properties",
    "xml",
    "sql",
    "sh",
    "bat",
    "ps1",
    "py",
    "rs",
    "js",
    "mjs",
    "ts",
    "jsx",
    "tsx",
    "css",
    "java",
    "kt",
    "go",
    "c",
    "h",
    "cpp",
    "hpp",
    "cs",
    "rb",
    "php",
    "pl",
    "lua",
    "r",
    "swift",
    "scala",
    "dart",
    "vue",
    "proto",
    "diff",
];
/// So many of them are of prose.
const PROSE: usize = 10;

/// The endings of files that are no text, so that nobody sends or opens them for nothing.
const NEVER_TEXT: [&str; 48] = [
    "png", "jpg", "jpeg", "gif", "webp", "avif", "heic", "bmp", "tif", "tiff", "ico", "svg",
    "psd", // pictures
    "mp3", "m4a", "wav", "ogg", "flac", "mp4", "mkv", "mov", "avi", "webm", // sound and film
    "zip", "gz", "bz2", "xz", "zst", "7z", "rar", "tar", "jar", "iso", // archives
    "exe", "dll", "so", "dylib", "bin", "class", "wasm", "o", // programs
    "doc", "xls", "ppt", "epub", "db", "sqlite", "gguf", // formats of other programs
];

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

impl DocumentKind {
    /// All there are.
    pub const ALL: [Self; 6] = [Self::Markdown, Self::Text, Self::Html, Self::Csv, Self::Pdf, Self::Office];

    /// The kind of a file, by the end of its name: a text where that is unknown, which shows when it is read. `None` where it cannot be one.
    pub fn of(path: &Path) -> Option<Self> {
        let is_never_text = extension(path).is_some_and(|end| NEVER_TEXT.contains(&end.as_str()));
        Self::by_extension(path).or_else(|| (!is_never_text).then_some(Self::Text))
    }

    /// The kind that the end of its name says.
    pub(crate) fn by_extension(path: &Path) -> Option<Self> {
        let extension = extension(path)?;
        Self::ALL.into_iter().find(|kind| kind.extensions().contains(&extension.as_str()))
    }

    /// Whether it is a text whose lines are no sentences, by its name.
    pub(crate) fn is_code(path: &Path) -> bool {
        let prose = |end: &String| TEXT.iter().position(|known| known == end).is_none_or(|at| at < PROSE);
        extension(path).is_some_and(|end| !prose(&end))
    }

    /// What the names of its files end in, without the dot. A text may have any other name.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Markdown => &["md", "markdown", "mdx"],
            Self::Text => &TEXT,
            Self::Html => &["html", "htm", "xhtml"],
            Self::Csv => &["csv", "tsv"],
            Self::Pdf => &["pdf"],
            Self::Office => &["docx", "pptx", "xlsx", "odt", "odp", "ods"],
        }
    }

    /// Its name, such as `markdown`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_kind(name: &str) -> String {
    format!("`{name}` is no kind of document; there are markdown, text, html, csv, pdf and office")
}
