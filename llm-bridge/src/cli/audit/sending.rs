//! Where signed heads go.

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, Write},
    net::UdpSocket,
    path::{Path, PathBuf},
    time::Duration,
};

use registry_core::private::{private_file, private_folder};
use reqwest::{Client, Url, redirect};
use toolrack_http::build_client;
use toolrack_stores::{HeadStore, KeptHead};

use super::head::SignedHead;
use crate::cli::{features::missing, settings::is_postgres};

/// A file that has grown to so many bytes is put aside. The last head of a chain says all of it, so nothing is lost with older ones.
const LONGEST_FILE: u64 = 16 << 20;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Facility 10 (authorization), severity 5 (notice), as RFC 5424 counts them.
const PRIORITY: u8 = 10 * 8 + 5;

/// Where the local syslog listens.
const SYSLOG: &str = "/dev/log";

/// A place for signed heads, as a setting names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Place {
    File(PathBuf),
    Syslog,
    /// A syslog server, `HOST:PORT`, over UDP.
    SyslogServer(String),
    Http(Url),
    /// A database that is not that of the records.
    Store(HeadStore),
}

impl Place {
    pub(in crate::cli) fn parse(text: &str) -> Result<Self, String> {
        if let Some(file) = text.strip_prefix("file:").filter(|file| !file.is_empty()) {
            return Ok(Self::File(file.into()));
        }
        if text == "syslog" && cfg!(unix) {
            return Ok(Self::Syslog);
        }
        if is_postgres(text) && !cfg!(feature = "postgres") {
            return Err(missing("postgres"));
        }
        if let Some(store) = HeadStore::parse(text) {
            return Ok(Self::Store(store));
        }
        let url = Url::parse(text).ok().filter(Url::has_host);
        match (url, text.strip_prefix("syslog://")) {
            (Some(url), Some(server)) if url.port().is_some() => Ok(Self::SyslogServer(server.to_owned())),
            (Some(url), None) if matches!(url.scheme(), "http" | "https") => Ok(Self::Http(url)),
            _ => Err(format!(
                "`{text}` is none of `file:PATH`, `syslog`, `syslog://HOST:PORT`, `https://…`, `sqlite:FILE` and `postgres://…`"
            )),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.display().fmt(f),
            Self::Syslog => f.write_str("syslog"),
            Self::SyslogServer(server) => write!(f, "syslog at {server}"),
            // The rest may hold a secret.
            Self::Http(url) => write!(f, "{}", url.host_str().unwrap_or_default()),
            Self::Store(store) => store.fmt(f),
        }
    }
}

/// A place, and what it has not taken yet.
pub(super) struct Destination {
    place: Place,
    client: Client,
    /// The last line of each chain: it says what earlier ones say.
    waiting: BTreeMap<String, String>,
}

impl Destination {
    pub(super) fn new(place: Place) -> Result<Self, String> {
        let client = || Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE);
        let client = build_client(client).map_err(|error| format!("the system's TLS: {error}"))?;
        Ok(Self { place, client, waiting: BTreeMap::new() })
    }

    /// Keeps a chain's line until it is delivered.
    pub(super) fn put(&mut self, tenant: &str, line: &str) {
        self.waiting.insert(tenant.to_owned(), line.to_owned());
    }

    /// Delivers what waits. What is not taken waits for the next time.
    pub(super) async fn deliver(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let lines: Vec<String> = self.waiting.values().cloned().collect();
        match self.send(lines).await {
            Ok(()) => self.waiting.clear(),
            Err(cause) => tracing::warn!(place = %self.place, cause, "audit_heads_not_delivered"),
        }
    }

    async fn send(&self, lines: Vec<String>) -> Result<(), String> {
        let text = |error: io::Error| error.to_string();
        let blocking = match &self.place {
            Place::Http(url) => return self.post(url.clone(), lines).await,
            Place::Store(store) => {
                let heads = lines.into_iter().map(kept).collect::<Result<Vec<_>, _>>()?;
                return store.add(&heads).await.map_err(|error| error.to_string());
            }
            Place::File(file) => {
                let file = file.clone();
                tokio::task::spawn_blocking(move || append(&file, &lines))
            }
            #[cfg(unix)]
            Place::Syslog => tokio::task::spawn_blocking(move || {
                let socket = std::os::unix::net::UnixDatagram::unbound()?;
                socket.connect(SYSLOG)?;
                let tag = format!("<{PRIORITY}>toolrack[{}]:", std::process::id());
                lines.iter().try_for_each(|line| socket.send(format!("{tag} {line}").as_bytes()).map(drop))
            }),
            #[cfg(not(unix))]
            Place::Syslog => return Err(format!("there is no {SYSLOG}")),
            Place::SyslogServer(server) => {
                let server = server.clone();
                tokio::task::spawn_blocking(move || {
                    let socket = UdpSocket::bind("[::]:0").or_else(|_| UdpSocket::bind("0.0.0.0:0"))?;
                    socket.connect(server)?;
                    let head = format!("<{PRIORITY}>1 - - toolrack {} audit-head -", std::process::id());
                    lines
                        .iter()
                        .try_for_each(|line| socket.send(format!("{head} {line}").as_bytes()).map(drop))
                })
            }
        };
        blocking.await.map_err(|error| error.to_string())?.map_err(text)
    }

    async fn post(&self, url: Url, lines: Vec<String>) -> Result<(), String> {
        let request = self.client.post(url).header("content-type", "application/x-ndjson");
        let body = lines.join("\n") + "\n";
        let answer = request.body(body).send().await.map_err(|error| error.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answers {status}")),
        }
    }
}

/// A line, with what a database finds it by.
fn kept(line: String) -> Result<KeptHead, String> {
    let SignedHead { statement, .. } = serde_json::from_str(&line).map_err(|error| error.to_string())?;
    let (seq, removed) = (statement.seq, statement.removed);
    Ok(KeptHead { tenant: statement.tenant, server: statement.server, seq, removed, line })
}

/// The file that a full one is put aside as.
pub(super) fn before(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn append(file: &Path, lines: &[String]) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|there| there.len() >= LONGEST_FILE) {
        fs::rename(file, before(file))?;
    }
    if let Some(folder) = file.parent() {
        private_folder(folder)?;
    }
    private_file(file)?;
    let mut opened: File = OpenOptions::new().read(true).append(true).open(file)?;
    let mut last = [b'\n'];
    if opened.metadata()?.len() > 0 {
        opened.seek(io::SeekFrom::End(-1))?;
        opened.read_exact(&mut last)?;
    }
    // What a full disk has cut off takes no whole line with it.
    let end = if last == *b"\n" { "" } else { "\n" };
    // In one piece, beside another program that does the same.
    opened.write_all((end.to_owned() + &lines.join("\n") + "\n").as_bytes())?;
    opened.sync_data()
}
