//! The inbox: a folder of Markdown files for somebody to look through. `source`, `claim` and `learning` write into it.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs::File,
    hash::{BuildHasher, RandomState},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use registry_core::{
    DataFolder,
    clock::{Clock, SystemClock},
    prelude::*,
    private::private_folder,
    tenant_path,
    text::cut,
};

/// A note is no longer than this, and neither is the message it came from, in bytes. The schemas do not say so: for a length of 2000
/// or more many builds of llama.cpp refuse a request with all its tools.
const MAX_BYTES: usize = 64 * 1024;
/// How many notes of a kind a user has in the inbox: somebody has to look through them before there are more.
const MAX_NOTES: usize = 1000;
/// How much of a file is read to see whose it is, in bytes.
const MAX_HEAD: u64 = 1024;
/// How much of a file's name is made of the note's text.
const MAX_SLUG: usize = 48;

/// A folder that tools put notes into, one file each. Each tenant has its own.
///
/// The folder is made with the first note, for nobody else to read.
#[derive(Clone, derive_more::Debug)]
#[debug("Inbox({})", folder.display())]
pub struct Inbox {
    folder: PathBuf,
    clock: Arc<dyn Clock>,
}

/// The table `[inbox]` of the configuration.
#[args]
struct InboxSettings {
    /// The folder; by default `inbox` in the data folder.
    folder: Option<PathBuf>,
}

#[resource(table = "inbox")]
fn inbox(
    ctx: &ToolContext,
    settings: Settings<InboxSettings>,
    data: Resource<DataFolder>,
) -> io::Result<Inbox> {
    let folder = data.folder(settings.folder.as_deref(), "inbox")?;
    Ok(Inbox::new(tenant_path(&folder, ctx.tenant())))
}

/// Something to put into the inbox.
pub(crate) struct Note {
    kind: &'static str,
    text: String,
    /// The front matter, but for what the inbox adds.
    fields: Vec<(&'static str, Value)>,
}

impl Inbox {
    /// The inbox in that folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), clock: Arc::new(SystemClock) }
    }

    /// With another clock than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Puts a note into a new file, which is there whole or not at all.
    pub(crate) async fn add(&self, note: Note) -> Result<ToolResult, ToolError> {
        let text = note.text.trim();
        if text.is_empty() {
            return Err(ToolError::invalid("there is nothing to write down; say what"));
        }
        if text.len() > MAX_BYTES {
            return Err(ToolError::invalid(format!(
                "the text has {} bytes, and {MAX_BYTES} are the most; shorten it, or write it down in parts",
                text.len()
            )));
        }
        let now = self.clock.now().to_zoned(TimeZone::UTC);
        let stem = match slug(text) {
            slug if slug.is_empty() => format!("{}-{}", now.date(), note.kind),
            slug => format!("{}-{slug}", now.date()),
        };
        let file = note.file(&now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        let (place, owner) = (format!("{}s", note.kind), note.owner());
        let folder = self.folder.join(&place);
        let name = tokio::task::spawn_blocking(move || {
            let known = owners_in(&folder);
            // Held until the note is there, so that none is written beside it that was counted with it.
            let mut known = known.lock();
            if known.count_of(&owner, &folder) >= MAX_NOTES {
                let full = ToolError::failed(format!("the inbox has {MAX_NOTES} notes of this user"));
                return Err(full.with_feedback(
                    "It was not written down: the inbox is full. Say to the user that somebody has to look through it.",
                ));
            }
            create(&folder, &stem, &file).map_err(|error| {
                ToolError::failed(format!("the inbox {}: {error}", folder.display())).with_feedback(
                    "It was not written down: the inbox cannot be written to. Say so to the user.",
                )
            })
        })
        .await??;
        let path = format!("inbox/{place}/{name}");
        Ok(ToolResult::new(json!({ "created": path }))
            .with_message(format!("Written down in {path}"))
            .with_side_effect(format!("created:{path}")))
    }
}

impl Note {
    /// A note of that kind, a word that also names its folder: `claim` goes into `claims`.
    pub(crate) fn new(ctx: &ToolContext, kind: &'static str, text: &str) -> Self {
        // What steers a terminal has no place in a text; neither has a NUL.
        let is_text = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
        let note = Self { kind, text: text.chars().filter(is_text).collect(), fields: Vec::new() };
        let conversation = ctx.conversation();
        note.with("user", &*ctx.caller().user)
            .with("chat_id", conversation.chat_id.as_deref())
            .with("confidence", conversation.confidence)
    }

