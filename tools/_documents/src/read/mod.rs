//! Makes documents of files.

mod csv;
mod encoding;
mod html;
mod markdown;
mod office;
mod pdf;
mod reader;

use std::{fs, io::Read, path::Path, process::ExitCode};

use jiff::Timestamp;
use registry_core::text::{is_invisible, shorten};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolrack_web::Line;

use super::document::{Document, DocumentKind};

/// Larger files are not read, in bytes.
pub const MAX_BYTES: u64 = 50 * 1024 * 1024;

/// So much of a file shows whether it is a text, in bytes.
const HEAD: u64 = 8192;
/// So many lines it may have, and in memory each takes many times what it takes in the file.
const MAX_LINES: usize = 2_000_000;
/// So many headings a document may have: each is kept with the passages below it.
const MAX_HEADINGS: usize = 10_000;
/// A longer title is cut, in characters.
const MAX_TITLE: usize = 300;
/// So much is kept of what a document says of itself: so many values, each of so many bytes as JSON.
const MAX_VALUES: usize = 64;
const MAX_VALUE: usize = 2000;
/// The tag of a language has no more bytes (RFC 5646).
const MAX_LANGUAGE: usize = 35;

/// Does the work of a reader where the program was started as one: then `main` ends with this code. It has to be called at the
/// beginning of `main`. A program that does so reads PDFs and office documents in processes of their own, of which a bad one ends none but
/// its own.
pub fn launched() -> Option<ExitCode> {
    reader::launched()
}

/// What a reader takes from a file.
#[derive(Debug, Default, PartialEq)]
struct Text {
    title: Option<String>,
    language: Option<String>,
    metadata: Map<String, Value>,
    lines: Vec<Line>,
}

/// A file of a kind that is known, before it is made out.
#[derive(Debug)]
pub struct File {
    path: String,
    kind: DocumentKind,
    hash: String,
    modified: Option<Timestamp>,
    bytes: Vec<u8>,
}

