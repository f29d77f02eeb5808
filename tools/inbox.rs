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
mod tests {
    use std::fs;

    use registry_core::{Caller, Conversation, ErrorKind, testing::TestClock};
    use saphyr::{LoadableYamlNode, Yaml};

    use super::*;

    fn context(conversation: Conversation) -> ToolContext {
        ToolContext::new(Caller::new("@ada", Permission::User)).with_conversation(conversation)
    }

    fn inbox(folder: &Path) -> Inbox {
        let now = "2026-11-22T23:05:09.5Z".parse().unwrap();
        Inbox::new(folder).with_clock(TestClock::at(now))
    }

    /// Adds a claim to a fresh inbox: its path from the inbox on, and what the file says.
    async fn claim(text: &str) -> (String, String) {
        let folder = tempfile::tempdir().unwrap();
        let result =
            inbox(folder.path()).add(Note::new(&ToolContext::default(), "claim", text)).await.unwrap();
        let path = result.value["created"].as_str().unwrap().to_owned();
        assert_eq!(result.side_effects, [format!("created:{path}")]);
        let files = files(folder.path());
        let [(name, said)] = files.as_slice() else { panic!("one file and no other: {files:?}") };
        assert_eq!(path, format!("inbox/{name}"));
        (path, said.clone())
    }

