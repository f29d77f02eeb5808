//! Ctrl-C in a program that continues after it.

use tokio::sync::mpsc;

/// The exit code after Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;

/// Presses of Ctrl-C. A press before the previous one was received ends the program.
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
