//! A client that writes and reads its messages itself.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

use super::within;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

pub(crate) const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];

pub(crate) struct Peer {
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    pub(crate) era: Era,
    capabilities: Value,
    next_id: i64,
    /// What the server has said of how its tools are to be used.
    pub(crate) instructions: Option<Value>,
    /// What came that nobody has looked at.
    pub(crate) heard: VecDeque<Value>,
    /// What the user says to forms, in their order.
    pub(crate) says: VecDeque<Value>,
    /// The forms that came.
    pub(crate) forms: Vec<Value>,
}

impl Peer {
    pub(crate) fn new(stream: DuplexStream, era: Era, capabilities: Value) -> Self {
        let (read, write) = tokio::io::split(stream);
        let read = BufReader::new(read).lines();
        let (instructions, heard, says, forms) = Default::default();
        Self { read, write, era, capabilities, next_id: 1, instructions, heard, says, forms }
    }

    pub(crate) async fn begin(&mut self) {
        let client = json!({"name": "peer", "version": "1"});
        if self.era == Era::Legacy {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "clientInfo": client});
            let answer = self.request("initialize", params).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            self.instructions = answer["result"].get("instructions").cloned();
            assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
            self.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        } else {
            let answer = self.request("server/discover", json!({})).await;
            self.instructions = answer["result"].get("instructions").cloned();
            assert_eq!(answer["result"]["capabilities"]["tools"]["listChanged"], true, "{answer}");
        }
    }

    pub(crate) async fn write(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Has the next request take the id of the last one.
    pub(crate) fn repeat_id(&mut self) {
        self.next_id -= 1;
    }

    /// Sends a request and gives its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next_id;
        self.next_id += 1;
        if self.era == Era::Modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "peer", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.write(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The next message that is no form; forms are answered.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let line = within(self.read.next_line()).await.unwrap().expect("the server has closed");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] != "elicitation/create" {
                return message;
            }
            let said = self.says.pop_front().expect("a form too many");
            self.write(json!({"jsonrpc": "2.0", "id": message["id"], "result": said})).await;
            self.forms.push(message["params"].clone());
        }
    }

    /// The answer to a request.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
            self.heard.push_back(message);
        }
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// The names on a page, and the cursor of the next.
    pub(crate) async fn list(&mut self, cursor: Option<&str>) -> (Vec<String>, Option<String>) {
        let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let answer = self.request("tools/list", params).await;
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        (names, answer["result"]["nextCursor"].as_str().map(str::to_owned))
    }

    /// Waits for a notification.
    pub(crate) async fn hears(&mut self, method: &str) -> Value {
        if let Some(at) = self.heard.iter().position(|message| message["method"] == method) {
            return self.heard.remove(at).unwrap();
        }
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
            self.heard.push_back(message);
        }
    }
}

/// All text of a result.
pub(crate) fn text(answer: &Value) -> String {
    let blocks = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
