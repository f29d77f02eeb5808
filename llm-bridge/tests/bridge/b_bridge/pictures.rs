//! Pictures that tools return, on their way to the model: row G12.

use std::{io::Cursor, time::Instant};

use image::{DynamicImage, ImageFormat, RgbImage};
use llm_bridge::turn::{ModelSettings, Models, ToolStyle};
use registry_core::{
    Content, ToolPolicy, ToolResult,
    store::{ConversationLimits, Conversations},
};
use serde_json::{Value, json};

use crate::support::{Act, Answer, Rack, Reply, Scripted, Setup, Site, client_tool, event, user};

/// A picture in PNG and Base64; another for each number.
fn png(number: u8, width: u32, height: u32) -> String {
    encoded(&RgbImage::from_pixel(width, height, image::Rgb([number, 0, 99])).into(), ImageFormat::Png)
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> String {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    base64(bytes.get_ref())
}

/// Written by hand, so that no other reading of it can hide a fault.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let all = three.iter().chain([&0, &0]).take(3).fold(0, |all, byte| all << 8 | usize::from(*byte));
        for at in 0..4 {
            let digit = char::from(DIGITS[all >> (18 - 6 * at) & 63]);
            text.push(if at <= three.len() { digit } else { '=' });
        }
    }
    text
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |digit: u8| match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.trim_end_matches('=').bytes().map(value).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let all =
            four.iter().chain([&0, &0, &0]).take(4).fold(0_u32, |all, digit| all << 6 | u32::from(*digit));
        all.to_be_bytes().into_iter().skip(1).take(four.len() - 1)
    });
    bytes.collect()
}

fn image(data: String) -> Content {
    Content::Image { data, mime_type: "image/png".into() }
}

/// With `camera(number)`, which has a text and a picture, and `clock`, which has a text.
fn with_camera() -> Setup {
    let schema = json!({"type": "object", "properties": {"number": {"type": "integer"}}});
    Setup::bare()
        .tool("camera", schema, ToolPolicy::new(), |_, arguments| async move {
            let number = u8::try_from(arguments["number"].as_u64().unwrap()).unwrap();
            Ok(ToolResult::new(format!("camera {number}")).with_content(image(png(number, 40, 30))))
        })
        .plain_tool("clock", ToolPolicy::new(), |_| async { Ok(ToolResult::new("noon")) })
}

fn look(id: &str, number: u32) -> Answer {
    Answer::new().call(id, "camera", &json!({"number": number}))
}

fn label(place: u32, id: &str) -> String {
    format!(
        "[picture {place}, returned by the tool `camera` in the result of call `{id}`, not sent by the user]"
    )
}

fn words(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn shown(data: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}})
}

fn behind(text: &str, place: u32) -> String {
    format!("{text}\n[picture {place}: in the message after the results]")
}

/// How many pictures a request has.
fn pictures(asked: &crate::support::Asked) -> usize {
    asked.text.matches("data:image/").count()
}

const NO_SIGHT: &str =
    "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj";

#[tokio::test]
async fn g12_pictures_of_parallel_calls_stand_behind_all_results_of_their_round() {
    for stream in [true, false] {
        let calls = look("c1", 1).call("c2", "clock", &json!({})).call("c3", "camera", &json!({"number": 3}));
        let rack = with_camera().start([calls.into(), look("c4", 4).into(), Reply::text("Seen.")]).await;
        rack.ask(stream).await.expect_end("Seen.");
        let asked = rack.upstream.asked();
        let messages = asked[2].messages();
        let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "tool", "tool", "user", "assistant", "tool", "user"]);
        let ids: Vec<&str> = messages[1]["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|call| call["id"].as_str().unwrap())
            .collect();
        let tool = |id: &str, name: &str, text: String| json!({"role": "tool", "tool_call_id": id, "name": name, "content": text});
        assert_eq!(
            messages[2..6],
            [
                tool(ids[0], "camera", behind("camera 1", 1)),
                tool(ids[1], "clock", "noon".into()),
                tool(ids[2], "camera", behind("camera 3", 2)),
                json!({"role": "user", "content": [
                    words(&label(1, ids[0])), shown(&png(1, 40, 30)), words(&label(2, ids[2])), shown(&png(3, 40, 30)),
                ]}),
            ]
        );
        assert_eq!(messages[8]["content"][1], shown(&png(4, 40, 30)));
        // What has been sent once stays as it was.
        let before = asked[1].raw("messages");
        assert!(asked[2].raw("messages").starts_with(before.strip_suffix(']').unwrap()));
    }
}

