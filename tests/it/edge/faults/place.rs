//! An address that stays the test's own while the worker there goes and comes back.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::super::setting::within;
use super::super::worker::Worker;
use super::script::Script;

pub(super) struct Place {
    /// Bound and not listening: nobody else gets the port, and who connects is refused.
    _held: TcpSocket,
    address: SocketAddr,
}

impl Place {
    pub(super) fn new() -> Self {
        let held = shared("127.0.0.1:0".parse().unwrap());
        let address = held.local_addr().unwrap();
        Self { _held: held, address }
    }

    pub(super) fn worker(&self, script: &Script) -> Worker {
        let script = script.clone();
        Worker::at(self.listener(1024), move |arrival, talk| script.clone().answer(arrival, talk))
    }

    pub(super) fn listener(&self, backlog: u32) -> TcpListener {
        shared(self.address).listen(backlog).unwrap()
    }

    /// Listens without ever accepting; the kernel takes two connections in its stead, and lets all others wait.
    pub(super) async fn full(&self) -> (TcpListener, [TcpStream; 2]) {
        let listener = self.listener(1);
        let connect = || TcpStream::connect(self.address);
        let waiting = [within(connect()).await.unwrap(), within(connect()).await.unwrap()];
        (listener, waiting)
    }
}

fn shared(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(address).unwrap();
    socket
}
