//! The record of a call, and what a result carries to model, client and audit: requirements T5, T6 and T9.

use crate::support::{Answer, Setup};
use registry_core::{ErrorKind, TextTag, ToolError, ToolPolicy, ToolResult, guard::audit::Phase};
use serde_json::json;

#[tokio::test]
async fn t5_the_registry_stamps_time_and_duration_and_the_tool_cannot() {
    let rack = Setup::bare()
        .plain_tool("slow", ToolPolicy::new(), |_| async {
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
            Ok(ToolResult::new("x")
                .with_audit("duration_ms", 7)
                .with_audit("ts", "never")
                .with_audit("pages", 2))
        })
        .start([Answer::new().call("c", "slow", &json!({})).into(), Answer::text("Done.").into()])
        .await;
    let reported = rack.ask(true).await;
    reported.expect("Done.");
    let [intent, outcome] = rack.audit().try_into().unwrap();
    assert_eq!((intent.phase, intent.duration_ms, intent.success), (Phase::Intent, None, None));
    assert_eq!((outcome.phase, outcome.success), (Phase::Outcome, Some(true)));
    assert!(outcome.duration_ms.unwrap() >= 30 && outcome.ts >= intent.ts);
    assert_eq!((outcome.tool.as_str(), outcome.call_id.as_str(), outcome.attempt), ("slow", "c", 1));
    assert_eq!(outcome.audit["pages"], 2);
    assert_eq!(outcome.arguments_sha256, intent.arguments_sha256);
    assert!(outcome.ts.to_string().ends_with('Z'), "UTC, ISO 8601: {}", outcome.ts);
    assert!(reported.details_of("call_finished")[0]["duration_ms"].as_u64().unwrap() >= 30);
}

#[tokio::test]
async fn t6_a_result_reaches_model_client_and_audit_each_in_its_part() {
    for stream in [true, false] {
        let rack = Setup::bare()
            .plain_tool("write", ToolPolicy::new(), |_| async {
                Ok(ToolResult::new(json!({"pages": 2}))
                    .with_message("Two pages were written.")
                    .with_side_effect("created:a.md")
                    .with_side_effect("created:b.md"))
            })
            .plain_tool("unlucky", ToolPolicy::new(), |_| async {
                Ok(ToolResult::unsuccessful("There is no paper."))
            })
            .plain_tool("fail", ToolPolicy::new(), |_| async {
                Err(ToolError::failed("disk /dev/sda1 is gone").with_feedback("It cannot be written now."))
            })
            .start([
                Answer::new()
                    .call("1", "write", &json!({}))
                    .call("2", "unlucky", &json!({}))
                    .call("3", "fail", &json!({}))
                    .into(),
                Answer::text("Done.").into(),
            ])
            .await;
        let reported = rack.ask(stream).await;
        reported.expect("Two pages were written.\n\nThere is no paper.\n\nDone.");
        let messages = rack.upstream.asked()[1].messages().clone();
        let results: Vec<_> =
            messages[2..].iter().map(|message| message["content"].as_str().unwrap()).collect();
        assert_eq!(results, ["{\"pages\":2}", "There is no paper.", "Error: It cannot be written now."]);

        let finished =
            |id: &str| *reported.details_of("call_finished").iter().find(|call| call["id"] == id).unwrap();
        let (write, unlucky, fail) = (finished("1"), finished("2"), finished("3"));
        assert_eq!((&write["success"], &write["message"]), (&json!(true), &json!("Two pages were written.")));
        assert_eq!(write["side_effects"], json!(["created:a.md", "created:b.md"]));
        assert_eq!((&unlucky["success"], &unlucky["message"]), (&json!(false), &json!("There is no paper.")));
        assert_eq!((&fail["success"], &fail["error"]), (&json!(false), &json!("disk /dev/sda1 is gone")));

        let records = rack.outcomes();
        let record = |id: &str| records.iter().find(|record| record.call_id == id).unwrap();
        assert_eq!(record("1").side_effects, ["created:a.md", "created:b.md"]);
        assert_eq!((record("2").success, record("2").error), (Some(false), None));
        assert_eq!(record("3").error, Some(ErrorKind::Failed));
    }
}

#[tokio::test]
async fn t6_an_unknown_tool_is_tool_not_found() {
    let rack = Setup::new()
        .start([Answer::new().call("c", "nothing.like_it", &json!({})).into(), Answer::text("Done.").into()])
        .await;
    rack.ask(true).await.expect("Done.");
    let [record] = rack.audit().try_into().unwrap();
    assert_eq!((record.phase, record.error), (Phase::Outcome, Some(ErrorKind::ToolNotFound)));
    assert_eq!((record.success, record.duration_ms), (Some(false), Some(0)));
}

#[tokio::test]
async fn t9_a_tag_line_is_taken_out_of_what_is_shown_unless_its_tool_says_otherwise() {
    for stream in [true, false] {
        for (tag, shown) in [
            (TextTag::new("NOTE"), "Yes.\n\nNoted."),
            (TextTag::new("NOTE").keep_in_display(), "Yes.\nNOTE: milk\n\nNoted."),
        ] {
            let rack = Setup::bare()
                .with_note(tag)
                .start([Answer::text("Yes.\nNOTE: milk\n").into(), Answer::text("Noted.").into()])
                .await;
            rack.ask(stream).await.expect(shown);
            let asked = rack.upstream.asked();
            assert!(
                asked[0].messages()[0]["content"].as_str().unwrap().contains("NOTE: ["),
                "described in the prompt"
            );
            assert_eq!(asked[1].messages().last().unwrap()["content"], "noted: milk (raw: milk)");
        }
    }
}