#[tokio::test]
async fn g12_ollama_gets_pictures_in_its_own_field() {
    let upstream =
        Scripted::start_as(Site::of_kind("ollama", &["m"]), [look("c1", 7).into(), Reply::text("Seen.")])
            .await;
    let base = upstream.base();
    let rack = with_camera().start_before(upstream, &base).await;
    rack.ask(true).await.expect_end("Seen.");
    let asked = &rack.upstream.asked()[1];
    assert_eq!(asked.path, "/api/chat");
    let [.., result, last] = asked.messages().as_slice() else { panic!() };
    assert_eq!((&result["role"], &result["content"]), (&json!("tool"), &json!(behind("camera 7", 1))));
    assert_eq!(result.get("images"), None, "its renderers leave out pictures of tools");
    let id = result["tool_call_id"].as_str().unwrap();
    assert_eq!(*last, json!({"role": "user", "content": label(1, id), "images": [png(7, 40, 30)]}));
}

#[tokio::test]
async fn g12_a_model_that_is_told_its_tools_in_the_prompt_sees_pictures_beside_the_results() {
    let calls = "<tool_call>\n{\"name\": \"camera\", \"arguments\": {\"number\": 1}}\n</tool_call>\n\
                 <tool_call>\n{\"name\": \"camera\", \"arguments\": {\"number\": 2}}\n</tool_call>";
    let setup = with_camera().chat(|chat| chat.tool_style = ToolStyle::Prompt);
    let rack = setup.start([Reply::text(calls), Reply::text("Seen.")]).await;
    rack.ask(true).await.expect_end("Seen.");
    let asked = &rack.upstream.asked()[1];
    let roles: Vec<&Value> = asked.messages().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let content = asked.messages()[3]["content"].as_array().unwrap();
    let results = content[0]["text"].as_str().unwrap();
    assert!(results.contains("<tool_response>") && results.contains("camera 2"), "{results}");
    assert_eq!(content[1], shown(&png(1, 40, 30)));
    assert!(content[2]["text"].as_str().unwrap().starts_with("[picture 2, returned by the tool `camera`"));
    assert_eq!(content[3..], [shown(&png(2, 40, 30))]);
}

