//! What a build without TLS has in place of an exchange: nothing that could be asked.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpStream;

use super::{HttpsUrl, Trust, Unanswered};

#[derive(Clone)]
pub(super) struct Exchange(Infallible);

impl Exchange {
    pub(super) fn new(_trust: &Trust) -> Result<Self, Unanswered> {
        Err(Unanswered::NoTls)
    }

    pub(super) async fn over(
        &self,
        _stream: TcpStream,
        _url: &HttpsUrl,
        _request: Request<Bytes>,
        _most_bytes: usize,
    ) -> Result<Response<Bytes>, Unanswered> {
        match self.0 {}
    }
}
