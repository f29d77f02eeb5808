//! The parts of results as the person gets them: as text for every client, and as data for programs that show more.
//!
//! APIs carry text to the person and nothing else, so a picture or a file is an address there, at which this server gives it to its user alone.

use std::{borrow::Cow, fmt::Write, sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use registry_core::{Blob, Content, Table, cell_text, store::StoreError};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use super::{
    Backend,
    kept::{KeptFiles, ResultFile},
    shorten::shorten,
};

/// How many rows of a table are text.
const TEXT_ROWS: usize = 50;
/// How many rows of a table are data; the file of it has all.
const DATA_ROWS: usize = 200;
/// How much of a cell there is in both, in characters.
const CELL: usize = 500;
/// What is larger is made beside the runtime, in bytes.
const SMALL: usize = 64 * 1024;
/// How long a turn waits for the store before it goes on without it.
const PATIENCE: Duration = Duration::from_secs(10);
/// What stands in an address as it is.
const IN_ADDRESS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// A part as the person gets it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Presented {
    /// Markdown.
    pub(super) text: String,
    /// What it is, by its `type`: `text`, `markdown`, `table`, `image`, `audio` or `file`.
    pub(super) part: Value,
}

/// Whether a part is for the person by itself. A text, or where to find a document, is for the model.
pub(super) fn is_for_person(part: &Content) -> bool {
    match part {
        Content::Table(_) | Content::Markdown { .. } => true,
        Content::Text { .. } | Content::ResourceLink { .. } => false,
        _ => part.blob().is_some(),
    }
}

/// What a model gets in place of a file, which the person has.
pub(super) fn for_model(part: &Content) -> String {
    match (part, part.blob()) {
        (Content::Table(table), _) => table.to_csv(),
        (_, Some(Blob { name, media_type, .. })) => {
            let size = part.blob().map_or(0, |blob| blob.size());
            format!("[`{name}`, {media_type}, {size} bytes: shown to the user]")
        }
        _ => part.for_model(),
    }
}

/// Where files are kept, and where the person finds them.
#[derive(Debug, Clone)]
struct Shelf {
    files: KeptFiles,
    owner: String,
    base: Option<String>,
}

impl Backend {
    /// The file of a user's result that a part's `id` names.
    ///
    /// # Errors
    /// When it has to be read from the store, and that fails.
    pub async fn result_file(&self, user: &str, id: &str) -> Result<Option<Arc<ResultFile>>, StoreError> {
        let tenant = self.registry().tenant();
        let owner = super::read_result::owner(tenant, user);
        if let Some(file) = self.shared.files.get(&owner, id) {
            return Ok(Some(file));
        }
        let Some(store) = &self.file_store else { return Ok(None) };
        let Some(text) = store.file((tenant, user), id).await? else { return Ok(None) };
        let file = beside(text.len(), move || ResultFile::of_stored(&text).map(Arc::new)).await;
        if let Some(file) = &file {
            self.shared.files.put_back(&owner, id, Arc::clone(file));
        }
        Ok(file)
    }

    /// Keeps a file in the store, before its address is given. A failure is logged: the file is still in memory.
    async fn store_file(&self, user: &str, owner: &str, id: &str) {
        let Some((store, file)) = self.file_store.as_ref().zip(self.shared.files.get(owner, id)) else {
            return;
        };
        let Some(text) = beside(file.bytes.len(), move || file.to_stored()).await else { return };
        let keeping = store.keep_file((self.registry().tenant(), user), id, text.into());
        let cause = match tokio::time::timeout(PATIENCE, keeping).await {
            Ok(Ok(())) => return,
            Ok(Err(failed)) => failed.to_string(),
            Err(_) => format!("the store has not answered within {} s", PATIENCE.as_secs()),
        };
        tracing::warn!(file = id, cause, "file_not_stored");
    }

    /// Makes of a part what its user gets; `None` for what is for the model alone.
    pub(super) async fn present(&self, user: &str, part: Content) -> Option<Presented> {
        let shelf = Shelf {
            files: self.shared.files.clone(),
            owner: super::read_result::owner(self.registry().tenant(), user),
            base: self.base_url.as_deref().map(str::to_owned),
        };
        let most = self.settings().limits.max_result_characters;
        let owner = shelf.owner.clone();
        let shown = beside(part.size(), move || presented(&part, &shelf, most)).await?;
        if let Some(id) = shown.part.get("id").and_then(Value::as_str) {
            self.store_file(user, &owner, id).await;
        }
        Some(shown)
    }
}

