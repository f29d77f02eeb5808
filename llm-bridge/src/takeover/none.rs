//! Without the command line, or where no socket goes from one process to another, there is no supervisor, and so no [`Takeover`].

use std::{convert::Infallible, io};

use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::build::Build;

/// A server's place among those that `toolrack dev` starts one after another; here there are none.
#[derive(Debug, Clone)]
pub struct Takeover(Infallible);

#[derive(Debug)]
pub(crate) struct Handed(Infallible);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    All,
    Stream,
    Nothing,
}

#[expect(dead_code, reason = "without a next program nobody reads it")]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) tenant: String,
    pub(crate) user: String,
    pub(crate) state: Value,
}

pub(crate) struct Message {
    pub(crate) session: String,
    pub(crate) text: String,
}

impl Handed {
    pub(crate) async fn put<T>(&self, _connection: T, _begun: &[u8]) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) async fn take(&self) -> io::Result<(std::net::TcpStream, Vec<u8>)> {
        match self.0 {}
    }
}

impl Takeover {
    pub(crate) fn succeeds(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn handed(&self) -> &Handed {
        match self.0 {}
    }

    pub(crate) fn build(&self) -> watch::Receiver<Build> {
        match self.0 {}
    }

    pub(crate) async fn succeeded(&self) {
        match self.0 {}
    }

    pub(crate) fn is_succeeded(&self) -> bool {
        match self.0 {}
    }

    pub(crate) async fn ready(&self, _tools: Vec<String>) {
        match self.0 {}
    }

    pub(crate) async fn given_way(&self) {
        match self.0 {}
    }

    pub(crate) fn session(&self, _id: &str, _tenant: &str, _user: &str) -> Option<Value> {
        match self.0 {}
    }

    pub(crate) fn elsewhere(&self, _id: &str) -> Elsewhere {
        match self.0 {}
    }

    pub(crate) fn is_older(&self, _id: &str) -> bool {
        match self.0 {}
    }

    pub(crate) async fn pass_back(&self, _session: &str, _text: &str) {
        match self.0 {}
    }

    pub(crate) fn messages(&self) -> Option<mpsc::Receiver<Message>> {
        match self.0 {}
    }

    pub(crate) fn came_over(&self, _id: &str, _elsewhere: Elsewhere) {
        match self.0 {}
    }

    pub(crate) async fn opened(&self, _session: Session) {
        match self.0 {}
    }

    pub(crate) async fn ended(&self, _id: &str) {
        match self.0 {}
    }
}
