//! What a tenant reaches outside: a listener of our own, once its destination is on the tenant's list, and not before.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::Tenant;
use kit::tasks::Tasks;
use sandbox::Sandbox;
use sandbox::settings::TenantSettings;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::output;
use crate::admin::words::Check;

pub(super) async fn check(sandbox: &Sandbox, tenant: &Tenant) -> Check {
    match tried(sandbox, tenant).await {
        Ok(check) => check,
        Err(why) => Check::fail("egress", why, "leave egress at none, and see what is refused above"),
    }
}

async fn tried(sandbox: &Sandbox, tenant: &Tenant) -> Result<Check, String> {
    let Some(listener) = sealed(sandbox, tenant).await? else {
        let fix = "put bash, curl or nc into the tenants' system, and run this again";
        return Ok(Check::warn("egress", "there is no program inside to try it with", fix));
    };
    let ask = format!("{ASK} {}", listener.place);
    let egress = Some(listener.place.to_string().parse().map_err(|fault| format!("{fault}"))?);
    let change = TenantSettings { egress, ..TenantSettings::default() };
    let listed = sandbox.amend(tenant, change, Vec::new(), true).await;
    listed.map_err(|fault| kit::chain(&fault))?.map_err(|fault| fault.to_string())?;
    sandbox.stop(tenant).await.map_err(|fault| kit::chain(&fault))?;
    let answer = output(sandbox, tenant, &ask).await?;
    if !answer.contains(WORD) || listener.connections() == 0 {
        return Err("a tenant does not reach a listener of this host that is on its list".to_owned());
    }
    Ok(Check::ok(
        "egress",
        "a listener on this host's loopback was reached through the proxy once listed, and not before",
    ))
}

/// A listener of this host's that a tenant without egress does not reach; none where no program inside can try.
pub(in crate::app::operate) async fn sealed(sandbox: &Sandbox, tenant: &Tenant) -> Result<Option<Listener>, String> {
    let listener = Listener::open().await.map_err(|fault| fault.to_string())?;
    let ask = format!("{ASK} {}", listener.place);
    // Also without the proxy: this host's loopback is not the tenant's.
    for text in [ask.clone(), format!("unset http_proxy; proxy={}; {ask}", listener.place)] {
        let answer = output(sandbox, tenant, &text).await?;
        if answer.contains(NO_CLIENT) {
            return Ok(None);
        }
        if answer.contains(WORD) || listener.connections() > 0 {
            return Err("a tenant without egress reaches a listener of this host".to_owned());
        }
    }
    Ok(Some(listener))
}

/// Answers one word to everybody, and counts them.
pub(in crate::app::operate) struct Listener {
    place: SocketAddr,
    connections: Arc<AtomicUsize>,
    _serving: Tasks,
}

impl Listener {
    async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let (place, connections, serving) = (listener.local_addr()?, Arc::default(), Tasks::new());
        let counted: Arc<AtomicUsize> = Arc::clone(&connections);
        serving.start(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                // A question that is cut off gets no answer; the next one does.
                let mut question = [0; 4096];
                if stream.read(&mut question).await.is_ok() {
                    let _ = stream.write_all(ANSWER).await;
                }
            }
        });
        Ok(Self { place, connections, _serving: serving })
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// A page of the place, by way of the proxy or of what stands for it, with whatever program can.
const ASK: &str = r#"
ask() {
    proxy=${http_proxy:-${proxy:-127.0.0.1:3128}}; proxy=${proxy#http://}; proxy=${proxy%/}
    if command -v bash > /dev/null; then
        bash -c 'exec 3<> "/dev/tcp/${0%:*}/${0##*:}" || exit
            printf "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "$1" "$1" >&3; cat <&3' "$proxy" "$1"
    elif command -v curl > /dev/null; then NO_PROXY= no_proxy= curl -s -m 10 -x "http://$proxy" "http://$1/"
    elif command -v nc > /dev/null; then
        printf "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "$1" "$1" | nc -w 10 "${proxy%:*}" "${proxy##*:}"
    else echo no client here; fi 2> /dev/null
}
ask"#;

const NO_CLIENT: &str = "no client here";

const WORD: &str = "reached-by-doctor";

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 17\r\nConnection: close\r\n\r\nreached-by-doctor";
