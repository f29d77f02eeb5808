//! A client of the API, strict about what it is sent.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
};

/// A client that has sent a request for a stream and takes nothing of it yet. Its buffer is so small that the server has to wait.
pub struct Slow(TcpStream);

impl Slow {
    pub async fn ask(address: SocketAddr, body: &Value) -> Self {
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Self::send(address, &(head + &body)).await
    }

    pub async fn get(address: SocketAddr, path: &str) -> Self {
        Self::send(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n")).await
    }

    async fn send(address: SocketAddr, request: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        Self(stream)
    }

    /// Reads so many bytes of it.
    pub async fn take(&mut self, bytes: usize) -> String {
        let mut taken = vec![0; bytes];
        super::within(self.0.read_exact(&mut taken)).await.unwrap();
        String::from_utf8(taken).unwrap()
    }

    /// Reads all of it.
    pub async fn read(mut self) -> Reported {
        let mut bytes = Vec::new();
        super::within(self.0.read_to_end(&mut bytes)).await.unwrap();
        let reply = String::from_utf8(bytes).unwrap();
        let (head, mut chunks) = reply.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        let mut body = String::new();
        while let Some((size, rest)) = chunks.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            body.push_str(&rest[..size]);
            chunks = &rest[size + 2..];
        }
        let mut reported = Reported { status: 200, ..Reported::default() };
        for event in body.split("\n\n").filter_map(|event| event.strip_prefix("data: ")) {
            match event {
                "[DONE]" => reported.done = true,
                chunk => reported.take_chunk(serde_json::from_str(chunk).unwrap()),
            }
        }
        reported
    }
}

/// A stream that is read event by event.
pub struct Reading {
    response: reqwest::Response,
    buffer: Vec<u8>,
    reported: Reported,
}

impl Reading {
    pub fn new(response: reqwest::Response) -> Self {
        let reported = Reported { status: response.status().as_u16(), ..Reported::default() };
        Self { response, buffer: Vec::new(), reported }
    }

    /// The data of the next event; comments are passed over.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let event = String::from_utf8(event).expect("events are text");
                if event.starts_with(':') {
                    continue;
                }
                return Some(event.strip_prefix("data: ").expect("an event of data").trim_end().to_owned());
            }
            let bytes = self.response.chunk().await.expect("the stream ends as it should")?;
            self.buffer.extend_from_slice(&bytes);
        }
    }

    /// The next event as JSON.
    pub async fn json(&mut self) -> Value {
        let data = super::within(self.next()).await.expect("one more event");
        let chunk: Value = serde_json::from_str(&data).unwrap_or_else(|_| panic!("not JSON: {data}"));
        self.reported.take_chunk(chunk.clone());
        chunk
    }

    /// Reads until an event says this.
    pub async fn read_to(&mut self, needle: &str) -> Value {
        loop {
            let event = self.json().await;
            if event.to_string().contains(needle) {
                return event;
            }
        }
    }

    /// Reads the rest and gives all that was said.
    pub async fn rest(mut self) -> Reported {
        while let Some(data) = super::within(self.next()).await {
            assert!(!self.reported.done, "nothing follows [DONE]: {data}");
            if data == "[DONE]" {
                self.reported.done = true;
            } else {
                let chunk = serde_json::from_str(&data).unwrap_or_else(|_| panic!("not JSON: {data}"));
                self.reported.take_chunk(chunk);
            }
        }
        self.reported
    }
}

/// All that a reply said, streamed or not.
#[derive(Debug, Default)]
pub struct Reported {
    pub status: u16,
    /// The header `x-should-retry`.
    pub should_retry: Option<String>,
    pub content: String,
    pub content_is_null: bool,
    pub reasoning: String,
    pub calls: Vec<Value>,
    pub finish: Option<String>,
    pub usage: Option<Value>,
    /// The error object.
    pub error: Option<Value>,
    /// What happened to tools.
    pub details: Vec<Value>,
    /// A stream ended with `[DONE]`; a whole reply is done as it is.
    pub done: bool,
    /// The chunks of a stream, or the one reply.
    pub objects: Vec<Value>,
}

impl Reported {
    pub async fn read(response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        if kind.as_deref() == Some("text/event-stream") {
            return Reading::new(response).rest().await;
        }
        assert_eq!(kind.as_deref(), Some("application/json"));
        let header = response.headers().get("x-should-retry");
        let should_retry = header.map(|value| value.to_str().unwrap().to_owned());
        let mut reported = Self { status, should_retry, done: true, ..Self::default() };
        reported.take_whole(response.json().await.unwrap());
        reported
    }

    fn take_whole(&mut self, body: Value) {
        if let Some(error) = body.get("error") {
            self.error = Some(checked_error(error));
            return;
        }
        assert_eq!(body["object"], "chat.completion", "{body}");
        let choice = &body["choices"][0];
        let message = &choice["message"];
        assert_eq!(message["role"], "assistant", "{body}");
        assert!(message.get("content").is_some(), "{body}");
        self.take_message(message);
        self.finish = choice["finish_reason"].as_str().map(str::to_owned);
        self.usage = Some(body["usage"].clone());
        self.details = body.get("x_toolrack").map(|all| all.as_array().unwrap().clone()).unwrap_or_default();
        self.objects.push(body);
    }

