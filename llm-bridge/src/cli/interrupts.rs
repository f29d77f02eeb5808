//! Ctrl-C in a program that goes on after it.

use tokio::sync::mpsc;

/// What a program ends with that Ctrl-C has stopped.
pub(super) const INTERRUPTED: u8 = 130;

/// Each press, one after the other. A press before the last one was taken up ends the program.
pub(super) struct Interrupts(mpsc::Receiver<()>);

impl Interrupts {
    pub(super) fn new() -> Self {
        let (pressed, presses) = mpsc::channel(1);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if pressed.try_send(()).is_err() {
                    std::process::exit(INTERRUPTED.into());
                }
            }
        });
        Self(presses)
    }

    /// The next press.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Signals cannot be received here.
            std::future::pending().await
        }
    }
}
