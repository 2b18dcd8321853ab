//! What a tenant reaches beyond its own loopback, and what not.

use std::collections::HashMap;
use std::net::{IpAddr, TcpStream};

use kit::Tenant;
use sandbox::backend::linux::LinuxBackend;
use sandbox::backend::{Backend, Change, CommandSpec, Exit, Pile, Provision, Started};
use sandbox::settings::TenantSettings;
use tokio::io::AsyncWriteExt;

use crate::escape::addresses;
use crate::outside::{Server, Service};
use crate::world::{World, at, finish, has_python, line, opened, spec, tenant, within, world};

impl World {
    pub(crate) async fn make_with_egress(&self, name: &str, egress: &str) -> Tenant {
        let tenant = tenant(name);
        let settings = TenantSettings { egress: Some(egress.parse().unwrap()), ..TenantSettings::default() };
        self.backend.provision(&tenant, &Provision { settings, ..Provision::from(Pile::None) }).await.unwrap();
        tenant
    }

    /// What curl got through the proxy, even from what it would reach without: the status, then the text.
    async fn curl(&self, tenant: &Tenant, arguments: &str) -> String {
        let curl = format!("NO_PROXY= no_proxy= curl -sS -m 30 -w '\\n%{{http_code}} %{{http_connect}}' {arguments}");
        let done = self.run(tenant, &curl).await;
        let (text, status) = done.stdout.rsplit_once('\n').unwrap_or(("", &done.stdout));
        format!("{status} {text}{}", done.stderr)
    }

    /// The first line that the proxy answers to these very bytes.
    async fn raw(&self, tenant: &Tenant, request: &str) -> String {
        let talk = "exec 3<>/dev/tcp/127.0.0.1/3128; printf '%b' \"$0\" >&3; head -n 1 <&3";
        self.says(tenant, &format!("bash -c '{}' '{request}'", talk.replace('\'', "'\\''"))).await
    }

    /// Starts one of the odd clients.
    async fn client(&self, tenant: &Tenant, arguments: &str) -> Started {
        self.backend.write_file(tenant, &at("tunnels.py"), TUNNELS.as_bytes().to_vec()).await.unwrap();
        let spec = CommandSpec { stdin: true, ..spec(&format!("python3 tunnels.py {arguments}")) };
        self.backend.start(tenant, spec).await.unwrap()
    }
}

async fn go_on(client: &mut Started) {
    client.stdin.as_mut().unwrap().write_all(b"go on\n").await.unwrap();
}