impl File {
    /// Takes a file in. Its path becomes absolute.
    ///
    /// # Errors
    /// Why it cannot be read, without its path: it is of no kind that is known, too large, or cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let absolute = path.canonicalize().map_err(|error| error.to_string())?;
        let kind = DocumentKind::of(path).ok_or("by its name it has no text that can be read")?;
        // Another one that has the same name but for such letters would take its place.
        let name = absolute.to_str().ok_or("its path is not UTF-8; rename it")?;
        let about = absolute.metadata().map_err(|error| error.to_string())?;
        // Asked before it is opened: whoever opens a pipe waits for somebody who writes.
        if !about.is_file() {
            return Err("it is no file".to_owned());
        }
        let opened = fs::File::open(&absolute).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        // It may grow while it is read.
        opened.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        let modified = about.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
        Ok(Self::new(name, kind, bytes, modified))
    }

    /// What was a file, under the path that is to be cited.
    pub fn new(path: &str, kind: DocumentKind, bytes: Vec<u8>, modified: Option<Timestamp>) -> Self {
        let hash = format!("{:x}", Sha256::digest(&bytes));
        Self { path: path.to_owned(), kind, hash, modified, bytes }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Its SHA-256, in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Makes it out.
    ///
    /// # Errors
    /// Why it cannot be read, without its path: it is too large, not what it seems, or has no text.
    pub fn read(self) -> Result<Document, String> {
        let size = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        if size > MAX_BYTES {
            return Err(format!("it has more than {} MiB; split it", MAX_BYTES / 1024 / 1024));
        }
        let name = Path::new(&self.path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = match self.kind {
            DocumentKind::Pdf => pdf::read(self.bytes)?,
            DocumentKind::Office => match reader::parse(self.bytes, "document")? {
                reader::Parsed::Office(contents) => office::text(contents)?,
                reader::Parsed::Pages(_) => return Err("it is a PDF; name it so".to_owned()),
            },
            kind => text_of(Path::new(&self.path), kind, &self.bytes, &name)?,
        };
        if text.lines.iter().all(|line| line.text.trim().is_empty()) {
            return Err("there is no text in it".to_owned());
        }
        if text.lines.iter().filter(|line| line.heading > 0).count() > MAX_HEADINGS {
            return Err(format!("it has more than {MAX_HEADINGS} headings; split it"));
        }
        // A file says it of itself, and lists show it beside others.
        let title = text.title.map(|title| title.replace(is_invisible, "")).filter(|title| !title.is_empty());
        Ok(Document {
            path: self.path,
            title: shorten(title.unwrap_or(name), MAX_TITLE),
            kind: self.kind,
            bytes: size,
            hash: self.hash,
            language: text.language.filter(|language| (1..=MAX_LANGUAGE).contains(&language.len())),
            modified: self.modified,
            metadata: bounded(text.metadata),
            lines: text.lines,
        })
    }
}

/// Reads what was a file, under the path that is to be cited.
///
/// # Errors
/// Why it cannot be read, without its path.
pub fn document(
    path: &str,
    kind: DocumentKind,
    bytes: &[u8],
    modified: Option<Timestamp>,
) -> Result<Document, String> {
    File::new(path, kind, bytes.to_vec(), modified).read()
}

/// Without values that are too long, and those that are too many.
fn bounded(metadata: Map<String, Value>) -> Map<String, Value> {
    let fits = |(name, value): &(String, Value)| name.len() + value.to_string().len() <= MAX_VALUE;
    metadata.into_iter().filter(fits).take(MAX_VALUES).collect()
}

/// What is kept as a text, in whichever encoding.
fn text_of(path: &Path, kind: DocumentKind, bytes: &[u8], name: &str) -> Result<Text, String> {
    // Where no name says what it is, it has to be certain.
    let is_certain = kind != DocumentKind::Text || DocumentKind::by_extension(path).is_some();
    if bytes.contains(&0) && !encoding::is_marked(bytes) || !is_certain && !encoding::is_text(bytes) {
        return Err("it is no text; it has binary data in it".to_owned());
    }
    let (source, encoding) = encoding::decoded(bytes, kind == DocumentKind::Html);
    let source = without_controls(&source);
    if line_ends(&source) > MAX_LINES {
        return Err(too_many_lines());
    }
    let mut text = match kind {
        DocumentKind::Markdown => markdown::read(&source),
        DocumentKind::Html => html::read(&source)?,
        DocumentKind::Csv => csv::read(&source, name)?,
        _ => plain(&source, DocumentKind::is_code(path)),
    };
    if encoding != encoding_rs::UTF_8 {
        text.metadata.insert("encoding".to_owned(), encoding.name().into());
    }
    Ok(text)
}

/// Whether a file without a name that says so has text in it, as far as its beginning shows.
pub(crate) fn begins_as_text(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && !head.is_empty() && encoding::is_text(&head)
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn too_many_lines() -> String {
    format!("it has more than {MAX_LINES} lines; split it")
}

/// What steers a terminal or a printer is no text. Line ends are `\n`.
fn without_controls(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace(['\r', '\u{c}'], "\n");
    text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "")
}

fn plain(text: &str, verbatim: bool) -> Text {
    let line = |(line, number)| Line { verbatim, ..Line::text(number, line) };
    let lines = text.lines().zip(1..).map(line).collect();
    Text { lines, ..Text::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p6_a_text_is_read_whatever_its_encoding() {
        for bytes in [
            &b"caf\xc3\xa9\n"[..],
            b"\xef\xbb\xbfcaf\xc3\xa9\r\n",
            b"caf\xe9",
            b"\xff\xfec\0a\0f\0\xe9\0",
            b"\xfe\xff\0c\0a\0f\0\xe9",
            b"ca\x1bf\xe9\x07",
        ] {
            let document = document("a/notes.txt", DocumentKind::Text, bytes, None).unwrap();
            assert_eq!(document.lines[0].text, "café", "{bytes:?}");
            assert_eq!((document.title.as_str(), document.hash.len()), ("notes", 64));
        }
        let document = document("a/notes.txt", DocumentKind::Text, b"caf\xe9", None).unwrap();
        assert_eq!(document.metadata["encoding"], "windows-1252");
    }

    #[test]
    fn p6_plain_text_is_read_whatever_its_name_and_nothing_else() {
        let read = |path: &str, bytes: &[u8]| {
            let kind = DocumentKind::of(Path::new(path))?;
            document(path, kind, bytes, None).ok().map(|document| (kind, document.lines[0].verbatim))
        };
        for path in ["README", "notes", "a.txt", "a.eml", "a.adoc", ".md"] {
            assert_eq!(read(path, b"Tea."), Some((DocumentKind::Text, false)), "{path}");
        }
        for path in ["a.json", "a.YAML", "a.toml", "a.py", "a.rs", "a.tsx", "a.sql", "a.xml"] {
            assert_eq!(read(path, "tee: grün".as_bytes()), Some((DocumentKind::Text, true)), "{path}");
        }
        for path in ["a.png", "a.exe", "a.zip", "a.MP4", "a.doc"] {
            assert_eq!(read(path, b"Tea."), None, "{path}");
        }
        assert!(read("a.unknown", "grün".as_bytes()).is_some());
        for bytes in [&b"gr\xfcn"[..], b"\x00\x01", b"a\0b"] {
            assert_eq!(read("a.unknown", bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn p6_what_is_no_text_is_refused_with_the_reason() {
        let read = |kind, bytes: &[u8]| document("x", kind, bytes, None).unwrap_err();
        assert!(read(DocumentKind::Text, b"a\0b").contains("binary"));
        assert!(read(DocumentKind::Markdown, b" \n\n").contains("no text"));
        assert!(read(DocumentKind::Html, b"<script>x</script>").contains("no text"));
        assert!(read(DocumentKind::Pdf, b"no pdf").contains("PDF"));
        assert!(read(DocumentKind::Csv, b"").contains("no text"));
        let headings = "# x\n".repeat(MAX_HEADINGS + 1);
        assert!(read(DocumentKind::Markdown, headings.as_bytes()).contains("more than 10000 headings"));
        assert!(File::open(Path::new("/")).unwrap_err().contains("no file"));
        for gone in ["there/is/no.md", "there/is/no/folder"] {
            assert!(File::open(Path::new(gone)).unwrap_err().contains("No such file"), "{gone}");
        }
    }

    #[test]
    fn p6_what_nobody_sees_is_not_in_the_title() {
        let title = |title: &str| {
            let text = format!("---\ntitle: {title}\n---\nText.\n");
            document("a.md", DocumentKind::Markdown, text.as_bytes(), None).unwrap().title
        };
        assert_eq!(title("Invoice \u{202e}fdp.exe\u{2028}"), "Invoice fdp.exe");
        assert_eq!(title("\u{202e}"), "a");
    }

    #[test]
    fn p6_what_a_document_says_of_itself_is_bounded() {
        let long = "x".repeat(100_000);
        let many: String = (0..200).map(|number| format!("key{number}: {number}\n")).collect();
        let text = format!("---\nlang: {long}\nabstract: {long}\n{many}---\n# {long}\n\nText.\n");
        let document = document("a.md", DocumentKind::Markdown, text.as_bytes(), None).unwrap();
        assert!(document.title.chars().count() <= MAX_TITLE + 1 && document.language.is_none());
        assert!(document.metadata.len() == MAX_VALUES && !document.metadata.contains_key("abstract"));
    }

    #[test]
    fn p6_the_lines_of_a_file_are_counted_before_they_are_made() {
        let read = |kind, piece: &str, times| document("x", kind, piece.repeat(times).as_bytes(), None);
        for (kind, piece) in [
            (DocumentKind::Text, "\n"),
            (DocumentKind::Text, "\r"),
            (DocumentKind::Markdown, "\r\n"),
            (DocumentKind::Html, "\n"),
            (DocumentKind::Csv, "\n"),
        ] {
            let refused = read(kind, piece, MAX_LINES + 1).unwrap_err();
            assert_eq!(refused, "it has more than 2000000 lines; split it", "{kind:?}");
            assert!(read(kind, piece, MAX_LINES).unwrap_err().contains("no text"), "{kind:?}");
        }
        let refused = read(DocumentKind::Html, "<br>a", MAX_LINES + 1).unwrap_err();
        assert!(refused.contains("lines"), "{refused}");
    }

    #[test]
    fn p6_too_large_a_file_is_refused() {
        let bytes = vec![b'a'; usize::try_from(MAX_BYTES).unwrap() + 1];
        assert!(document("x", DocumentKind::Text, &bytes, None).unwrap_err().contains("50 MiB"));
    }
}
