//! Models that do not come to an end.

use serde_json::json;

use super::Thread;
use crate::support::{Answer, Reply, Setup};

/// <https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1362>: the tool is called over and over, each time with success, whatever the
/// model.
#[tokio::test]
async fn m11_a_model_that_calls_over_and_over_is_stopped_with_a_word() {
    let _thread = Thread("https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1362");
    for stream in [true, false] {
        // To the letter, or with a difference each time.
        for (step, most, why) in [(0, 4, "the same tool call 4 times"), (1, 10, "in 10 rounds")] {
            let calls = (0..99).map(|round| {
                Reply::from(Answer::new().call("c", "add", &json!({"a": step * round, "b": 3})))
            });
            let rack = Setup::new().start_of_kind("lmstudio", calls).await;
            let reported = rack.ask(stream).await;
            assert!(
                reported.content.contains("[Stopped: ") && reported.content.contains(why),
                "{reported:?}"
            );
            assert_eq!((reported.finish.as_deref(), rack.upstream.asked().len()), (Some("length"), most));
            assert!(rack.ran().len() <= most);
        }
    }
}

/// <https://github.com/cline/cline/issues/11263>: the model goes to and fro between two calls, or repeats one that fails, and nothing ends it.
#[tokio::test]
async fn m11_a_model_that_goes_to_and_fro_is_stopped_with_a_word() {
    let _thread = Thread("https://github.com/cline/cline/issues/11263");
    for stream in [true, false] {
        let (sum, divisor) = (("add", json!({"a": 2, "b": 3})), ("math_gcd", json!({"a": 12, "b": 18})));
        let failing = ("add", json!({"a": "two", "b": 3}));
        for calls in [vec![sum, divisor], vec![failing]] {
            let count = calls.len();
            let replies = calls.into_iter().cycle().take(99);
            let replies =
                replies.map(|(name, arguments)| Reply::from(Answer::new().call("c", name, &arguments)));
            let rack = Setup::new().start_of_kind("lmstudio", replies).await;
            let reported = rack.ask(stream).await;
            assert!(reported.content.contains("[Stopped: "), "{reported:?}");
            assert_eq!(reported.finish.as_deref(), Some("length"));
            let (asked, ran) = (rack.upstream.asked().len(), rack.ran().len());
            assert!(asked <= 4 * count && ran <= 2 * count, "{asked} requests, {ran} calls");
        }
    }
}
