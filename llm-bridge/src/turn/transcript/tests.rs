use registry_core::flow::{HasRead, Reads};
use toolrack_apis::{Call, Content, Media, MediaKind, MediaSource, Message, Reasoning, Role, ToolResult};

use super::*;

fn calls(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| Content::Call(Call::new(*id, "f", "{}")).into());
    Message::new(Role::Assistant, calls.collect())
}

fn result(id: &str) -> Message {
    Message::result(ToolResult { call_id: id.into(), ..ToolResult::default() })
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn of(messages: &[Message]) -> Added<'_> {
    Added { messages, found: &[], read: &NOTHING, texts: &[], unfinished: None }
}

static NOTHING: std::sync::LazyLock<HasRead> = std::sync::LazyLock::new(HasRead::default);
const ADA: (&str, &str) = ("default", "ada");

/// Keeps what a turn adds that ends with these calls of the client.
async fn keep(transcripts: &Transcripts, sent: &[Message], client: &[&str], added: &[Message]) {
    keep_of(transcripts, ADA, sent, client, added).await;
}

async fn keep_of(
    transcripts: &Transcripts,
    owner: (&str, &str),
    sent: &[Message],
    client: &[&str],
    added: &[Message],
) {
    let place = transcripts.put_back(owner, "m", &mut sent.to_vec(), Vec::new(), None).await;
    let client = calls(client);
    let client: Vec<&Call> = client.calls().collect();
    let shown = place.shown();
    let (ending, added) = Ending::of(&shown, Some(&client), added, &place);
    transcripts.keep(owner, &place, added.map(of), ending).await;
}

async fn whole(transcripts: &Transcripts, owner: (&str, &str), messages: &[Message]) -> Vec<Message> {
    let mut messages = messages.to_vec();
    transcripts.put_back(owner, "m", &mut messages, Vec::new(), None).await;
    messages
}

#[tokio::test]
async fn b15_a_turn_is_found_by_the_id_of_its_call_and_put_back_for_its_user_alone() {
    let transcripts = Transcripts::default();
    let added = [calls(&["s", "c"]), result("s")];
    keep(&transcripts, &[], &["c"], &added).await;
    let sent = [user("hi"), calls(&["c"]), result("c")];
    let expected = [user("hi"), added[0].clone(), added[1].clone(), result("c")];
    assert_eq!(whole(&transcripts, ADA, &sent).await, expected);
    for owner in [("default", "bob"), ("other", "ada")] {
        assert_eq!(whole(&transcripts, owner, &sent).await, sent);
    }
    let other = [user("hi"), calls(&["x", "y"])];
    assert_eq!(whole(&transcripts, ADA, &other).await, other);
}

#[tokio::test]
async fn b15_a_call_is_put_back_in_the_models_words_in_its_own_conversation_alone() {
    let transcripts = Transcripts::default();
    let called = |arguments: &str| {
        Message::new(Role::Assistant, vec![Content::Call(Call::new("call_1", "f", arguments)).into()])
    };
    let added = called("{\"b\": 1,  \"a\": 2}");
    let place = transcripts.put_back(ADA, "m", &mut vec![user("hi")], Vec::new(), None).await;
    let client: Vec<&Call> = added.calls().collect();
    let messages = [added.clone()];
    let shown = place.shown();
    let (ending, kept) = Ending::of(&shown, Some(&client), &messages, &place);
    transcripts.keep(ADA, &place, kept.map(of), ending).await;
    let sent = |word: &str, arguments: &str| [user(word), called(arguments), result("call_1")];
    let expected = [user("hi"), added, result("call_1")];
    assert_eq!(whole(&transcripts, ADA, &sent("hi", "{\"a\":2,\"b\":1}")).await, expected);
    for other in [sent("hi", "{\"a\":3,\"b\":1}"), sent("ho", "{\"a\":2,\"b\":1}")] {
        assert_eq!(whole(&transcripts, ADA, &other).await, other);
    }
}

