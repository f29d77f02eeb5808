//! What tools show and ask, in each API: requirement B19.

use std::sync::Arc;

use futures_util::stream;
use registry_core::{Audio, Content, File, Image, Markdown, Registry, Table, ToolPolicy, ToolResult};
use serde_json::json;
use tokio::sync::Notify;

use super::front::{FRONTS, Front};
use crate::support::{Answer, Rack, Reply, Setup, within};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nbytes";
const WAV: &[u8] = b"RIFF\x04\0\0\0WAVE";

fn call(name: &str) -> Reply {
    Answer::new().call("c", name, &json!({})).into()
}

/// The names and addresses of the files in a text.
fn links(text: &str) -> Vec<(&str, &str)> {
    let pieces: Vec<&str> = text.split("](").collect();
    let pairs = pieces.windows(2).map(|pair| (pair[0].rsplit('['), pair[1].split(')')));
    pairs.map(|(mut names, mut addresses)| (names.next().unwrap(), addresses.next().unwrap())).collect()
}

/// What the model was told last.
fn told(rack: &Rack) -> String {
    rack.upstream.asked().last().unwrap().messages().last().unwrap().to_string()
}

#[tokio::test]
async fn b19_each_api_shows_every_kind_of_part_and_the_model_gets_what_it_can_use() {
    for front in FRONTS {
        let setup = Setup::bare().plain_tool("show", ToolPolicy::new(), |_| async {
            let parts = [
                Content::from(Image::new(PNG)?),
                Audio::new(WAV)?.into(),
                Table::new(["city", "degrees"]).row(("Oslo", 3)).into(),
                Markdown::new("**Bold**").into(),
                File::new("report.csv", "a,b\n").into(),
            ];
            Ok(ToolResult { content: parts.into(), ..ToolResult::new("shown") })
        });
        let rack = setup.start([call("show"), Reply::text("There you are.")]).await;
        let text = front.ask(&rack, &vec!["Go.".to_owned()]).await;
        let links = links(&text);
        let names: Vec<&str> = links.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["image.png", "sound.wav", "report.csv"], "{front:?}: {text}");
        assert!(text.contains("![image.png]("), "{front:?}: {text}");
        for shown in ["| city | degrees |\n| --- | --- |\n| Oslo | 3 |\n\n**Bold**", "There you are."] {
            assert!(text.contains(shown), "{front:?}: {shown}: {text}");
        }
        for ((name, address), bytes) in links.iter().zip([PNG, WAV, b"a,b\n"]) {
            let file = within(rack.client.get(*address).send()).await.unwrap();
            assert_eq!(file.bytes().await.unwrap(), bytes, "{front:?}: {name}");
        }
        let told = told(&rack);
        for known in ["shown", "city,degrees", "**Bold**", "audio/x-wav", "text/csv"] {
            assert!(told.contains(known), "{front:?}: {known}: {told}");
        }
    }
}

#[tokio::test]
async fn b19_each_api_has_the_pieces_of_a_result_as_they_come() {
    for front in FRONTS {
        let go_on = Arc::new(Notify::new());
        let waits = Arc::clone(&go_on);
        let setup = Setup::bare().plain_tool("write", ToolPolicy::new(), move |context| {
            let waits = Arc::clone(&waits);
            async move {
                let pieces = stream::unfold(0, move |number| {
                    let waits = Arc::clone(&waits);
                    async move {
                        if number == 1 {
                            waits.notified().await;
                        }
                        let piece = ["Once ", "upon a time"].get(number)?;
                        Some(((*piece).to_owned(), number + 1))
                    }
                });
                ToolResult::of_stream(&context, pieces).await
            }
        });
        let rack = setup.start([call("write"), Reply::text("The end.")]).await;
        let (path, mut body) = front.request(&vec!["Go.".to_owned()]);
        let path = match front {
            Front::Gemini => path.replace("generateContent", "streamGenerateContent?alt=sse"),
            _ => {
                body["stream"] = true.into();
                path.to_owned()
            }
        };
        let mut reply = within(rack.client.post(rack.url(&path)).json(&body).send()).await.unwrap();
        let mut read = String::new();
        while !read.contains("Once ") {
            let piece = within(reply.chunk()).await.unwrap().unwrap_or_else(|| panic!("{front:?}: {read}"));
            read.push_str(std::str::from_utf8(&piece).unwrap());
        }
        // The tool waits, so the first piece has come alone.
        assert!(!read.contains("upon a time") && rack.upstream.asked().len() == 1, "{front:?}: {read}");
        go_on.notify_one();
        while let Some(piece) = within(reply.chunk()).await.unwrap() {
            read.push_str(std::str::from_utf8(&piece).unwrap());
        }
        assert!(read.contains("upon a time") && read.contains("The end."), "{front:?}: {read}");
        assert!(told(&rack).contains("Once upon a time"), "{front:?}: the model has the whole");
    }
}

#[tokio::test]
async fn b19_each_api_asks_and_the_next_message_is_the_answer() {
    for front in FRONTS {
        let setup = Setup::bare().with(|setup| {
            setup.registry = Registry::builder().without_compiled().build().unwrap();
        });
        let setup = setup.plain_tool("balance", ToolPolicy::new(), |context| async move {
            let account = context.ask("Which account?", ["Savings", "Joint"]).await?;
            Ok(ToolResult::new(format!("{account}: 40 EUR")))
        });
        let replies = [call("balance"), Reply::text("Which?"), call("balance"), Reply::text("Done.")];
        let rack = setup.start(replies).await;
        let mut said = vec!["Go.".to_owned()];
        let asked = front.ask(&rack, &said).await;
        let question = "Which account? 1. Savings 2. Joint";
        assert!(asked.contains(question) && asked.ends_with("Which?"), "{front:?}: {asked}");
        said.extend([asked, "2".to_owned()]);
        let answered = front.ask(&rack, &said).await;
        assert!(answered.ends_with("Done."), "{front:?}: {answered}");
        assert!(told(&rack).contains("Joint: 40 EUR"), "{front:?}: {}", told(&rack));
    }
}
