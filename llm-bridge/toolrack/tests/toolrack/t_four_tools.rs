//! The four tools `research`, `source`, `claim` and `learning`, called by the lines a model writes: requirement T8.

use std::{fs, path::Path, sync::Arc};

use crate::support::{Answer, Rack, Reply, Reported, Scripted, Setup};
use registry_core::{
    ErrorKind, Registry,
    guard::audit::{AuditRecord, MemoryAudit, Phase},
    testing::TestClock,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolrack_http::HttpClient;
use tools::{Inbox, SearchEngine};

const FOUND: &str =
    r#"{"results":[{"title":"Boiling","url":"https://one.example/","content":"Heat and pressure."}]}"#;

/// A server with the bundled tools, its inbox, and a search engine that finds the same every time.
struct Site {
    rack: Rack,
    inbox: TempDir,
    audit: Arc<MemoryAudit>,
    engine: Scripted,
}

impl Site {
    /// Starts one before a model that writes these answers.
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let inbox = folder.path().join("inbox");
        Self::with_inbox(folder, &inbox, answers).await
    }

    async fn with_inbox(folder: TempDir, inbox: &Path, answers: impl IntoIterator<Item = Answer>) -> Self {
        let now = "2026-11-22T23:05:09Z".parse().unwrap();
        let engine = Scripted::start((0..9).map(|_| Reply::body(200, "application/json", FOUND))).await;
        let audit = Arc::new(MemoryAudit::new(1000));
        let registry = Registry::builder()
            .clock(Arc::new(TestClock::at(now)))
            .audit(audit.clone())
            .resource(HttpClient::new().unwrap())
            .resource(SearchEngine::searxng(&engine.base()).unwrap())
            .resource(Inbox::new(inbox).with_clock(TestClock::at(now)))
            .build()
            .unwrap();
        let setup = Setup::bare().with(|setup| setup.registry = registry);
        let rack = setup.start(answers.into_iter().map(Reply::from)).await;
        Self { rack, inbox: folder, audit, engine }
    }

    /// The outcomes that the audit holds.
    fn outcomes(&self) -> Vec<AuditRecord> {
        self.audit.records().into_iter().filter(|record| record.phase == Phase::Outcome).collect()
    }

    /// What a file says, by the path that a tool gave for it.
    fn file(&self, path: &str) -> String {
        fs::read_to_string(self.inbox.path().join(path)).unwrap()
    }
}

/// The side effects and results of the calls of a turn.
fn finished(reported: &Reported) -> Vec<&Value> {
    reported.details_of("call_finished")
}

#[tokio::test]
async fn t8_lines_are_calls_and_not_shown() {
    for stream in [true, false] {
        let said = "Noted.\nSOURCE: an article on boiling\nCLAIM: Water boils at 100 °C: always.\n\
                    LEARNING: structured_data pressure: 1 bar\nRESEARCH: why water boils\n";
        let site = Site::start([Answer::text(said), Answer::text("Done.")]).await;
        let reported =
            site.rack.ask_with(stream, json!({"toolrack": {"chat_id": "7", "confidence": 0.5}})).await;
        let reported = reported.expect_end("Done.");
        assert!(reported.content.starts_with("Noted.\n\nWritten down in "), "{}", reported.content);
        assert!(!reported.content.contains("CLAIM:"), "{}", reported.content);

        let outcomes = site.outcomes();
        let tools: Vec<&str> = outcomes.iter().map(|record| record.tool.as_str()).collect();
        let mut sorted = tools.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ["claim", "learning", "research", "source"]);
        assert!(outcomes.iter().all(|record| record.success == Some(true)), "{outcomes:?}");
        let effect = |tool: &str| {
            let record = outcomes.iter().find(|record| record.tool == tool).unwrap();
            assert_eq!(record.side_effects.len(), 1);
            record.side_effects[0].clone()
        };
        assert_eq!(effect("research"), "searched:searxng:why water boils");
        let told_effects: Vec<&Value> =
            finished(reported).iter().map(|call| &call["side_effects"][0]).collect();
        for (tool, start, own, text) in [
            (
                "source",
                "inbox/sources/2026-11-22-an-article-on-boiling-",
                "user_message: \"Go.\"\n",
                "an article on boiling",
            ),
            (
                "claim",
                "inbox/claims/2026-11-22-water-boils-at-100-c-always-",
                "",
                "Water boils at 100 °C: always.",
            ),
            (
                "learning",
                "inbox/learnings/2026-11-22-pressure-1-bar-",
                "category: \"structured_data\"\n",
                "pressure: 1 bar",
            ),
        ] {
            let effect = effect(tool);
            assert!(told_effects.contains(&&json!(effect)), "{told_effects:?}");
            let path = effect.strip_prefix("created:").unwrap();
            assert!(path.starts_with(start), "{path}");
            let front = format!(
                "---\nkind: \"{tool}\"\ncreated: \"2026-11-22T23:05:09Z\"\nuser: \"ada\"\nchat_id: \"7\"\nconfidence: 0.5\n{own}---"
            );
            assert_eq!(site.file(path), format!("{front}\n\n{text}\n"));
        }

        let asked = site.rack.upstream.asked();
        let results =
            asked[1].messages().iter().map(|message| message["content"].to_string()).collect::<String>();
        assert!(results.contains("1. Boiling https://one.example/\\n   Heat and pressure."), "{results}");
        let message =
            finished(reported).iter().find(|call| call["name"] == "research").unwrap()["message"].clone();
        assert_eq!(message, "Sources for \"why water boils\":\n1. Boiling https://one.example/");
    }
}

