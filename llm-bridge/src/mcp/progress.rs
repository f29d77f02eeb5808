//! A running tool's status as `notifications/progress`.

use std::{sync::Arc, time::Duration};

use registry_core::{EventSink, ToolEvent};
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many notifications wait for a slow client; further ones are dropped.
const WAITING: usize = 64;
/// The total of a progress in percent.
const TOTAL: f64 = 100.0;
/// The step of a status without a number: the protocol requires that progress increases with every notification.
const STEP: f64 = 0.01;
/// How long nothing is said at most: many clients give a request up that they hear nothing of for a minute.
const SILENT: Duration = Duration::from_secs(15);

/// A sink for a tool's events, and their receiver.
pub(super) fn channel() -> (EventSink, mpsc::Receiver<ToolEvent>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Arc::new(move |event| drop(sender.try_send(event))), receiver)
}

/// Forwards events until the call is over, and then those already sent: a tool may leave a task running that keeps the sink. Where there are
/// none it says so from time to time. Gives the last progress, which was `before` at first.
pub(super) async fn forward(
    mut heard: mpsc::Receiver<ToolEvent>,
    peer: Peer<RoleServer>,
    token: ProgressToken,
    over: CancellationToken,
    mut before: f64,
) -> f64 {
    loop {
        let event = tokio::select! {
            event = heard.recv() => event,
            () = tokio::time::sleep(SILENT), if !heard.is_closed() => {
                before = next(before, None);
                let notice = ProgressNotificationParam::new(token.clone(), before);
                if peer.notify_progress(notice.with_message("The call goes on.")).await.is_err() {
                    return before;
                }
                continue;
            }
            () = over.cancelled(), if !heard.is_closed() => {
                heard.close();
                continue;
            }
        };
        let Some(event) = event else { return before };
        let fraction = event.progress.filter(|fraction| fraction.is_finite());
        let progress = next(before, fraction);
        before = progress;
        let mut notice = ProgressNotificationParam::new(token.clone(), progress).with_message(event.message);
        if fraction.is_some() {
            notice = notice.with_total(TOTAL);
        }
        if peer.notify_progress(notice).await.is_err() {
            return before;
        }
    }
}

fn next(before: f64, fraction: Option<f64>) -> f64 {
    let reported = fraction.map_or(0.0, |fraction| fraction * TOTAL);
    // The very first may be nothing at all.
    if before == 0.0 && fraction.is_some() { reported } else { reported.max(before + STEP) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b7_progress_never_falls_back() {
        let mut before = 0.0;
        let reported: Vec<f64> = [Some(0.0), None, Some(0.5), Some(0.25), None, Some(1.0)]
            .into_iter()
            .map(|fraction| {
                before = next(before, fraction);
                before
            })
            .collect();
        assert!(reported.is_sorted_by(|a, b| a < b), "{reported:?}");
        assert_eq!((reported[0], reported[2], reported[5]), (0.0, 50.0, 100.0));
    }
}