    /// With another line of front matter; none where the value is null.
    pub(crate) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.fields.push((key, value));
        }
        self
    }

    /// With the user's words that led to it.
    pub(crate) fn with_user_message(self, ctx: &ToolContext) -> Self {
        self.with("user_message", ctx.conversation().user_message.clone().map(|text| cut(text, MAX_BYTES)))
    }

    /// The line of the file that says whose it is.
    fn owner(&self) -> String {
        let user = self.fields.iter().find(|(key, _)| *key == "user");
        user.map(|(key, value)| format!("{key}: {}", yaml(value))).unwrap_or_default()
    }

    /// The whole file.
    fn file(&self, created: &str) -> String {
        let own = [("kind", self.kind.into()), ("created", created.into())];
        let fields: String =
            own.iter().chain(&self.fields).map(|(key, value)| format!("{key}: {}\n", yaml(value))).collect();
        format!("---\n{fields}---\n\n{}\n", self.text.trim())
    }
}

/// A value in YAML, of which JSON is a part but for a few characters that YAML wants written by their numbers.
fn yaml(value: &Value) -> String {
    let is_special =
        |c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let mut text = String::new();
    for c in value.to_string().chars() {
        if is_special(c) {
            text.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            text.push(c);
        }
    }
    text
}

/// The words a text begins with, for the name of a file: `a-z`, `0-9` and `-`.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if slug.len() == MAX_SLUG {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

/// Whose the notes of each folder are. A note is read once, however many are written beside it.
static OWNERS: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<Owners>>>>> = LazyLock::new(Mutex::default);

fn owners_in(folder: &Path) -> Arc<Mutex<Owners>> {
    Arc::clone(OWNERS.lock().entry(folder.to_owned()).or_default())
}

/// By the names of files the hashes of their owners' lines.
#[derive(Default)]
struct Owners {
    by_file: HashMap<OsString, u64>,
    hasher: RandomState,
}

impl Owners {
    /// How many files of the folder have this line in their front matter. Others write and remove files there too.
    fn count_of(&mut self, owner: &str, folder: &Path) -> usize {
        // Before the first note there is no folder.
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.file_name());
        // Those that are not yet whole are hidden.
        let files: HashSet<OsString> =
            files.filter(|name| !name.as_encoded_bytes().starts_with(b".")).collect();
        self.by_file.retain(|name, _| files.contains(name));
        for name in files {
            if !self.by_file.contains_key(&name)
                && let Ok(owner) = owner_of(&folder.join(&name))
            {
                self.by_file.insert(name, self.hasher.hash_one(owner));
            }
        }
        let owner = self.hasher.hash_one(owner);
        self.by_file.values().filter(|there| **there == owner).count()
    }
}

/// The line of a file's front matter that says whose it is; empty where there is none.
fn owner_of(file: &Path) -> io::Result<String> {
    let mut head = Vec::new();
    File::open(file)?.take(MAX_HEAD).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    let front = head.split("\n---\n").next().unwrap_or_default();
    Ok(front.lines().find(|line| line.starts_with("user: ")).unwrap_or_default().to_owned())
}

/// Makes a file with that text, and a name that no other file has. It is hidden until it is whole.
fn create(folder: &Path, stem: &str, text: &str) -> io::Result<String> {
    private_folder(folder)?;
    let mut file = tempfile::Builder::new().prefix(&format!(".{stem}-")).suffix(".md").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    let hidden = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = hidden.trim_start_matches('.');
    file.persist_noclobber(folder.join(name))?;
    // The name has to last as well. Only Unix lets a folder be opened for that.
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    Ok(name.to_owned())
}

#[cfg(test)]
#[path = "_inbox_tests.rs"]
mod tests;