/// What servers say of pictures that their model does not see.
#[tokio::test]
async fn g12_a_model_without_sight_gets_descriptions_from_then_on() {
    let in_stream = |message: &str| Reply::stream([event(&json!({"error": {"message": message}}))]);
    let in_lines =
        |message: &str| Reply::stream([Act::Send(format!("{}\n", json!({"error": message})).into_bytes())]);
    for refusal in [
        Reply::error(500, NO_SIGHT),
        in_stream(NO_SIGHT),
        in_lines("this model is missing data required for image input"),
        Reply::error(400, "Qwen/Qwen3-8B is not a multimodal model None"),
        Reply::error(400, "At most 0 image(s) may be provided in one prompt."),
        Reply::json(400, &json!({"error": "Model does not support images. Please use a model that does."})),
        Reply::error(400, "Only 'text' content type is supported."),
    ] {
        let rack = with_camera().start([look("c1", 1).into(), refusal, Reply::text("Dark.")]).await;
        rack.ask(true).await.expect_end("Dark.");
        let asked = rack.upstream.asked();
        assert_eq!(asked.iter().map(pictures).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(asked[2].messages().len(), 3);
        let length = from_base64(&png(1, 40, 30)).len();
        let described = format!(
            "camera 1\n[picture, image/png, 40 x 30 pixels, {length} bytes; not shown: this model gets no pictures]"
        );
        assert_eq!(asked[2].messages()[2]["content"], described);
        assert!(asked[2].body.get("tools").is_some(), "that is not about tools");

        rack.upstream.push(look("c2", 2));
        rack.upstream.push(Reply::text("Dark."));
        rack.ask(false).await.expect_end("Dark.");
        let asked = rack.upstream.asked();
        assert_eq!(asked[3..].iter().map(pictures).collect::<Vec<_>>(), [0, 0], "remembered");
        // Another model of the same server may well see.
        rack.upstream.push(look("c3", 3));
        rack.upstream.push(Reply::text("Bright."));
        rack.ask_with(false, json!({"model": "other"})).await.expect_end("Bright.");
        assert_eq!(pictures(rack.upstream.asked().last().unwrap()), 1);
    }
}

#[tokio::test]
async fn g12_a_refusal_of_pictures_is_remembered_only_after_descriptions_have_helped() {
    let script = [look("c1", 1).into(), Reply::error(500, NO_SIGHT), Reply::error(500, "out of memory")];
    let rack = with_camera().start(script).await;
    assert!(!rack.ask(true).await.failure().is_empty());
    // The turn goes on behind its result.
    rack.upstream.push(Reply::text("Bright."));
    rack.ask(true).await.expect_end("Bright.");
    assert_eq!(pictures(rack.upstream.asked().last().unwrap()), 1);
}

#[tokio::test]
async fn g12_a_server_that_takes_few_pictures_gets_the_last_ones() {
    let refusal = || Reply::error(400, "At most 2 image(s) may be provided in one prompt.");
    let three =
        look("c1", 1).call("c2", "camera", &json!({"number": 2})).call("c3", "camera", &json!({"number": 3}));
    let rack = with_camera().start([three.into(), refusal(), Reply::text("Two.")]).await;
    rack.ask(true).await.expect_end("Two.");
    let asked = rack.upstream.asked();
    assert_eq!((pictures(&asked[1]), pictures(&asked[2])), (3, 2));
    let last = asked[2].messages().last().unwrap();
    assert_eq!(
        (&last["content"][1], &last["content"][3]),
        (&shown(&png(2, 40, 30)), &shown(&png(3, 40, 30)))
    );
    assert!(
        asked[2].messages()[2]["content"].as_str().unwrap().contains("only the last 2 pictures are shown")
    );
    // Those of the user count there too.
    rack.upstream.push(look("d1", 1).call("d2", "camera", &json!({"number": 2})));
    rack.upstream.push(Reply::text("One."));
    let question = json!({"role": "user", "content": [words("And this?"), shown(&png(9, 8, 8))]});
    rack.ask_with(true, json!({"messages": [question]})).await.expect_end("One.");
    let asked = rack.upstream.asked();
    assert_eq!(asked[4].messages()[0], question);
    assert_eq!(pictures(&asked[4]), 2);
    assert!(asked[4].text.contains("only the last picture is shown"));
}

/// What a person has attached is not left out without a word.
#[tokio::test]
async fn g12_the_users_own_pictures_are_sent_as_they_are() {
    let big = png(5, 2000, 10);
    let question = || json!({"role": "user", "content": [words("What?"), shown(&big)]});
    let rack = with_camera().start([Reply::error(400, NO_SIGHT)]).await;
    let reported = rack.ask_with(true, json!({"messages": [question()]})).await;
    assert!(reported.failure().contains("image input is not supported"), "{reported:?}");
    assert_eq!(rack.upstream.asked().len(), 1);
    assert_eq!(rack.upstream.asked()[0].messages()[0], question());

    // Beside one of a tool: that is described, and the refusal comes again.
    let rack = with_camera()
        .start([look("c1", 1).into(), Reply::error(400, NO_SIGHT), Reply::error(400, NO_SIGHT)])
        .await;
    let reported = rack.ask_with(true, json!({"messages": [question()]})).await;
    assert!(reported.failure().contains("image input is not supported"), "{reported:?}");
    assert_eq!(rack.upstream.asked().iter().map(pictures).collect::<Vec<_>>(), [1, 2, 1]);
}

#[tokio::test]
async fn g12_the_settings_of_a_model_say_whether_it_sees() {
    let set = |pictures| {
        let row = ModelSettings { pictures: Some(pictures), ..ModelSettings::default() };
        let models = Models::try_from(std::collections::BTreeMap::from([("m*".to_owned(), row)])).unwrap();
        with_camera().chat(|chat| chat.models = models)
    };
    let rack = set(false).start([look("c1", 1).into(), Reply::text("Dark.")]).await;
    rack.ask(true).await.expect_end("Dark.");
    assert_eq!(pictures(&rack.upstream.asked()[1]), 0);
    // Then a refusal is a fault that the operator has to know of.
    let rack = set(true).start([look("c1", 1).into(), Reply::error(400, NO_SIGHT)]).await;
    assert!(rack.ask(true).await.failure().contains("mmproj"));
    assert_eq!(rack.upstream.asked().len(), 2);
}

#[tokio::test]
async fn g12_a_turn_shows_the_last_pictures() {
    let setup = with_camera().chat(|chat| chat.limits.max_pictures = 2);
    let looks = [look("c1", 1), look("c2", 2), look("c3", 3)].map(Reply::from);
    let rack = setup.start(looks.into_iter().chain([Reply::text("Seen.")])).await;
    rack.ask(true).await.expect_end("Seen.");
    let asked = rack.upstream.asked();
    assert_eq!(asked.iter().map(pictures).collect::<Vec<_>>(), [0, 1, 2, 2]);
    let first = asked[3].messages()[2]["content"].as_str().unwrap();
    assert!(
        first.contains("40 x 30 pixels") && first.contains("only the last 2 pictures are shown"),
        "{first}"
    );
    assert!(!asked[3].text.contains(&png(1, 40, 30)) && asked[3].text.contains(&png(3, 40, 30)));
}

#[tokio::test]
async fn g12_a_large_picture_is_scaled_and_other_formats_become_ones_that_servers_read() {
    let picture = |width, height, format| {
        encoded(&RgbImage::from_pixel(width, height, image::Rgb([9, 9, 9])).into(), format)
    };
    for (data, mime_type, size, media_type) in [
        (picture(2000, 500, ImageFormat::Png), "image/png", (1568, 392), "image/png"),
        (picture(100, 1700, ImageFormat::Jpeg), "image/jpeg", (92, 1568), "image/jpeg"),
        (picture(20, 10, ImageFormat::WebP), "image/webp", (20, 10), "image/png"),
        (picture(20, 10, ImageFormat::Gif), "image/gif", (20, 10), "image/png"),
    ] {
        let setup = Setup::bare().plain_tool("show", ToolPolicy::new(), move |_| {
            let content = Content::Image { data: data.clone(), mime_type: mime_type.into() };
            async move { Ok(ToolResult::new(Value::Null).with_content(content)) }
        });
        let rack =
            setup.start([Answer::new().call("c", "show", &json!({})).into(), Reply::text("Seen.")]).await;
        rack.ask(true).await.expect_end("Seen.");
        let asked = &rack.upstream.asked()[1];
        assert_eq!(asked.messages()[2]["content"], "[picture 1: in the message after the results]");
        let url = asked.messages()[3]["content"][1]["image_url"]["url"].as_str().unwrap();
        let sent = url.strip_prefix(&format!("data:{media_type};base64,")).unwrap();
        let bytes = from_base64(sent);
        assert!(bytes.len() <= 1 << 20);
        let sent = image::load_from_memory(&bytes).unwrap();
        assert_eq!((sent.width(), sent.height()), size, "{mime_type}");
    }
}

#[tokio::test]
async fn g12_bombs_and_files_are_described_and_texts_are_text() {
    // A GIF that says that it has 65,535 by 65,535 pixels.
    let mut bomb = Cursor::new(Vec::new());
    DynamicImage::from(RgbImage::new(8, 8)).write_to(&mut bomb, ImageFormat::Gif).unwrap();
    let mut bomb = bomb.into_inner();
    bomb[6..10].fill(0xff);
    let (length, bomb) = (bomb.len(), base64(&bomb));
    let content = move |block| serde_json::from_value::<Content>(block).unwrap();
    let setup = Setup::bare().plain_tool("all", ToolPolicy::new(), move |_| {
        let bomb = bomb.clone();
        async move {
            Ok(ToolResult::new("All:")
                .with_content(image(bomb))
                .with_content(image("not base64".into()))
                .with_content(content(json!({"type": "resource", "resource": {"uri": "a:x", "text": "its text"}})))
                .with_content(content(json!({"type": "resource", "resource": {"uri": "a:y", "mimeType": "application/zip", "blob": "UEsDBA=="}})))
                .with_content(content(json!({"type": "resource_link", "uri": "a:z", "name": "z", "mimeType": "text/csv", "size": 12})))
                .with_content(content(json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}))))
        }
    });
    let rack = setup.start([Answer::new().call("c", "all", &json!({})).into(), Reply::text("Ok.")]).await;
    let began = Instant::now();
    rack.ask(true).await.expect_end("Ok.");
    assert!(began.elapsed().as_secs() < 5);
    let asked = &rack.upstream.asked()[1];
    assert_eq!(asked.messages().len(), 3);
    let text = asked.messages()[2]["content"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "All:",
            "its text",
            "[`ay`, application/zip, 4 bytes: shown to the user]",
            "z: a:z (text/csv, 12 bytes)",
            "[`sound.wav`, audio/wav, 3 bytes: shown to the user]",
            &format!(
                "[picture, image/png, 65535 x 65535 pixels, {length} bytes; not shown: it has too many pixels to be scaled]"
            ),
            "[picture, image/png, 7 bytes; not shown: its data is not Base64]",
        ]
    );
}