#[tokio::test]
async fn a2_what_is_kept_is_put_back_once() {
    let transcripts = Transcripts::default();
    let added = [calls(&["s", "c", "d"]), result("s")];
    keep(&transcripts, &[], &["c", "d"], &added).await;
    let again = [calls(&["c"]), result("c"), calls(&["c"]), result("c")];
    let expected = [added[0].clone(), added[1].clone(), result("c"), calls(&["c"]), result("c")];
    assert_eq!(whole(&transcripts, ADA, &again).await, expected);
}

#[tokio::test]
async fn b13_a_turn_is_found_without_ids_by_what_the_client_sees() {
    let transcripts = Transcripts::default();
    let sent = [user("hi")];
    let added = [calls(&["s", "c"]), result("s")];
    keep(&transcripts, &sent, &["c"], &added).await;
    let went_on = |word: &str, id: &str| [user(word), calls(&[id]), result(id)];
    // The result belongs to the call as it is now.
    let expected = [sent[0].clone(), added[0].clone(), added[1].clone(), result("c")];
    assert_eq!(whole(&transcripts, ADA, &went_on("hi", "call00000")).await, expected);
    assert_eq!(whole(&transcripts, ADA, &went_on("ho", "call00000")).await, went_on("ho", "call00000"));
    // The same question again, without anything that the client does not see.
    keep(&transcripts, &sent, &["d00000000"], &[calls(&["d00000000"])]).await;
    assert_eq!(whole(&transcripts, ADA, &went_on("hi", "call00000")).await, went_on("hi", "call00000"));
    // An id of this server leads to its own turn only.
    keep(&transcripts, &sent, &["e00000000"], &added).await;
    assert_eq!(whole(&transcripts, ADA, &went_on("hi", "d00000000")).await, went_on("hi", "d00000000"));
}

#[tokio::test]
async fn g8_an_answer_that_the_client_has_begun_is_put_back_whole() {
    let transcripts = Transcripts::default();
    let begun = [user("Count."), Message::text(Role::Assistant, "One, ")];
    let place = transcripts.put_back(ADA, "m", &mut begun.to_vec(), Vec::new(), None).await;
    assert_eq!(place.trailing, 1);
    let mut shown = place.shown();
    shown.say("two.");
    let thought = Content::Reasoning(Reasoning { text: "Hm.".into(), seal: None });
    let said = Content::Text("two.".into());
    let added = Message::new(Role::Assistant, vec![thought.into(), said.into()]);
    let messages = [begun[1].clone(), added.clone()];
    transcripts.keep(ADA, &place, Some(of(&messages)), Ending::Answer(&shown)).await;
    let sent = [user("Count."), Message::text(Role::Assistant, "One, two."), user("Go on.")];
    let expected = [user("Count."), begun[1].clone(), added, user("Go on.")];
    assert_eq!(whole(&transcripts, ADA, &sent).await, expected);
}

#[tokio::test]
async fn g12_pictures_are_kept_as_far_as_there_is_room() {
    let kept = async |max_bytes: u64, sizes: &[usize]| {
        let transcripts = TranscriptLimits { max_bytes, ..TranscriptLimits::DEFAULT };
        let limits = ConversationLimits { transcripts, ..ConversationLimits::default() };
        let store = Arc::new(MemoryStore::default());
        let transcripts = Transcripts::new(Conversations::new(store, limits));
        let ids: Vec<String> = (0..sizes.len()).map(|at| format!("s{at}")).collect();
        let mut added = vec![calls(&ids.iter().map(String::as_str).chain(["c"]).collect::<Vec<_>>())];
        for (id, size) in ids.iter().zip(sizes) {
            let media = Media::new(MediaKind::Image, MediaSource::Data("A".repeat(*size)));
            let parts = vec![Content::Media(media).into()];
            added.push(Message::result(ToolResult { call_id: id.clone(), parts, ..ToolResult::default() }));
        }
        keep(&transcripts, &[], &["c"], &added).await;
        let back = whole(&transcripts, ADA, &[user("hi"), calls(&["c"]), result("c")]).await;
        assert_eq!(back.len(), added.len() + 2, "it is kept in any case");
        (pictures::count(&back), back[1..=added.len()] == added)
    };
    assert_eq!(kept(60_000, &[9000, 9000, 9000, 9000]).await, (4, true));
    assert_eq!(kept(25_000, &[9000, 9000, 9000, 9000]).await, (2, false));
    assert_eq!(kept(5000, &[9000, 9000]).await, (0, false));
}

