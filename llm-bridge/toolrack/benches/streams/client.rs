//! The client: opens many streams, and compares the time at which each token is read with the time in its text.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Client;
use serde_json::json;
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    Fault,
    upstream::{BEFORE_TIME, MODEL, now},
};

/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// What one stream has shown.
#[derive(Default)]
pub(crate) struct Stream {
    /// From the request to the first token.
    pub(crate) first: Duration,
    /// When each token was read, and how old it was, in microseconds.
    pub(crate) tokens: Vec<(u64, u64)>,
    /// Whether the stream came to its end.
    pub(crate) is_whole: bool,
}

/// How far all streams are.
#[derive(Default)]
pub(crate) struct Progress {
    begun: AtomicUsize,
    ended: AtomicUsize,
    tokens: AtomicUsize,
    changed: Notify,
}

impl Progress {
    /// How many tokens have been read.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens.load(Ordering::Relaxed)
    }

    /// Waits until so many streams have had a token, or ended.
    pub(crate) async fn all_begun(&self, streams: usize) {
        while self.begun.load(Ordering::Relaxed).max(self.ended.load(Ordering::Relaxed)) < streams {
            self.changed.notified().await;
        }
    }
}

/// Streams that are being read.
pub(crate) type Streams = JoinSet<Result<Stream, Fault>>;

/// Opens the streams, one after the other over a time.
pub(crate) fn open(
    base: &str,
    streams: usize,
    tokens: usize,
    ramp: Duration,
) -> Result<(Streams, Arc<Progress>), Fault> {
    let progress = Arc::<Progress>::default();
    let client = || Client::builder().no_proxy().pool_max_idle_per_host(0);
    let client = toolrack_http::build_client(client)?;
    let mut set = JoinSet::new();
    for at in 0..streams {
        let pause = ramp * u32::try_from(at)? / u32::try_from(streams)?;
        let (client, url, progress) =
            (client.clone(), format!("{base}/chat/completions"), Arc::clone(&progress));
        set.spawn(async move {
            tokio::time::sleep(pause).await;
            let read = read(client, url, tokens, &progress).await;
            progress.ended.fetch_add(1, Ordering::Relaxed);
            progress.changed.notify_one();
            read
        });
    }
    Ok((set, progress))
}

async fn read(client: Client, url: String, tokens: usize, progress: &Progress) -> Result<Stream, Fault> {
    let question = json!({
        "model": MODEL, "stream": true, "max_tokens": tokens,
        "messages": [{"role": "user", "content": "What time is it?"}],
    });
    let mut stream = Stream { tokens: Vec::with_capacity(tokens), ..Stream::default() };
    let began = Instant::now();
    let request = client.post(url).bearer_auth(crate::target::KEY).json(&question);
    let mut response = tokio::time::timeout(SILENCE, request.send()).await??.error_for_status()?;
    // A chunk ends with a line here; a token that is cut in two is put together.
    let mut rest = Vec::new();
    while let Some(bytes) = tokio::time::timeout(SILENCE, response.chunk()).await?? {
        let time = now();
        rest.extend_from_slice(&bytes);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in rest.drain(..whole).as_slice().split(|byte| *byte == b'\n') {
            if let Some(sent) = time_of(line) {
                if stream.tokens.is_empty() {
                    stream.first = began.elapsed();
                    progress.begun.fetch_add(1, Ordering::Relaxed);
                    progress.changed.notify_one();
                }
                stream.tokens.push((time, time.saturating_sub(sent)));
                progress.tokens.fetch_add(1, Ordering::Relaxed);
            }
            stream.is_whole |= line == b"data: [DONE]";
        }
    }
    Ok(stream)
}

/// The time in a token.
fn time_of(line: &[u8]) -> Option<u64> {
    let at = line.windows(BEFORE_TIME.len()).position(|window| window == BEFORE_TIME)?;
    let digits = line.get(at + BEFORE_TIME.len()..)?.iter().take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |time, digit| time * 10 + u64::from(digit - b'0')))
}
