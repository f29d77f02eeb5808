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