    fn take_message(&mut self, message: &Value) {
        self.content_is_null = message.get("content").is_some_and(Value::is_null);
        self.content.push_str(message.get("content").and_then(Value::as_str).unwrap_or_default());
        self.reasoning.push_str(message.get("reasoning_content").and_then(Value::as_str).unwrap_or_default());
        for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            if call.get("id").is_none() {
                self.go_on_with(call);
                continue;
            }
            assert_eq!(call["type"], "function", "{call}");
            assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()), "{call}");
            assert!(call["function"]["arguments"].is_string(), "{call}");
            self.calls.push(call.clone());
        }
    }

    /// A piece of a call that has begun: its index and more of its arguments, and nothing else.
    fn go_on_with(&mut self, piece: &Value) {
        let more = piece["function"]["arguments"].as_str().unwrap_or_else(|| panic!("{piece}"));
        assert_eq!(*piece, serde_json::json!({"index": piece["index"], "function": {"arguments": more}}));
        let call = self.calls.iter_mut().find(|call| call["index"] == piece["index"]);
        let function = &mut call.unwrap_or_else(|| panic!("it has not begun: {piece}"))["function"];
        function["arguments"] = format!("{}{more}", function["arguments"].as_str().unwrap()).into();
    }

    /// Every chunk has to be one that an SDK takes.
    fn take_chunk(&mut self, chunk: Value) {
        assert!(self.error.is_none(), "nothing follows an error: {chunk}");
        if let Some(error) = chunk.get("error") {
            self.error = Some(checked_error(error));
            return;
        }
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk}");
        assert!(chunk["created"].is_u64() && !chunk["model"].as_str().unwrap().is_empty(), "{chunk}");
        if let Some(first) = self.objects.first() {
            assert_eq!(chunk["id"], first["id"]);
        }
        let choices = chunk["choices"].as_array().expect("choices");
        match choices.as_slice() {
            [] => {
                assert!(self.finish.is_some(), "the usage comes last: {chunk}");
                self.usage = Some(chunk["usage"].clone());
                assert!(self.usage.as_ref().unwrap().is_object(), "{chunk}");
            }
            [choice] => {
                assert!(self.finish.is_none(), "the answer is finished: {chunk}");
                assert_eq!(choice["index"], 0);
                assert!(choice["delta"].is_object() && choice.get("finish_reason").is_some(), "{chunk}");
                let begins = !self.objects.iter().any(|chunk| !chunk["choices"][0].is_null());
                assert_eq!(choice["delta"].get("role").is_some(), begins, "{chunk}");
                for call in choice["delta"].get("tool_calls").and_then(Value::as_array).into_iter().flatten()
                {
                    let known = |known: &Value| known["index"] == call["index"];
                    assert!(call["index"].is_u64(), "{chunk}");
                    assert_eq!(self.calls.iter().any(known), call.get("id").is_none(), "{chunk}");
                }
                self.take_message(&choice["delta"]);
                self.finish = choice["finish_reason"].as_str().map(str::to_owned);
                if let Some(details) = chunk.get("x_toolrack") {
                    if matches!(details["type"].as_str(), Some("call_delta" | "message")) {
                        assert_eq!(chunk.get("event"), None, "nothing to look at: {chunk}");
                    } else {
                        assert_eq!(chunk["event"]["type"], "status", "{chunk}");
                        assert!(chunk["event"]["data"]["description"].is_string(), "{chunk}");
                        assert!(chunk["event"]["data"]["done"].is_boolean(), "{chunk}");
                    }
                    let is_message = details["type"] == "message";
                    // A part is data alone beside an answer of a given form.
                    let has_text = choice["delta"]["content"] != "";
                    assert!(has_text == is_message || details.get("part").is_some(), "{chunk}");
                    self.details.push(details.clone());
                }
            }
            _ => panic!("more than one choice: {chunk}"),
        }
        self.objects.push(chunk);
    }

    /// Asserts a finished answer of this text.
    #[track_caller]
    pub fn expect(&self, content: &str) -> &Self {
        assert_eq!(self.error, None);
        assert_eq!((self.status, self.done), (200, true));
        assert_eq!(self.content.trim(), content);
        assert_eq!(self.finish.as_deref(), Some("stop"));
        self
    }

    /// The same, where only the end of the text is given: before it stand the messages of results.
    #[track_caller]
    pub fn expect_end(&self, content: &str) -> &Self {
        assert_eq!(self.error, None);
        assert_eq!((self.status, self.done), (200, true));
        assert!(self.content.trim().ends_with(content), "{}", self.content);
        assert_eq!(self.finish.as_deref(), Some("stop"));
        self
    }

    /// The message of the error that the reply is or ended with.
    #[track_caller]
    pub fn failure(&self) -> String {
        let error = self.error.as_ref().unwrap_or_else(|| panic!("no error in {self:?}"));
        error["message"].as_str().unwrap().to_owned()
    }

    /// Names and arguments of the calls for the client.
    pub fn named_calls(&self) -> Vec<(String, Value)> {
        let read = |call: &Value| {
            let function = &call["function"];
            let arguments = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
            (function["name"].as_str().unwrap().to_owned(), arguments)
        };
        self.calls.iter().map(read).collect()
    }

    /// The details of one type, such as `call_finished`.
    pub fn details_of(&self, kind: &str) -> Vec<&Value> {
        self.details.iter().filter(|details| details["type"] == kind).collect()
    }
}

fn checked_error(error: &Value) -> Value {
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    assert!(error["type"].is_string(), "{error}");
    assert!(error.get("param").is_some() && error.get("code").is_some(), "{error}");
    error.clone()
}
