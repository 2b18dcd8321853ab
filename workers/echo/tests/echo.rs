//! The example worker, driven as the edge drives it: a process, a loopback socket, raw HTTP.

#[cfg(test)]
mod worker {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpStream;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use serde_json::{Value, json};

    const TOKEN: &str = "the-internal-secret";

    struct Echo {
        process: Child,
        address: String,
        _folder: tempfile::TempDir,
    }

    impl Drop for Echo {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the worker is a program, and the test runs it as one")]
    fn start() -> Echo {
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_echo-worker"))
            .args(["--listen", "127.0.0.1:0", "--token-file"])
            .arg(&token)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(process.stderr.take().unwrap()).read_line(&mut ready).unwrap();
        let address = ready.trim().rsplit(' ').next().unwrap().to_owned();
        Echo { process, address, _folder: folder }
    }

    /// Sends one request and returns the status and the body.
    fn post(echo: &Echo, token: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&echo.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n{body}",
            echo.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn call(arguments: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": "echo", "arguments": arguments } })
        .to_string()
    }

    #[test]
    fn it_returns_the_text_that_it_is_given() {
        let echo = start();
        let (status, body) = post(&echo, TOKEN, &call(&json!({ "text": "hello" })));
        assert_eq!(status, 200);
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["result"]["content"], json!([{ "type": "text", "text": "hello" }]));
        assert_eq!(answer["result"]["isError"], json!(false));
    }

    #[test]
    fn a_call_without_text_is_a_failure_that_says_what_to_do() {
        let echo = start();
        let (status, body) = post(&echo, TOKEN, &call(&json!({})));
        assert_eq!(status, 200);
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["result"]["isError"], json!(true));
    }

    #[test]
    fn a_caller_without_the_token_is_refused() {
        let echo = start();
        for token in ["", "the-internal-secreT", "the-internal-secret2", "the-internal-secre"] {
            assert_eq!(post(&echo, token, &call(&json!({ "text": "x" }))).0, 401, "{token}");
        }
    }
}