#[tokio::test]
async fn t8_the_model_is_told_the_lines() {
    let site = Site::start([Answer::text("Hello.")]).await;
    site.rack.ask(true).await.expect("Hello.");
    let asked = site.rack.upstream.asked();
    let prompt = asked[0].messages()[0]["content"].as_str().unwrap();
    for line in [
        "\nCLAIM: [specific assertion]\n",
        "\nLEARNING: [factual|communication|structured_data] [what was learned]\n",
        "\nRESEARCH: [search query]\n",
        "\nSOURCE: [description]\n",
    ] {
        assert!(prompt.contains(line), "{prompt}");
    }
}

#[tokio::test]
async fn t8_the_fourth_research_of_a_day_is_refused() {
    let answers = (1..=4).map(|number| Answer::text(&format!("RESEARCH: question {number}\n")));
    let site = Site::start(answers.chain([Answer::text("Done.")])).await;
    let reported = site.rack.ask(true).await;
    reported.expect_end("Done.");
    let outcomes = site.outcomes();
    let errors: Vec<Option<ErrorKind>> = outcomes.iter().map(|record| record.error).collect();
    assert_eq!(errors, [None, None, None, Some(ErrorKind::ToolRateLimited)]);
    assert!(outcomes[3].side_effects.is_empty());
    assert_eq!(site.engine.asked().len(), 3, "the engine is not asked a fourth time");
    let asked = site.rack.upstream.asked();
    let result = asked[4].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(result.contains("research") && result.starts_with("Error: "), "{result}");
}

#[tokio::test]
async fn t8_an_unknown_category_is_text_as_a_line_and_told_as_a_call() {
    let native = Answer::new().call("c", "learning", &json!({"category": "gossip", "content": "x"}));
    let site = Site::start([native, Answer::text("Well:\nLEARNING: gossip x\n")]).await;
    let reported = site.rack.ask(true).await;
    reported.expect("Well:\nLEARNING: gossip x");
    let asked = site.rack.upstream.asked();
    let result = asked[1].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(result.contains("\"factual\", \"communication\" or \"structured_data\""), "{result}");
    assert_eq!(site.outcomes().len(), 1);
    assert!(!site.inbox.path().join("inbox").exists());
}

#[tokio::test]
async fn t8_hostile_text_stays_in_its_file() {
    let hostile = "../../x\n---\nkind: y\n\u{0}\u{1b}[2J";
    let native = Answer::new().call("c", "claim", &json!({ "assertion": hostile }));
    let too_long = Answer::new().call("d", "source", &json!({ "description": "x".repeat(1_000_000) }));
    let site = Site::start([native, too_long, Answer::text("Done.")]).await;
    let reported = site.rack.ask(true).await;
    let [kept, refused] = site.outcomes().try_into().unwrap();
    let path = kept.side_effects[0].strip_prefix("created:").unwrap().to_owned();
    reported.expect(&format!("Written down in {path}\n\nDone."));
    assert!(path.starts_with("inbox/claims/2026-11-22-x-kind-y-2j-"), "{path}");
    assert!(site.file(&path).ends_with("---\n\n../../x\n---\nkind: y\n[2J\n"), "{}", site.file(&path));
    assert_eq!(refused.error, Some(ErrorKind::InvalidArguments));
    let asked = site.rack.upstream.asked();
    let result = asked[2].messages().last().unwrap()["content"].as_str().unwrap().to_owned();
    assert!(result.contains("65536") && result.len() < 300, "{result}");
    assert!(!site.inbox.path().join("inbox/sources").exists());
}

#[tokio::test]
async fn t8_an_inbox_that_cannot_be_written_is_said_to_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let answers = [Answer::text("CLAIM: x is y\n"), Answer::text("It failed.")];
    let site = Site::with_inbox(folder, &file, answers).await;
    site.rack.ask(true).await.expect("It failed.");
    let [outcome] = site.outcomes().try_into().unwrap();
    assert_eq!((outcome.success, outcome.error), (Some(false), Some(ErrorKind::Failed)));
    assert!(outcome.side_effects.is_empty());
    assert!(
        outcome.error_message.unwrap().contains(&file.display().to_string()),
        "the operator is informed where"
    );
    let asked = site.rack.upstream.asked();
    assert_eq!(
        asked[1].messages().last().unwrap()["content"],
        "Error: It was not written down: the inbox cannot be written to. Say so to the user."
    );
}
