//! A server on loopback for the tests of tools that fetch.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Gives the same answer to every request. Returns its address and the requests it got.
pub(crate) async fn serve(
    status: &str,
    content_type: &str,
    body: impl AsRef<[u8]>,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let body = body.as_ref();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(body);
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let request = request(&mut socket).await;
            seen.lock().unwrap().push(request);
            let _ = socket.write_all(&answer).await;
            let _ = socket.shutdown().await;
        }
    });
    (url, requests)
}

/// A whole request, its body included.
async fn request(socket: &mut TcpStream) -> String {
    let mut request = String::new();
    let mut piece = [0; 8192];
    loop {
        let read = socket.read(&mut piece).await.unwrap_or_default();
        request.push_str(&String::from_utf8_lossy(&piece[..read]));
        let lower = request.to_lowercase();
        let length =
            lower.split_once("content-length: ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
        let body = request.split_once("\r\n\r\n").map(|(_, body)| body.len());
        if read == 0 || body.is_some_and(|body| body >= length.unwrap_or(0)) {
            return request;
        }
    }
}