#[tokio::test]
async fn b15_a_long_conversation_is_asked_for_at_once() {
    let transcripts = Transcripts::default();
    let mut messages = Vec::new();
    for number in 0..2300 {
        messages.push(user(&format!("{number}?")));
        if number % 1500 == 0 {
            let place = transcripts.put_back(ADA, "m", &mut messages.clone(), Vec::new(), None).await;
            let mut shown = place.shown();
            shown.say("Yes.");
            let added = [calls(&["s"]), result("s"), Message::text(Role::Assistant, "Yes.")];
            transcripts.keep(ADA, &place, Some(of(&added)), Ending::Answer(&shown)).await;
        }
        messages.push(Message::text(Role::Assistant, "Yes."));
    }
    messages.push(user("Sure?"));
    // The answers are looked for from the end, so many of them.
    assert_eq!(whole(&transcripts, ADA, &messages).await.len(), messages.len() + 2);
}

#[tokio::test]
async fn b20_where_no_transcripts_are_kept_nobody_pushes_out_what_the_conversations_of_others_have_read() {
    let off = ConversationLimits { retention: Duration::ZERO, ..ConversationLimits::default() };
    let transcripts = Transcripts::new(Conversations::new(Arc::new(MemoryStore::default()), off));
    let conversation = [user("hi"), Message::text(Role::Assistant, "ho"), user("Go on.")];
    let read_by = async |owner: (&str, &str)| {
        transcripts.put_back(owner, "m", &mut conversation.to_vec(), Vec::new(), None).await.read
    };
    let place = transcripts.put_back(ADA, "m", &mut vec![user("hi")], Vec::new(), None).await;
    let mut read = HasRead::default();
    read.note(Reads::PRIVATE, "mailbox");
    transcripts.keep_read(ADA, place.read_keys(None).unwrap(), &read).await;
    assert_eq!(read_by(ADA).await, read);

    // As much as one user can keep, several times over.
    let large = "x".repeat((4 << 20) - (1 << 14));
    for number in 0..20 {
        let id = format!("c{number}");
        let added = [calls(&["s", &id]), Message::text(Role::Assistant, large.clone())];
        keep_of(&transcripts, ("default", "eve"), &[user(&id)], &[&id], &added).await;
    }
    assert_eq!(read_by(ADA).await, read, "and so do the calls of eve's that wait for her client");
    assert!(read_by(("default", "bob")).await.is_empty());
}

#[tokio::test]
async fn b15_where_no_transcripts_are_kept_no_user_takes_all_the_room_for_turns_that_wait() {
    let off = ConversationLimits { retention: Duration::ZERO, ..ConversationLimits::default() };
    let transcripts = Transcripts::new(Conversations::new(Arc::new(MemoryStore::default()), off));
    let added = [calls(&["s", "c"]), result("s")];
    keep(&transcripts, &[], &["c"], &added).await;
    let large = "x".repeat((4 << 20) - (1 << 14));
    for number in 0..20 {
        let id = format!("c{number}");
        let added = [calls(&["s", &id]), Message::text(Role::Assistant, large.clone())];
        keep_of(&transcripts, ("default", "eve"), &[user(&id)], &[&id], &added).await;
    }
    let sent = [user("hi"), calls(&["c"]), result("c")];
    let expected = [user("hi"), added[0].clone(), added[1].clone(), result("c")];
    assert_eq!(whole(&transcripts, ADA, &sent).await, expected);
}