/// A world whose proxies are told what names lead to.
fn world_with_names(name: &str, names: &[(&str, &str)]) -> Option<World> {
    let names: HashMap<String, Vec<IpAddr>> =
        names.iter().map(|(name, address)| ((*name).to_owned(), vec![address.parse().unwrap()])).collect();
    opened(name, |_| {}, |config| LinuxBackend::open_for_test_with_names(config, names))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_egress_there_is_no_proxy() {
    let Some(world) = world("no egress") else { return };
    let server = Server::page().await;
    let me = world.make("me").await;
    assert_eq!(world.backend.open(&me).await.unwrap().egress, None);
    assert_eq!(world.says(&me, "env | grep -ci proxy || true").await, "0");
    let refused = world.curl(&me, &format!("-x 127.0.0.1:3128 http://127.0.0.1:{}/", server.port())).await;
    assert!(refused.starts_with("000") && refused.contains("connect"), "{refused}");
    assert_eq!(server.connections(), 0);
    TcpStream::connect(server.address).expect("positive control");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_egress_the_loopback_is_still_the_only_interface() {
    let Some(world) = world("loopback only") else { return };
    let me = world.make_with_egress("me", "open").await;
    let interfaces =
        world.says(&me, "ls /sys/class/net 2>/dev/null; cut -d: -f1 -s /proc/net/route | tail -n +2").await;
    assert_eq!(interfaces, "", "no route leads anywhere");
    for direct in ["http://192.0.2.2/", "http://8.8.8.8/", "http://example.org/", "http://127.0.0.1:1/"] {
        let reached = world.run(&me, &format!("curl -sS -m 10 --noproxy '*' {direct}")).await;
        assert!(matches!(reached.exit, Exit::Code(6 | 7)), "{direct}: {reached:?}");
    }
    assert_eq!(world.says(&me, "getent hosts example.org || echo unknown").await, "unknown");
    let egress = world.backend.open(&me).await.unwrap().egress.unwrap();
    assert!(egress.contains("HTTP_PROXY") && egress.ends_with("to any public address"), "{egress}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_list_names_is_reached_in_every_way() {
    let Some(world) = world("allow-list") else { return };
    let (four, six) = (Server::page().await, Server::start("[::1]:0", Service::Page).await);
    let list = format!("127.0.0.1:{},[::1]:{}", four.port(), six.port());
    let me = world.make_with_egress("me", &list).await;
    for server in [&four, &six] {
        let url = format!("http://{}/a?b=c", server.address);
        assert_eq!(world.curl(&me, &url).await, "200 000 the page");
        assert_eq!(world.curl(&me, &format!("-p {url}")).await, "200 200 the page");
        assert_eq!(world.curl(&me, &format!("-x socks5h://127.0.0.1:3128 {url}")).await, "200 000 the page");
        assert_eq!(world.curl(&me, &format!("-x 'http://[::1]:3128' {url}")).await, "200 000 the page");
        assert_eq!(server.connections(), 4);
        assert!(server.heads()[0].starts_with("GET /a?b=c HTTP/1.1\r\n"), "{:?}", server.heads());
    }
    let egress = world.backend.open(&me).await.unwrap().egress.unwrap();
    assert!(egress.contains(&format!("to {} (", list.replace(',', ", "))), "{egress}");
}

#[tokio::test(flavor = "multi_thread")]
async fn git_and_python_heed_the_proxy_by_themselves() {
    let Some(world) = world("git and python") else { return };
    let folder = tempfile::tempdir().unwrap();
    #[expect(clippy::disallowed_methods, reason = "a test makes what it serves")]
    let made = std::process::Command::new("sh")
        .args(["-ec", REPOSITORY])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let server = Server::start("127.0.0.1:0", Service::Folder(folder.path().join("bare.git"))).await;
    let me = world.make_with_egress("me", &format!("127.0.0.1:{}", server.port())).await;
    let url = format!("http://{}", server.address);
    let cloned = world.says(&me, &format!("git clone -q {url}/ here; cat here/file")).await;
    assert_eq!(cloned, "content");
    if has_python("git and python") {
        let script = format!("import urllib.request as r; print(r.urlopen(\"{url}/HEAD\").read().decode())");
        let read = world.says(&me, &format!("/usr/bin/python3 -c '{script}'")).await;
        assert_eq!(read, "ref: refs/heads/main");
    }
    // Past the proxy there is nothing at this address.
    let direct = format!("NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 git clone -q {url}/ direct");
    assert_ne!(world.run(&me, &direct).await.exit, Exit::Code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_list_does_not_name_is_refused_with_the_reason() {
    let Some(world) = world("not on the list") else { return };
    let (listed, other) = (Server::page().await, Server::page().await);
    let me = world.make_with_egress("me", &format!("127.0.0.1:{},example.org:443", listed.port())).await;
    let (good, bad) = (listed.address, other.address);
    for url in [
        format!("http://{bad}/secret"),
        format!("http://localhost:{}/", listed.port()),
        "http://evil.example/".to_owned(),
        "http://evil.example./".to_owned(),
        "http://example.org/".to_owned(),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::1]/".to_owned(),
    ] {
        let refused = world.curl(&me, &url).await;
        assert!(refused.starts_with("403 000"), "{url}: {refused}");
        assert!(refused.contains("is not on the list") && refused.contains("ask the operator"), "{refused}");
        assert!(!refused.contains("secret"), "{refused}");
        let refused = world.curl(&me, &format!("-p {url}")).await;
        assert!(refused.starts_with("000 403"), "{url}: {refused}");
        let refused = world.curl(&me, &format!("-x socks5h://127.0.0.1:3128 {url}")).await;
        assert!(refused.starts_with("000 000"), "{url}: {refused}");
    }
    for (request, status) in [
        (format!("GET http://{good}/ HTTP/1.1\\r\\n\\r\\n"), "HTTP/1.1 200"),
        (format!("GET http://{good}/ HTTP/1.1\\r\\nHost: {good}\\r\\n\\r\\n"), "HTTP/1.1 200"),
        (format!("GET http://{good}/ HTTP/1.1\\r\\nHost: {bad}\\r\\n\\r\\n"), "HTTP/1.1 400"),
        (format!("GET http://ok@{good}/ HTTP/1.1\\r\\n\\r\\n"), "HTTP/1.1 400"),
        (format!("GET http://{good}@{bad}/ HTTP/1.1\\r\\n\\r\\n"), "HTTP/1.1 400"),
        ("GET / HTTP/1.1\\r\\nHost: 127.0.0.1:3128\\r\\n\\r\\n".to_owned(), "HTTP/1.1 400"),
        (format!("GET https://{good}/ HTTP/1.1\\r\\n\\r\\n"), "HTTP/1.1 400"),
        (format!("CONNECT ok@{good} HTTP/1.1\\r\\n\\r\\n"), "HTTP/1.1 400"),
        (format!("CONNECT 2130706433:{} HTTP/1.1\\r\\n\\r\\n", good.port()), "HTTP/1.1 400"),
        (format!("CONNECT 0x7f.1:{} HTTP/1.1\\r\\n\\r\\n", good.port()), "HTTP/1.1 400"),
        (format!("CONNECT 127.0.0.1:{} HTTP/1.1\\r\\n\\r\\n", bad.port()), "HTTP/1.1 403"),
        ("CONNECT example.org:22 HTTP/1.1\\r\\n\\r\\n".to_owned(), "HTTP/1.1 403"),
        ("CONNECT 127.0.0.1:3128 HTTP/1.1\\r\\n\\r\\n".to_owned(), "HTTP/1.1 403"),
        (format!("CONNECT [::ffff:127.0.0.1]:{} HTTP/1.1\\r\\n\\r\\n", good.port()), "HTTP/1.1 200"),
    ] {
        let answer = world.raw(&me, &request).await;
        assert!(answer.starts_with(status), "{request}: {answer}");
    }
    assert_eq!(other.connections(), 0);
    TcpStream::connect(bad).expect("positive control");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxys_own_fields_stay_with_it() {
    let Some(world) = world("fields") else { return };
    let server = Server::page().await;
    let me = world.make_with_egress("me", &format!("127.0.0.1:{}", server.port())).await;
    let fields = "-i -H 'X-Mine: 1' -H 'Connection: X-Gone' -H 'X-Gone: 1' -H 'TE: trailers' --proxy-user a:b";
    let answer = world.curl(&me, &format!("{fields} http://{}/", server.address)).await.to_lowercase();
    assert!(answer.starts_with("200") && !answer.contains("keep-alive"), "{answer}");
    let head = server.heads().remove(0).to_lowercase();
    assert!(head.contains("x-mine: 1\r\n") && head.contains(&format!("host: {}\r\n", server.address)), "{head}");
    for gone in ["x-gone", "proxy-", "te:", "\r\nconnection"] {
        assert!(!head.contains(gone), "{gone} in {head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn open_egress_leads_to_nothing_of_this_machine() {
    let names =
        [("rebound.example", "127.0.0.1"), ("inside.example", "10.0.0.1"), ("cloud.example", "169.254.169.254")];
    let Some(world) = world_with_names("open egress", &names) else { return };
    let server = Server::start("[::]:0", Service::Page).await;
    let port = server.port();
    let mut hosts: Vec<String> =
        ["127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]", "localhost", "a.localhost", "rebound.example"]
            .map(str::to_owned)
            .into();
    let own = addresses(port);
    for address in ["127.0.0.1", "::1"].map(str::to_owned).iter().chain(&own) {
        TcpStream::connect((address.as_str(), port)).expect("positive control");
    }
    hosts.extend(own);
    hosts.extend(["inside.example", "cloud.example", "169.254.169.254", "10.0.0.1"].map(str::to_owned));
    let me = world.make_with_egress("me", "open").await;
    for host in hosts {
        let refused = world.curl(&me, &format!("http://{host}:{port}/")).await;
        assert!(refused.starts_with("403") && refused.contains("leads to"), "{host}: {refused}");
        let answer = world.raw(&me, &format!("CONNECT {host}:{port} HTTP/1.1\\r\\n\\r\\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403"), "{host}: {answer}");
    }
    let unknown = world.curl(&me, "http://unknown.example/").await;
    assert!(unknown.starts_with("502"), "{unknown}");
    let mail = world.curl(&me, "http://rebound.example:25/").await;
    assert!(mail.starts_with("403") && mail.contains("port 25"), "{mail}");
    server.holds(0).await;
    assert!(server.heads().iter().all(String::is_empty), "only the controls came: {:?}", server.heads());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_leads_inside_only_where_the_list_has_the_address_too() {
    let Some(world) = world_with_names("named", &[("rebound.example", "127.0.0.1")]) else { return };
    let server = Server::page().await;
    let port = server.port();
    let name = world.make_with_egress("name", &format!("rebound.example:{port}")).await;
    let both = world.make_with_egress("both", &format!("*.example:{port},127.0.0.1:{port}")).await;
    let refused = world.curl(&name, &format!("http://rebound.example:{port}/")).await;
    assert!(refused.starts_with("403") && refused.contains("a loopback address"), "{refused}");
    assert_eq!(server.connections(), 0);
    assert_eq!(world.curl(&both, &format!("http://Rebound.Example.:{port}/")).await, "200 000 the page");
    assert_eq!(world.curl(&both, &format!("-p http://rebound.example:{port}/")).await, "200 200 the page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_its_own_list_and_nobody_elses_proxy() {
    let Some(world) = world("two tenants") else { return };
    let (hers, his) = (Server::page().await, Server::page().await);
    let alice = world.make_with_egress("alice", &format!("127.0.0.1:{},127.0.0.1:3128", hers.port())).await;
    let bob = world.make_with_egress("bob", &format!("127.0.0.1:{}", his.port())).await;
    let none = world.make("none").await;
    assert_eq!(world.curl(&bob, &format!("http://{}/", his.address)).await, "200 000 the page");
    for _ in 0..2 {
        assert_eq!(world.curl(&alice, &format!("http://{}/", hers.address)).await, "200 000 the page");
        let refused = world.curl(&alice, &format!("http://{}/", his.address)).await;
        assert!(refused.starts_with("403"), "{refused}");
        let refused = world.curl(&bob, &format!("http://{}/", hers.address)).await;
        assert!(refused.starts_with("403"), "{refused}");
    }
    // What she may reach is on the host, where nobody's proxy listens.
    let through = world.curl(&alice, "http://127.0.0.1:3128/").await;
    assert!(through.starts_with("502"), "{through}");
    let refused = world.curl(&none, &format!("-x 127.0.0.1:3128 http://{}/", hers.address)).await;
    assert!(refused.starts_with("000"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_too_many_waits_until_another_ends() {
    let Some(world) = world("many connections") else { return };
    if !has_python("many connections") {
        return;
    }
    let server = Server::start("127.0.0.1:0", Service::Hold).await;
    let list = format!("127.0.0.1:{}", server.port());
    let (me, other) = (world.make_with_egress("me", &list).await, world.make_with_egress("other", &list).await);
    let mut client = world.client(&me, &format!("hold {} 64", server.port())).await;
    assert_eq!(line(&mut client).await, "200");
    assert_eq!(line(&mut client).await, "asked");
    server.holds(64).await;
    // It does not hold for another tenant.
    let mut second = world.client(&other, &format!("pause {}", server.port())).await;
    assert_eq!(line(&mut second).await, "200");
    server.holds(65).await;
    assert_eq!(server.connections(), 65);
    go_on(&mut client).await;
    assert_eq!(line(&mut client).await, "200");
    server.has_seen(66).await;
    second.command.kill().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_come_to_the_point_is_cut() {
    let Some(world) = world("stalled client") else { return };
    if !has_python("stalled client") {
        return;
    }
    let me = world.make_with_egress("me", "open").await;
    let done = finish(world.client(&me, "stall").await).await;
    assert_eq!(done.stdout.lines().count(), 4, "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_reads_is_not_taken_from_its_sender() {
    let Some(world) = world("backpressure") else { return };
    if !has_python("backpressure") {
        return;
    }
    let server = Server::start("127.0.0.1:0", Service::Flood(DOWNLOAD)).await;
    let me = world.make_with_egress("me", &format!("127.0.0.1:{}", server.port())).await;
    let mut client = world.client(&me, &format!("pause {}", server.port())).await;
    assert_eq!(line(&mut client).await, "200");
    let taken = server.stalled().await;
    assert!(taken < DOWNLOAD / 3, "{taken} bytes were taken");
    go_on(&mut client).await;
    assert_eq!(line(&mut client).await, DOWNLOAD.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_goes_on_both_ways_and_ends_one_way_at_a_time() {
    let Some(world) = world("upgrade") else { return };
    if !has_python("upgrade") {
        return;
    }
    let server = Server::start("127.0.0.1:0", Service::Echo).await;
    let me = world.make_with_egress("me", &format!("127.0.0.1:{}", server.port())).await;
    let done = finish(world.client(&me, &format!("half-close {}", server.port())).await).await;
    assert_eq!(done.stdout, "101\nthere and back\n", "{done:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_tenant_every_tunnel_ends() {
    let Some(world) = world("ended tunnels") else { return };
    if !has_python("ended tunnels") {
        return;
    }
    let server = Server::start("127.0.0.1:0", Service::Hold).await;
    let me = world.make_with_egress("me", &format!("127.0.0.1:{}", server.port())).await;
    for kill in [false, true] {
        let mut client = world.client(&me, &format!("hold {} 3", server.port())).await;
        assert_eq!(line(&mut client).await, "200");
        server.holds(4).await;
        if kill {
            crate::host::kill(world.init(&me).await);
        } else {
            world.backend.stop(&me).await.unwrap();
        }
        server.holds(0).await;
        within(client.command.ended()).await;
    }
    let answer = world.raw(&me, &format!("CONNECT {} HTTP/1.1\\r\\n\\r\\n", server.address)).await;
    assert_eq!(answer, "HTTP/1.1 200 OK", "the next start has its proxy again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_holds_from_the_next_start() {
    let Some(world) = world("changed egress") else { return };
    let server = Server::page().await;
    let me = world.make("me").await;
    world.says(&me, "true").await;
    let egress = Some(format!("127.0.0.1:{}", server.port()).parse().unwrap());
    let settings = TenantSettings { egress, ..TenantSettings::default() };
    world.backend.change(&me, Change::Settings { settings, overcommit: false }).await.unwrap();
    assert_eq!(world.backend.open(&me).await.unwrap().egress, None, "what is said is what is so");
    world.backend.stop(&me).await.unwrap();
    assert!(world.backend.open(&me).await.unwrap().egress.is_some());
    assert_eq!(world.curl(&me, &format!("http://{}/", server.address)).await, "200 000 the page");
}

const TUNNELS: &str = include_str!("guest/tunnels.py");

/// A repository that any server of files can serve.
const REPOSITORY: &str = "git init -q -b main work; cd work; echo content > file; git add file; \
    git -c user.name=n -c user.email=e commit -qm one; git clone -q --bare . ../bare.git; \
    cd ../bare.git; git update-server-info";

/// Far more than the kernel's buffers on the way.
const DOWNLOAD: usize = 50 << 20;