/// A client's result with a picture, in each API that has such.
#[tokio::test]
async fn g12_pictures_in_results_of_clients_reach_the_model() {
    let data = png(4, 40, 30);
    let url = format!("data:image/png;base64,{data}");
    let arguments = json!({"city": "Oslo"});
    let function = json!({"id": "call_1", "type": "function", "function": {"name": "look", "arguments": arguments.to_string()}});
    let openai = json!({"model": "m", "tools": [client_tool("look")], "messages": [
        user("Look."),
        {"role": "assistant", "content": null, "tool_calls": [function]},
        {"role": "tool", "tool_call_id": "call_1", "content": [words("Seen:"), shown(&data)]},
    ]});
    let source = json!({"type": "base64", "media_type": "image/png", "data": data});
    let anthropic = json!({"model": "m", "max_tokens": 100, "messages": [
        user("Look."),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "look", "input": arguments}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": [
            words("Seen:"), {"type": "image", "source": source},
        ]}]},
    ]});
    let responses = json!({"model": "m", "store": false, "input": [
        user("Look."),
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": arguments.to_string()},
        {"type": "function_call_output", "call_id": "call_1", "output": [
            {"type": "input_text", "text": "Seen:"}, {"type": "input_image", "image_url": url},
        ]},
    ]});
    let gemini = json!({"contents": [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"id": "call_1", "name": "look", "args": arguments}}]},
        {"role": "user", "parts": [{"functionResponse": {
            "id": "call_1", "name": "look", "response": {"output": "Seen:"},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}],
        }}]},
    ]});
    let ollama = json!({"model": "m", "stream": false, "messages": [
        user("Look."),
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"name": "look", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "call_1", "tool_name": "look", "content": "Seen:", "images": [data]},
    ]});
    for (path, body) in [
        ("/v1/chat/completions", openai),
        ("/v1/messages", anthropic),
        ("/v1/responses", responses),
        ("/v1beta/models/m:generateContent", gemini),
        ("/api/chat", ollama),
    ] {
        let rack = Setup::bare().start([Reply::text("A door.")]).await;
        let reply = send(&rack, path, &body).await;
        assert!(reply.contains("A door."), "{path}: {reply}");
        let asked = &rack.upstream.asked()[0];
        let [.., result, last] = asked.messages().as_slice() else { panic!("{path}") };
        assert_eq!(result["content"], behind("Seen:", 1), "{path}");
        assert_eq!((&result["role"], &result["tool_call_id"]), (&json!("tool"), &json!("call_1")), "{path}");
        let label =
            "[picture 1, returned by the tool `look` in the result of call `call_1`, not sent by the user]";
        assert_eq!(*last, json!({"role": "user", "content": [words(label), shown(&data)]}), "{path}");

        // A model without sight gets the same in words.
        let rack = Setup::bare().start([Reply::error(500, NO_SIGHT), Reply::text("I cannot see.")]).await;
        let reply = send(&rack, path, &body).await;
        assert!(reply.contains("I cannot see."), "{path}: {reply}");
        let asked = &rack.upstream.asked()[1];
        let last = asked.messages().last().unwrap();
        let text = last["content"].as_str().unwrap();
        assert!(
            last["role"] == "tool" && text.starts_with("Seen:\n[picture, image/png, 40 x 30 pixels"),
            "{path}: {text}"
        );
    }
}