/// Runs what takes long for so many bytes beside the runtime.
async fn beside<T: Send + 'static>(
    size: usize,
    run: impl FnOnce() -> Option<T> + Send + 'static,
) -> Option<T> {
    if size <= SMALL { run() } else { spawn_blocking(run).await.ok().flatten() }
}

fn presented(part: &Content, shelf: &Shelf, most: usize) -> Option<Presented> {
    Some(match part {
        Content::Text { text } => {
            Presented { text: text.clone(), part: json!({"type": "text", "text": text}) }
        }
        Content::Markdown { text } => {
            let text = shorten(text.clone(), most);
            Presented { part: json!({"type": "markdown", "text": text}), text }
        }
        Content::Table(table) => presented_table(table, shelf),
        _ => {
            let blob = part.blob()?;
            let kind = match blob.media_type.split('/').next() {
                Some("image") => "image",
                Some("audio") => "audio",
                _ => "file",
            };
            let bytes = BASE64_STANDARD.decode(blob.base64).ok();
            shelf.file(kind, &blob.name, blob.media_type, bytes)
        }
    })
}

impl Shelf {
    /// A file that was kept, and how it is shown. Without bytes, which were none, it is only described.
    fn file(&self, kind: &str, name: &str, media_type: &str, bytes: Option<Vec<u8>>) -> Presented {
        let mut part = json!({"type": kind, "name": name, "mimeType": media_type});
        let Some(bytes) = bytes else {
            return Presented { text: format!("[{}, {media_type}: broken]", escaped(name)), part };
        };
        let size = bytes.len();
        let file = ResultFile { name: name.to_owned(), media_type: media_type.to_owned(), bytes };
        let id = self.files.keep(&self.owner, file);
        let path = format!("api/files/{id}/{}", utf8_percent_encode(name, IN_ADDRESS));
        let url = self.base.as_ref().map(|base| format!("{base}/{path}"));
        let (shown, size_text) = (escaped(name), readable(size));
        let text = match &url {
            Some(url) if kind == "image" => format!("![{shown}]({url})"),
            Some(url) => format!("[{shown}]({url}) ({media_type}, {size_text})"),
            None => format!("[{shown}, {media_type}, {size_text}]"),
        };
        if let Some(fields) = part.as_object_mut() {
            fields.extend([("id".to_owned(), id.into()), ("size".to_owned(), size.into())]);
            fields.insert("path".to_owned(), path.into());
            fields.extend(url.map(|url| ("url".to_owned(), url.into())));
        }
        Presented { text, part }
    }
}

fn presented_table(table: &Table, shelf: &Shelf) -> Presented {
    let rows = table.rows();
    let mut text = String::new();
    write_row(&mut text, table.columns().iter().map(|name| Cow::Borrowed(name.as_str())));
    write_row(&mut text, table.columns().iter().map(|_| Cow::Borrowed("---")));
    for row in rows.iter().take(TEXT_ROWS) {
        write_row(&mut text, row.iter().map(|cell| Cow::Owned(cell_text(cell))));
    }
    let cut = |cell: &Value| match cell {
        Value::Null | Value::Bool(_) | Value::Number(_) => cell.clone(),
        cell => cut(&cell_text(cell)).into(),
    };
    let data: Vec<Vec<Value>> =
        rows.iter().take(DATA_ROWS).map(|row| row.iter().map(cut).collect()).collect();
    let mut part = json!({"type": "table", "columns": table.columns(), "rows": data, "total": rows.len()});
    // All of it to save, and what the text has no room for.
    let csv = shelf.file("file", "table.csv", "text/csv", Some(table.to_csv().into_bytes()));
    if let Some(left_out) = rows.len().checked_sub(TEXT_ROWS).filter(|left_out| *left_out > 0) {
        let _ = write!(text, "\n{left_out} more rows: {}\n", csv.text);
    }
    if let (Some(part), Value::Object(file)) = (part.as_object_mut(), csv.part) {
        part.extend(file.into_iter().filter(|(name, _)| name != "type"));
    }
    Presented { text: text.trim_end().to_owned(), part }
}

