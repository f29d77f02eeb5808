//! Documents in messages reach models of every server.

use base64::Engine;
use llm_bridge::upstream::KINDS;
use serde_json::{Value, json};

use crate::support::{Rack, Reply, Setup};

const TEA: &str = "# Tea\n\nGreen tea is steeped at 75 °C.\n";

fn file(name: &str, media_type: &str, bytes: impl AsRef<[u8]>) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({"type": "file", "file": {"file_data": format!("data:{media_type};base64,{data}"), "filename": name}})
}

fn asking(files: impl IntoIterator<Item = Value>) -> Value {
    let text = json!({"type": "text", "text": "How hot?"});
    let content: Vec<Value> = [text].into_iter().chain(files).collect();
    json!({"messages": [{"role": "user", "content": content}]})
}

async fn bare_of(kind: &str, replies: impl IntoIterator<Item = Reply>) -> Rack {
    Setup::bare().chat(|chat| chat.system_prompt = String::new()).start_of_kind(kind, replies).await
}

/// The content of the last message of a request, and whether a file is in it.
fn content(rack: &Rack, asked: usize) -> (String, bool) {
    let asked = &rack.upstream.asked()[asked];
    match &asked.messages().last().unwrap()["content"] {
        Value::String(text) => (text.clone(), false),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (texts.join("\n"), parts.iter().any(|part| part["type"] == "file"))
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn b14_the_text_of_a_document_reaches_servers_that_take_no_files() {
    for kind in &KINDS {
        let rack = bare_of(kind.id, [Reply::text("75 °C.")]).await;
        let reported = rack.chat(asking([file("tea.md", "text/markdown", TEA)])).await;
        reported.expect("75 °C.");
        assert!(reported.details_of("notice").is_empty(), "{}", kind.id);
        let (text, has_file) = content(&rack, 0);
        match kind.id {
            "toolrack" => assert!(has_file && text == "How hot?", "{text}"),
            id => assert!(!has_file && text == format!("How hot?\ntea.md\n\n{TEA}"), "{id}: {text}"),
        }
    }
}

#[tokio::test]
async fn b14_documents_are_read_by_what_they_are_or_described() {
    let latin = b"<html><body><h1>Tea</h1><p>75 \xb0C</p></body></html>";
    let cases = [
        (file("tea", "text/html", latin), Ok("# Tea\n")),
        (file("tea.csv", "text/csv", "tea,degrees\ngreen,75\n"), Ok("tea,degrees\ngreen,75\n")),
        (file("tea.txt", "text/plain", b"75 \xb0C"), Ok("75 °C")),
        // The reader is a process of the program, which these tests are not.
        (file("tea.pdf", "application/pdf", "%PDF-1.4"), Err("this program reads no PDFs")),
        (
            file("tea.zip", "application/zip", "PK\x03\x04"),
            Err("this program reads no PDFs or office documents"),
        ),
        (file("tea.png", "image/png", "\u{89}PNG"), Err("it is no document")),
        (file("tea", "application/octet-stream", "\0\u{1}"), Err("it is no text")),
        (json!({"type": "file", "file": {"file_id": "f-1"}}), Err("the model server takes no such files")),
    ];
    for (part, expected) in cases {
        let rack = bare_of("llama.cpp", [Reply::text("Hi.")]).await;
        let reported = rack.chat(asking([part.clone()])).await;
        reported.expect("Hi.");
        let (text, has_file) = content(&rack, 0);
        assert!(!has_file, "{text}");
        let notices = reported.details_of("notice");
        match expected {
            Ok(words) => assert!(text.contains(words) && notices.is_empty(), "{part}: {text}"),
            Err(why) => {
                assert!(
                    text.contains("[file") && text.contains(&format!("not shown: {why}")),
                    "{part}: {text}"
                );
                let told = format!("Not sent to the model: `messages[0].parts[1]` described: {why}");
                assert!(notices[0]["message"].as_str().unwrap().starts_with(&told), "{part}: {notices:?}");
            }
        }
    }
}

#[tokio::test]
async fn b14_a_server_that_refuses_documents_gets_their_text_from_then_on() {
    for refusal in [
        "messages[0]: unknown variant `file`, expected one of `text`, `image_url`",
        "unsupported content[].type",
        "Input should be 'text'",
    ] {
        let replies = [Reply::error(400, refusal), Reply::text("75 °C."), Reply::text("Yes.")];
        let rack = bare_of("", replies).await;
        let tea = || asking([file("tea.md", "text/markdown", TEA)]);
        rack.chat(tea()).await.expect("75 °C.");
        rack.chat(tea()).await.expect("Yes.");
        assert_eq!(rack.upstream.asked().len(), 3, "{refusal}: remembered");
        assert!(content(&rack, 0).1, "it may be a hosted one, which reads documents itself");
        assert!(!content(&rack, 1).1 && content(&rack, 1).0.contains("75 °C"));
        assert!(!content(&rack, 2).1 && content(&rack, 2).0.contains("75 °C"));
    }
}

#[tokio::test]
async fn b14_so_many_documents_are_read_and_so_much_of_each() {
    let rack = bare_of("llama.cpp", [Reply::text("Hi.")]).await;
    let long = "green tea ".repeat(150_000);
    let many = (0..16).map(|number| file(&format!("{number}.txt"), "text/plain", format!("tea {number}")));
    let all = [file("older.txt", "text/plain", "oldest")].into_iter().chain(many);
    let all = all.chain([file("long.txt", "text/plain", long)]);
    rack.chat(asking(all)).await.expect("Hi.");
    let (text, _) = content(&rack, 0);
    assert!(
        text.contains(
            "[file `older.txt`, text/plain, 6 bytes; not shown: only the last 16 documents are read]"
        )
    );
    assert!(text.contains("[file `0.txt`") && text.contains("tea 1\n") && text.contains("tea 15"));
    assert!(text.ends_with("[the rest is not shown: the document is too long]") && text.len() < 1_100_000);
}
