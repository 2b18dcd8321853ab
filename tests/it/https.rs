//! An HTTPS server of somebody else's, at `localhost`, with a certificate of its own.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::edge::certificate::Certificate;

pub(crate) struct Https {
    pub(crate) port: u16,
    pub(crate) certificate: Certificate,
}

impl Https {
    /// Answers each path with the JSON that `document` makes of it and of the server's own address; 404 where it makes none.
    pub(crate) fn start(document: impl Fn(&str, &str) -> Option<String> + Send + 'static) -> Self {
        let certificate = Certificate::of(&["localhost"]);
        let own = PrivateKeyDer::from_pem_slice(certificate.key_pem().as_bytes()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
        let chain = vec![CertificateDer::from(certificate.der.clone())];
        let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, own).expect("an identity"));
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = listener.local_addr().expect("an address").port();
        let address = address(port);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                let mut stream = StreamOwned::new(connection, stream);
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
                    head.extend_from_slice(&byte);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let answer = match document(&address, head.split(' ').nth(1).unwrap_or_default()) {
                    Some(text) => format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
                        text.len()
                    ),
                    None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
                };
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Self { port, certificate }
    }

    pub(crate) fn address(&self) -> String {
        address(self.port)
    }
}

fn address(port: u16) -> String {
    format!("https://localhost:{port}")
}
