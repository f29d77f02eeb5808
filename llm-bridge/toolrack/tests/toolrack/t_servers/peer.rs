//! Modules that behave until they are switched to misbehave.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::{Duration, sleep},
};

/// What a module does to whoever asks it anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Malice {
    /// It has none.
    None,
    /// Status 500.
    Fails,
    /// Status 200, and bytes that are no text.
    Garbage,
    /// Bytes that are no HTTP.
    Noise,
    /// A gigabyte in chunks.
    Gigabyte,
    /// A byte every now and then.
    Drip,
    /// Nothing at all, on a connection that stays open.
    Silence,
    /// A redirect to where the server has no business.
    Redirect,
    /// Half of an answer, and then the half of the connection that it came through is closed.
    HalfAnswer,
    /// The same before the answer.
    NoAnswer,
    /// Nobody listens any more.
    Gone,
    /// Another description each time it is asked.
    Fickle,
}

/// A module that runs in this process.
pub(crate) struct Peer {
    pub(crate) url: String,
    state: Arc<State>,
    listening: JoinHandle<()>,
}

struct State {
    malice: Malice,
    tool: String,
    /// Where a redirect leads.
    redirect: String,
    is_hostile: AtomicBool,
    connections: AtomicUsize,
    manifests: AtomicUsize,
    calls: AtomicUsize,
    /// The most that was taken of one answer, in bytes.
    most_taken: AtomicUsize,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Peer {
    /// A module with one tool. It behaves for now.
    pub(crate) async fn start(malice: Malice, tool: &str, redirect: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            malice,
            tool: tool.to_owned(),
            redirect: redirect.to_owned(),
            is_hostile: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            manifests: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            most_taken: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        let listening = tokio::spawn(async move {
            let mut running = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                running.spawn(Arc::clone(&shared).serve(stream));
            }
        });
        Self { url, state, listening }
    }

    pub(crate) fn turn_hostile(&self) {
        self.state.is_hostile.store(true, Ordering::SeqCst);
        if self.state.malice == Malice::Gone {
            self.listening.abort();
        }
    }

    pub(crate) fn behave(&self) {
        self.state.is_hostile.store(false, Ordering::SeqCst);
    }

    /// Connections that are open now.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn manifests_asked(&self) -> usize {
        self.state.manifests.load(Ordering::SeqCst)
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn most_taken(&self) -> usize {
        self.state.most_taken.load(Ordering::SeqCst)
    }
}

/// A connection that is counted as long as it is open.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(connections: &'a AtomicUsize) -> Self {
        connections.fetch_add(1, Ordering::SeqCst);
        Self(connections)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl State {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        let _open = Counted::new(&self.connections);
        while let Some((line, body)) = read(&mut stream).await {
            let is_call = line.starts_with("POST /execute ");
            let count = if is_call { &self.calls } else { &self.manifests };
            let asked = count.fetch_add(1, Ordering::SeqCst);
            let is_hostile = self.is_hostile.load(Ordering::SeqCst);
            let goes_on = match self.malice {
                _ if !is_hostile => answer(&mut stream, 200, "", &self.tame(is_call, &body, 0)).await,
                Malice::Fickle => answer(&mut stream, 200, "", &self.tame(is_call, &body, asked)).await,
                Malice::Fails => answer(&mut stream, 500, "", b"oops").await,
                Malice::Garbage => answer(&mut stream, 200, "", &[0xff, 0x00, 0xfe, b'{']).await,
                Malice::Redirect => {
                    let away = format!("location: {}/manifest\r\n", self.redirect);
                    answer(&mut stream, 307, &away, b"").await
                }
                _ => {
                    self.spoil(&mut stream).await;
                    false
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    /// What a module answers that is none but good.
    fn tame(&self, is_call: bool, body: &Value, change: usize) -> Vec<u8> {
        if is_call {
            let article = body["arguments"]["article"].as_str().unwrap_or("nothing");
            return json!({"tool_name": self.tool, "success": true, "result": format!("plenty of {article}")})
                .to_string()
                .into_bytes();
        }
        let article =
            json!({"name": "article", "type": "string", "description": "Its number", "required": true});
        let description = match change {
            0 => "How many of an article are in stock.".to_owned(),
            change => format!("How many of an article are in stock, for the {change}th time."),
        };
        let tool = json!({"name": self.tool, "description": description, "required_permission": "guest",
            "effect": "read", "parameters": [article]});
        json!({"name": "", "description": "A module.", "tools": [tool]}).to_string().into_bytes()
    }

    /// An answer after which the connection is of no use.
    async fn spoil(&self, stream: &mut TcpStream) {
        match self.malice {
            Malice::Noise => drop(stream.write_all(b"\x00\x01\x02 what is this?\r\n\r\n").await),
            Malice::Gigabyte => self.send_gigabyte(stream).await,
            Malice::Drip => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await;
                while stream.write_all(b" ").await.is_ok() {
                    sleep(Duration::from_millis(20)).await;
                }
            }
            Malice::HalfAnswer => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"tools\"").await;
                let _ = stream.shutdown().await;
            }
            Malice::NoAnswer => drop(stream.shutdown().await),
            _ => {}
        }
        // The other half stays open for as long as the server keeps its own.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    }

    async fn send_gigabyte(&self, stream: &mut TcpStream) {
        let piece = [b"10000\r\n".as_slice(), &[b' '; 1 << 16], b"\r\n"].concat();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        let mut taken = 0;
        while taken < 1 << 30 && stream.write_all(&piece).await.is_ok() {
            taken += piece.len();
            self.most_taken.fetch_max(taken, Ordering::SeqCst);
        }
    }
}

/// Whether the connection can be used again.
async fn answer(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8]) -> bool {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).await.is_ok()
}

/// The first line of a request, and its body.
async fn read(stream: &mut TcpStream) -> Option<(String, Value)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            while bytes.len() < end + 4 + length.unwrap_or(0) {
                if stream.read_buf(&mut bytes).await.ok()? == 0 {
                    return None;
                }
            }
            let line = String::from_utf8_lossy(&bytes[..end]).lines().next()?.to_owned();
            return Some((line, serde_json::from_slice(&bytes[end + 4..]).unwrap_or_default()));
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