    /// All files below a folder, hidden ones too: their paths from there, and what they say.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let name = path.file_name().unwrap().to_str().unwrap().to_owned();
                found.extend(files(&path).into_iter().map(|(file, said)| (format!("{name}/{file}"), said)));
            } else {
                let said = fs::read_to_string(&path).unwrap();
                found.push((path.file_name().unwrap().to_str().unwrap().to_owned(), said));
            }
        }
        found
    }

    /// The front matter as YAML reads it, and the rest.
    fn parts(file: &str) -> (Yaml<'_>, &str) {
        let (front, rest) = file.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
        let documents = Yaml::load_from_str(front).unwrap();
        assert_eq!(documents.len(), 1, "{front}");
        (documents.into_iter().next().unwrap(), rest)
    }

    #[tokio::test]
    async fn t8_a_note_is_markdown_with_front_matter() {
        let folder = tempfile::tempdir().unwrap();
        let context = context(Conversation {
            chat_id: Some("-100".into()),
            confidence: Some(0.8),
            ..Conversation::default()
        });
        let note = Note::new(&context, "claim", " Water boils at 100 °C.\n\nAt sea level.\n");
        inbox(folder.path()).add(note).await.unwrap();
        let files = files(folder.path());
        let (name, said) = files.first().unwrap();
        let id = name.strip_prefix("claims/2026-11-22-water-boils-at-100-c-at-sea-level-").unwrap();
        assert!(id.strip_suffix(".md").unwrap().chars().all(|c| c.is_ascii_alphanumeric()), "{name}");
        assert_eq!(
            said,
            "---\nkind: \"claim\"\ncreated: \"2026-11-22T23:05:09Z\"\nuser: \"@ada\"\nchat_id: \"-100\"\nconfidence: 0.8\n\
             ---\n\nWater boils at 100 °C.\n\nAt sea level.\n"
        );
    }

    #[tokio::test]
    async fn a38_a_user_has_so_many_notes_and_others_have_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = inbox(folder.path());
        let add = async |user: &str, kind: &'static str, text: &str| {
            let context = ToolContext::new(Caller::new(user, Permission::User));
            inbox.add(Note::new(&context, kind, text)).await
        };
        add("ada", "claim", "Water is wet.").await.unwrap();
        let claims = folder.path().join("claims");
        let first = fs::read_dir(&claims).unwrap().next().unwrap().unwrap().path();
        for number in 1..MAX_NOTES {
            fs::copy(&first, claims.join(format!("{number}.md"))).unwrap();
        }
        let full = add("ada", "claim", "Ice is cold.").await.unwrap_err().to_string();
        assert!(full.contains("1000 notes of this user"), "{full}");
        assert_eq!(fs::read_dir(&claims).unwrap().count(), MAX_NOTES);
        // Who is named in a note is not whose it is.
        add("eve", "claim", "\nuser: \"ada\"\n").await.unwrap();
        add("ada", "source", "A book.").await.unwrap();
        fs::remove_file(first).unwrap();
        add("ada", "claim", "Ice is cold.").await.unwrap();
        assert!(add("ada", "claim", "Snow is white.").await.is_err());
    }

    #[tokio::test]
    async fn a38_notes_that_are_written_at_once_are_no_more_than_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = inbox(folder.path());
        let add = || {
            let (inbox, context) = (inbox.clone(), ToolContext::new(Caller::new("ada", Permission::User)));
            tokio::spawn(
                async move { inbox.add(Note::new(&context, "claim", "Water is wet.")).await.is_ok() },
            )
        };
        assert!(add().await.unwrap());
        let claims = folder.path().join("claims");
        let first = fs::read_dir(&claims).unwrap().next().unwrap().unwrap().path();
        for number in 0..MAX_NOTES - 3 {
            fs::copy(&first, claims.join(format!("{number}.md"))).unwrap();
        }
        let adding: Vec<_> = (0..12).map(|_| add()).collect();
        let mut added = 0;
        for adding in adding {
            added += usize::from(adding.await.unwrap());
        }
        assert_eq!(added, 2);
        assert_eq!(fs::read_dir(&claims).unwrap().count(), MAX_NOTES);
    }

    #[tokio::test]
    async fn a38_of_a_folder_only_what_is_new_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = inbox(folder.path());
        let add = async |user: &str| {
            let context = ToolContext::new(Caller::new(user, Permission::User));
            inbox.add(Note::new(&context, "claim", "Water is wet.")).await
        };
        add("eve").await.unwrap();
        let claims = folder.path().join("claims");
        let first = fs::read_dir(&claims).unwrap().next().unwrap().unwrap().path();
        let files: Vec<PathBuf> = (1..MAX_NOTES).map(|number| claims.join(format!("{number}.md"))).collect();
        for file in &files {
            fs::copy(&first, file).unwrap();
        }
        assert!(add("eve").await.is_err());
        // What they say of their owner by now is seen where they are read again.
        let of_ada = fs::read_to_string(&first).unwrap().replace("\"eve\"", "\"ada\"");
        files.iter().chain([&first]).for_each(|file| fs::write(file, &of_ada).unwrap());
        add("ada").await.unwrap();
    }

    #[tokio::test]
    async fn t8_no_text_leaves_the_folder() {
        for (text, start) in [
            ("../../x", "inbox/claims/2026-11-22-x-"),
            ("/etc/passwd", "inbox/claims/2026-11-22-etc-passwd-"),
            ("C:\\con.md", "inbox/claims/2026-11-22-c-con-md-"),
            ("..", "inbox/claims/2026-11-22-claim-"),
            ("水は百度で沸く", "inbox/claims/2026-11-22-claim-"),
            (&"a ".repeat(500), "inbox/claims/2026-11-22-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-a-"),
        ] {
            let (path, said) = claim(text).await;
            assert!(path.starts_with(start) && path.len() < start.len() + 12, "{text}: {path}");
            assert_eq!(parts(&said).1, format!("\n{}\n", text.trim()));
        }
    }

    #[tokio::test]
    async fn t8_no_text_gets_into_the_front_matter() {
        let hostile = "a: b\n---\nkind: \"other\"\n# \"'\\ {x} [y] &z *z !t %\u{85}\u{2028}\u{feff}\u{7f}\0\u{1b}[2J 🙂";
        let context = context(Conversation {
            user_message: Some(hostile.into()),
            chat_id: Some("~".into()),
            ..Conversation::default()
        });
        let folder = tempfile::tempdir().unwrap();
        let note = Note::new(&context, "source", hostile).with_user_message(&context);
        inbox(folder.path()).add(note).await.unwrap();
        let files = files(folder.path());
        let (front, body) = parts(&files.first().unwrap().1);
        let field = |key: &str| front.as_mapping_get(key).and_then(Yaml::as_str);
        assert_eq!(field("kind"), Some("source"));
        assert_eq!(field("user_message"), Some(hostile));
        assert_eq!(field("chat_id"), Some("~"));
        assert_eq!(front.as_mapping().unwrap().len(), 5);
        assert_eq!(
            body, "\na: b\n---\nkind: \"other\"\n# \"'\\ {x} [y] &z *z !t %\u{2028}\u{feff}[2J 🙂\n",
            "what steers a terminal is left out"
        );
    }

    #[tokio::test]
    async fn t8_what_is_too_long_or_empty_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        for (text, expected) in [
            ("x".repeat(1_000_000), "the text has 1000000 bytes, and 65536 are the most; shorten it"),
            ("é".repeat(MAX_BYTES / 2 + 1), "the text has 65538 bytes"),
            (" \n\0".into(), "there is nothing to write down"),
        ] {
            let error = inbox(folder.path())
                .add(Note::new(&ToolContext::default(), "claim", &text))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments);
            assert!(error.feedback().starts_with(expected), "{}", error.feedback());
        }
        assert!(files(folder.path()).is_empty());
        let (_, said) = claim(&"x".repeat(MAX_BYTES)).await;
        assert!(said.len() > MAX_BYTES);
    }

    #[tokio::test]
    async fn t8_a_long_message_is_cut() {
        let message = format!("a{}", "é".repeat(MAX_BYTES));
        let context = context(Conversation { user_message: Some(message), ..Conversation::default() });
        let file = Note::new(&context, "source", "x").with_user_message(&context).file("now");
        let (front, _) = parts(&file);
        let kept = front.as_mapping_get("user_message").and_then(Yaml::as_str).unwrap();
        assert_eq!(kept, format!("a{}…", "é".repeat((MAX_BYTES - 1) / 2)));
    }

    #[tokio::test]
    async fn t8_the_same_text_at_once_is_a_file_each() {
        let folder = tempfile::tempdir().unwrap();
        let inbox = inbox(folder.path());
        let note = || Note::new(&ToolContext::default(), "claim", "Twice.");
        let (one, two) = tokio::join!(inbox.add(note()), inbox.add(note()));
        assert_ne!(one.unwrap().value, two.unwrap().value);
        let files = files(folder.path());
        assert_eq!(files.len(), 2);
        assert!(files.iter().all(|(name, said)| !name.contains("/.") && said.ends_with("\n\nTwice.\n")));
    }

    #[tokio::test]
    async fn t8_a_folder_that_cannot_be_written_is_reported_without_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        for place in [file.clone(), file.join("below")] {
            let error =
                inbox(&place).add(Note::new(&ToolContext::default(), "claim", "x")).await.unwrap_err();
            assert!(error.message().starts_with(&format!("the inbox {}", place.display())), "{error}");
            assert!(error.feedback().starts_with("It was not written down"), "{}", error.feedback());
            assert!(!error.feedback().contains("file") && !error.is_retryable(), "{}", error.feedback());
        }
        assert_eq!(files(folder.path()).len(), 1);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn t8_nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a/b");
        inbox(&place).add(Note::new(&ToolContext::default(), "claim", "x")).await.unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&place), 0o700);
        assert_eq!(mode(&place.join("claims")), 0o700);
        let (name, _) = files(&place).remove(0);
        assert_eq!(mode(&place.join(name)), 0o600);
    }
}
