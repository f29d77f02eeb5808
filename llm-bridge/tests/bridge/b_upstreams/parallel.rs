//! A model server that gives only so many answers at once.

use std::{num::NonZeroU16, sync::Arc, time::Duration};

use futures_util::future::join_all;
use llm_bridge::upstream::{Upstream, UpstreamSettings};
use tokio::{join, sync::Notify, time::sleep};

use crate::support::{Act, Answer, Reply, Scripted, Setup, text_event, until};

#[tokio::test]
async fn a11_a_model_server_is_asked_for_as_many_answers_at_once_as_it_gives() {
    let goes_on = Arc::new(Notify::new());
    let mut begun = vec![text_event("It is "), Act::Wait(Arc::clone(&goes_on))];
    begun.extend(Answer::text("five.").acts());
    let broken = Reply::stream([text_event("It is "), Act::Cut]);
    let others = [broken, Reply::error(400, "no"), Reply::text("It is six.")];
    let upstream = Scripted::start([Reply::stream(begun)].into_iter().chain(others)).await;
    let settings = UpstreamSettings {
        parallel: NonZeroU16::new(1),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    let rack = Setup::new().start_with(upstream, Upstream::server(settings).unwrap()).await;
    let one_after_the_other = async {
        until(|| rack.upstream.asked().len() == 1).await;
        sleep(Duration::from_millis(300)).await;
        assert_eq!(rack.upstream.asked().len(), 1, "the others wait");
        goes_on.notify_one();
    };
    // However an answer ends, the next one is asked for.
    let (answers, ()) = join!(join_all((0..4).map(|_| rack.ask(true))), one_after_the_other);
    let mut contents: Vec<String> = answers.into_iter().map(|answer| answer.content).collect();
    contents.sort();
    assert_eq!(contents, ["", "It is ", "It is five.", "It is six."]);
    // One whose client has gone makes room as well.
    let upstream =
        Scripted::start([Reply::stream([text_event("It is "), Act::Stall]), Reply::text("Well.")]).await;
    let settings = UpstreamSettings {
        parallel: NonZeroU16::new(1),
        ..UpstreamSettings::new(upstream.base(), Duration::from_secs(20))
    };
    let rack = Setup::new().start_with(upstream, Upstream::server(settings).unwrap()).await;
    drop(rack.open().await);
    assert_eq!(rack.ask(true).await.content, "Well.");
}
