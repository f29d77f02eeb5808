//! A private certificate authority: clients trust its servers once they are told to.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use toolrack_http::{HttpClient, trust_ca_file};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A server with a certificate of that authority.
fn serve() -> SocketAddr {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = vec![CertificateDer::from_pem_file(data("server.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(data("server.key")).unwrap();
    let config =
        Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            // A client that does not trust the server breaks off.
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
            }
        }
    });
    address
}

#[tokio::test]
async fn b10_a_private_certificate_authority_is_trusted_where_it_is_set() {
    assert!(trust_ca_file(&data("server.key")).unwrap_err().contains("server.key has no certificate"));
    assert!(trust_ca_file(&data("gone.pem")).unwrap_err().starts_with("cannot read "));

    let url = format!("https://{}/", serve());
    assert!(HttpClient::new().unwrap().get(&url).send().await.is_err());
    trust_ca_file(&data("ca.pem")).unwrap();
    let answer = HttpClient::new().unwrap().get(&url).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "ok");
    assert!(trust_ca_file(&data("ca.pem")).is_err(), "once in a process");
}