async fn send(rack: &Rack, path: &str, body: &Value) -> String {
    let reply = rack.client.post(rack.url(path)).json(body).send().await.unwrap();
    let (status, text) = (reply.status(), reply.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    text
}

/// A large picture of a client is scaled too, alike each time, and what is older than the last ones is not looked at.
#[tokio::test]
async fn g12_large_and_many_pictures_of_clients_are_bounded_and_alike_in_each_request() {
    let result = |number: u8| {
        let id = format!("call_{number}");
        let call = json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
        [
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": id, "content": [shown(&png(number, 1700, 4))]}),
        ]
    };
    let mut messages: Vec<Value> = [user("Look.")].into_iter().chain((0..3).flat_map(result)).collect();
    let setup = Setup::bare().chat(|chat| chat.limits.max_pictures = 2);
    let rack = setup.start([Reply::text("One."), Reply::text("Two.")]).await;
    rack.ask_with(false, json!({"messages": messages})).await.expect_end("One.");
    messages.extend([json!({"role": "assistant", "content": "One."}), user("More.")]);
    rack.ask_with(false, json!({"messages": messages})).await.expect_end("Two.");
    let asked = rack.upstream.asked();
    assert_eq!((pictures(&asked[0]), pictures(&asked[1])), (2, 2));
    assert!(asked[0].messages()[2]["content"].as_str().unwrap().contains("1700 x 4 pixels"));
    assert!(!asked[0].text.contains(&png(2, 1700, 4)));
    let before = asked[0].raw("messages");
    assert!(asked[1].raw("messages").starts_with(before.strip_suffix(']').unwrap()));
}

/// The client sends back what it has seen; the pictures that it has not seen are put back.
#[tokio::test]
async fn g12_pictures_of_earlier_turns_are_put_back_as_they_were() {
    let rack =
        with_camera().start([look("c1", 1).into(), Reply::text("A door."), Reply::text("Brown.")]).await;
    rack.ask(true).await.expect_end("A door.");
    let messages = [user("Go."), json!({"role": "assistant", "content": "A door."}), user("Which colour?")];
    rack.ask_with(false, json!({"messages": messages})).await.expect_end("Brown.");
    let asked = rack.upstream.asked();
    assert_eq!((pictures(&asked[1]), pictures(&asked[2])), (1, 1));
    let before = asked[1].raw("messages");
    assert!(asked[2].raw("messages").starts_with(before.strip_suffix(']').unwrap()), "{}", asked[2].text);
}

/// A kept response has as many of the pictures as there is room for, and can be continued.
#[tokio::test]
async fn g12_a_kept_response_is_continued_with_the_pictures_that_there_is_room_for() {
    // What PNG cannot make small: 40 KB in Base64.
    let mut state = 1_u32;
    let grain = RgbImage::from_fn(100, 100, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [_, red, green, blue] = state.to_le_bytes();
        image::Rgb([red, green, blue])
    });
    let grain = encoded(&grain.into(), ImageFormat::Png);
    assert!((38_000..42_000).contains(&grain.len()), "{}", grain.len());
    for (max_response_bytes, kept) in [(4 << 20, 2), (70_000, 1), (30_000, 0)] {
        let limits = ConversationLimits { max_response_bytes, ..ConversationLimits::default() };
        let grain = grain.clone();
        let setup = Setup::bare().plain_tool("grain", ToolPolicy::new(), move |_| {
            let content = image(grain.clone());
            async move { Ok(ToolResult::new("Sand.").with_content(content)) }
        });
        let setup = setup.with(|setup| {
            setup.conversations = Some(Conversations::new(setup.store.clone(), limits));
        });
        let calls =
            Answer::new().call("c1", "grain", &json!({})).call("c2", "grain", &json!({"again": true}));
        let rack = setup.start([calls.into(), Reply::text("Doors."), Reply::text("Brown.")]).await;
        let begun = json!({"model": "m", "input": "Look."});
        let first: Value = serde_json::from_str(&send(&rack, "/v1/responses", &begun).await).unwrap();
        let body = json!({"model": "m", "input": "Which colour?", "previous_response_id": first["id"]});
        send(&rack, "/v1/responses", &body).await;
        let asked = rack.upstream.asked();
        assert_eq!((pictures(&asked[1]), pictures(&asked[2])), (2, kept), "{max_response_bytes}");
        assert!(asked[2].messages()[2]["content"].as_str().unwrap().starts_with("Sand."));
    }
}

/// A count of tokens is of what would be sent.
#[tokio::test]
async fn g12_a_count_has_the_pictures_that_would_be_sent() {
    let source = json!({"type": "base64", "media_type": "image/png", "data": png(4, 40, 30)});
    let body = json!({"model": "m", "messages": [
        user("Look."),
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "image", "source": source}]}]},
    ]});
    let count = async |max_pictures| {
        let rack = Setup::bare().chat(|chat| chat.limits.max_pictures = max_pictures).start([]).await;
        let reply: Value =
            serde_json::from_str(&send(&rack, "/v1/messages/count_tokens", &body).await).unwrap();
        reply["input_tokens"].as_u64().unwrap()
    };
    let (with, without) = (count(8).await, count(0).await);
    assert!(with >= 1000 && without < 100, "{with} {without}");
}
