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
}

impl DocumentKind {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Markdown, Self::Text, Self::Html, Self::Csv, Self::Pdf];

    /// The kind of a file, by the end of its name; `None` where it cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        Self::ALL.into_iter().find(|kind| kind.extensions().contains(&extension.as_str()))
    }

    /// What the names of its files end in, without the dot.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Markdown => &["md", "markdown", "mdx"],
            Self::Text => &["txt", "text", "rst", "adoc", "org", "log"],
            Self::Html => &["html", "htm", "xhtml"],
            Self::Csv => &["csv", "tsv"],
            Self::Pdf => &["pdf"],
        }
    }

    /// Its name, such as `markdown`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

fn unknown_kind(name: &str) -> String {
    format!("`{name}` is no kind of document; there are markdown, text, html, csv and pdf")
}
