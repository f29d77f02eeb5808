//! Progress on the terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on standard error; hidden unless that is a terminal.
pub(super) fn progress(length: Option<usize>, template: &str) -> ProgressBar {
    let length = length.and_then(|length| u64::try_from(length).ok());
    let bar = length.map_or_else(ProgressBar::no_length, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
