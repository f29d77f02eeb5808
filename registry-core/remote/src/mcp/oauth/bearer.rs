//! What opens one account: its token, as each request gets it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use jiff::Timestamp;
use parking_lot::Mutex;

use super::{
    Account, Connections,
    kept::{NoToken, Who},
};

/// Tokens that are taken out of texts: the one that was sent last, and the one before.
const REMEMBERED: usize = 2;

/// The tokens of one account.
pub(in crate::mcp) struct Bearer {
    connections: Connections,
    account: Arc<Account>,
    who: Who,
    /// Whether the server has refused what there is.
    is_refused: AtomicBool,
    sent: Mutex<Vec<String>>,
    /// Since when the account is connected that is opened.
    since: Mutex<Option<Timestamp>>,
    /// Whether the user has connected another account meanwhile.
    is_other: AtomicBool,
}

impl Bearer {
    pub(super) fn new(connections: Connections, account: Arc<Account>, who: Who) -> Self {
        Self {
            connections,
            account,
            who,
            is_refused: AtomicBool::new(false),
            sent: Mutex::default(),
            since: Mutex::default(),
            is_other: AtomicBool::new(false),
        }
    }

    /// The token; another than the one that was refused.
    pub(in crate::mcp) async fn token(&self, refused: Option<&str>) -> Result<String, NoToken> {
        let token = match self.account.is_asked() {
            true => self.connections.token(&self.who, self.account.holder(), refused).await.map(
                |(token, since)| {
                    let first = *self.since.lock().get_or_insert(since);
                    self.is_other.fetch_or(first != since, Ordering::Relaxed);
                    token
                },
            ),
            false => self.connections.exchanged(&self.who, &self.account, refused).await,
        };
        match &token {
            Ok(token) => {
                let mut sent = self.sent.lock();
                if !sent.contains(token) {
                    if sent.len() == REMEMBERED {
                        sent.remove(0);
                    }
                    sent.push(token.clone());
                }
            }
            Err(NoToken::Ask) => self.refuse(),
            Err(NoToken::Later(_)) => {}
        }
        token
    }

    /// Notes that the server takes none of what there is.
    pub(super) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    /// Notes that the server asks for more than the token is for.
    pub(super) async fn want(&self, scope: Option<&str>) {
        if let Some(scope) = scope.filter(|_| self.account.is_asked()) {
            self.connections.want(&self.who, &self.account, scope).await;
        }
        self.refuse();
    }

    /// Whether the user has to let this server in, again or with more scopes.
    pub(in crate::mcp) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Whether it opens another account than at first. A connection to the server is of one.
    pub(in crate::mcp) fn is_other(&self) -> bool {
        self.is_other.load(Ordering::Relaxed)
    }

    /// A text without the tokens: a server can say what it was sent.
    pub(in crate::mcp) fn without_tokens(&self, text: String) -> String {
        let sent = self.sent.lock();
        sent.iter().fold(text, |text, token| text.replace(token.as_str(), "[token]"))
    }

    /// Whether a text has one of the tokens.
    pub(in crate::mcp) fn is_in(&self, text: &str) -> bool {
        self.sent.lock().iter().any(|token| text.contains(token.as_str()))
    }
}
