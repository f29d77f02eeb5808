//! What comes into the inbox, and what does not.

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
    let result = inbox(folder.path()).add(Note::new(&ToolContext::default(), "claim", text)).await.unwrap();
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
        tokio::spawn(async move { inbox.add(Note::new(&context, "claim", "Water is wet.")).await.is_ok() })
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
    let hostile =
        "a: b\n---\nkind: \"other\"\n# \"'\\ {x} [y] &z *z !t %\u{85}\u{2028}\u{feff}\u{7f}\0\u{1b}[2J 🙂";
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
        let error =
            inbox(folder.path()).add(Note::new(&ToolContext::default(), "claim", &text)).await.unwrap_err();
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
        let error = inbox(&place).add(Note::new(&ToolContext::default(), "claim", "x")).await.unwrap_err();
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