fn write_row<'c>(text: &mut String, cells: impl Iterator<Item = Cow<'c, str>>) {
    for cell in cells {
        let cell = cut(&cell).replace('\\', "\\\\").replace('|', "\\|").replace(['\n', '\r'], " ");
        let _ = write!(text, "| {cell} ");
    }
    text.push_str("|\n");
}

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(CELL) {
        Some((at, _)) => Cow::Owned(format!("{}…", text.get(..at).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// A name that is no Markdown.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if "\\`*_[]()<>#!~&".contains(letter) {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// A size for people.
fn readable(bytes: usize) -> String {
    match bytes {
        ..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{}.{} MiB", bytes >> 20, (bytes >> 10) % 1024 * 10 / 1024),
    }
}

#[cfg(test)]
mod tests {
    use registry_core::{File, Image, Markdown};

    use super::*;

    fn shelf(base: Option<&str>) -> Shelf {
        Shelf { files: KeptFiles::default(), owner: "ada".into(), base: base.map(str::to_owned) }
    }

    #[test]
    fn b19_a_file_is_an_address_at_which_it_is_kept() {
        let shelf = shelf(Some("http://rack:1"));
        let file = File::new("my [report].csv", "a,b").into();
        let Presented { text, part } = presented(&file, &shelf, 100).unwrap();
        let id = part["id"].as_str().unwrap();
        let path = format!("api/files/{id}/my%20%5Breport%5D.csv");
        assert_eq!(text, format!(r"[my \[report\].csv](http://rack:1/{path}) (text/csv, 3 bytes)"));
        let expected = json!({"type": "file", "name": "my [report].csv", "mimeType": "text/csv", "id": id, "size": 3,
            "path": path, "url": format!("http://rack:1/{path}")});
        assert_eq!(part, expected);
        assert_eq!(shelf.files.get("ada", id).unwrap().bytes, b"a,b");

        let picture = Content::from(Image::new(b"\x89PNG\r\n\x1a\n").unwrap());
        let shown = presented(&picture, &shelf, 100).unwrap();
        assert!(shown.text.starts_with("![image.png](http://rack:1/api/files/"), "{}", shown.text);
        assert_eq!(for_model(&picture), "[`image.png`, image/png, 8 bytes: shown to the user]");
        let described = presented(&picture, &self::shelf(None), 100).unwrap();
        assert_eq!(
            (described.text.as_str(), described.part.get("url")),
            ("[image.png, image/png, 8 bytes]", None)
        );
        let broken = Content::Image { data: "?".into(), mime_type: "image/png".into() };
        let shown = presented(&broken, &shelf, 100).unwrap();
        assert_eq!((shown.text.as_str(), shown.part.get("id")), ("[image.png, image/png: broken]", None));
    }

    #[test]
    fn b19_a_table_is_markdown_with_the_rest_in_a_file() {
        let table =
            Table::new(["a|b", "c"]).row(("x\ny", Value::Null)).row(("é".repeat(CELL + 1), json!([1])));
        let shown = presented(&table.into(), &shelf(Some("http://rack")), 100).unwrap();
        let long = format!("{}…", "é".repeat(CELL));
        assert_eq!(shown.text, format!("| a\\|b | c |\n| --- | --- |\n| x y |  |\n| {long} | [1] |"));
        assert_eq!(shown.part["rows"], json!([["x\ny", null], [long, "[1]"]]));
        let rows = (0..DATA_ROWS + 1).fold(Table::new(["n"]), |table, n| table.row(n));
        let shelf = shelf(Some("http://rack"));
        let shown = presented(&rows.into(), &shelf, 100).unwrap();
        assert!(
            shown.text.contains("\n| 49 |\n\n151 more rows: [table.csv](http://rack/api/files/"),
            "{}",
            shown.text
        );
        assert_eq!(
            (shown.part["rows"].as_array().unwrap().len(), &shown.part["total"]),
            (DATA_ROWS, &json!(201))
        );
        let csv = shelf.files.get("ada", shown.part["id"].as_str().unwrap()).unwrap();
        assert!(csv.bytes.ends_with(b"\n200\n") && csv.name == "table.csv");
    }

    #[test]
    fn b19_text_of_a_result_is_for_the_model_and_long_markdown_is_shortened() {
        let resource = |json| serde_json::from_value::<Content>(json).unwrap();
        let text = resource(json!({"type": "resource", "resource": {"uri": "file:///a", "text": "words"}}));
        let link = resource(json!({"type": "resource_link", "uri": "https://a.example"}));
        for part in [Content::text("words"), text.clone(), link] {
            assert!(!is_for_person(&part), "{part:?}");
        }
        assert_eq!(presented(&text, &shelf(None), 100), None);
        let markdown = Content::from(Markdown::new("word ".repeat(1000)));
        assert!(is_for_person(&markdown));
        let shown = presented(&markdown, &shelf(None), 100).unwrap();
        assert!(shown.text.len() < 110 && shown.part["text"] == shown.text, "{}", shown.text);
        assert_eq!(["2 bytes", "2 KiB", "1.5 MiB"], [2, 1100, 3 << 19].map(readable));
    }
}
