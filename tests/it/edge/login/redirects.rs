//! Where an answer goes: to a registered address, and to nothing that is nearly one.

use super::program::{Program, decide, edge, link, onward, parameter, sealed};

async fn refused(program: &Program<'_>, redirect: &str) {
    let page = program.page(&[("redirect_uri", redirect)]).await;
    assert_eq!(page.status, 400, "{redirect}");
    assert_eq!(page.header("location"), None, "{redirect}");
    assert!(page.text().contains("not one that the application has registered"), "{redirect}: {}", page.text());
    assert_eq!(link(page.text()), None, "{redirect}: no way leads there");
    assert!(!page.text().contains("evil"), "{redirect}");
}

#[tokio::test]
async fn an_address_that_is_nearly_the_registered_one_is_none() {
    let edge = edge().await;
    let program = Program::new(&edge).await;
    for near in [
        "https://client.example/cb",
        "https://client.example/cb/?x=1",
        "https://client.example/CB?x=1",
        "https://Client.example/cb?x=1",
        "https://client.example:443/cb?x=1",
        "https://client.example:8443/cb?x=1",
        "http://client.example/cb?x=1",
        "https://client.example/cb?x=1&y=2",
        "https://client.example/cb?x=1#f",
        "https://client.example/cb?x=1#",
        "https://user@client.example/cb?x=1",
        "https://client.example@evil.example/cb?x=1",
        "https://client.example//cb?x=1",
        "https://client.example/./cb?x=1",
        "https://client.example/a/../cb?x=1",
        "https://client.example/%63b?x=1",
        "https://client.example/cb?x=%31",
        "https://client.example./cb?x=1",
        "https://client.example.evil.example/cb?x=1",
        "https://evil.example/?https://client.example/cb?x=1",
        "https://client.example\\@evil.example/cb?x=1",
        "https://client.example/cb?x=1 ",
        "https://сlient.example/cb?x=1",
        "https://xn--lient-jyf.example/cb?x=1",
        "//client.example/cb?x=1",
        "/cb?x=1",
        "javascript:alert(1)//https://client.example/cb?x=1",
    ] {
        refused(&program, near).await;
    }
}

#[tokio::test]
async fn a_loopback_address_may_have_another_port_and_nothing_else() {
    let edge = edge().await;
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let registered = format!("http://{host}:1/cb");
        let program = Program::at(&edge, &registered).await;
        for port in ["", ":2", ":65535"] {
            let redirect = format!("http://{host}{port}/cb");
            let page = program.page(&[("redirect_uri", &redirect)]).await;
            assert_eq!(page.status, 200, "{redirect}");
            let allowed = decide(&edge, &sealed(page.text()), &edge.logins().invite(), "allow").await;
            assert!(
                onward(allowed.text()).starts_with(&format!("{redirect}?code=")),
                "the answer goes to the port that asked"
            );
        }
        for near in [
            format!("http://{host}:2/cb2"),
            format!("http://{host}:2/"),
            format!("https://{host}:2/cb"),
            format!("http://{host}:2@evil.example/cb"),
            format!("http://{host}.evil.example:2/cb"),
            format!("http://{host}:99999/cb"),
        ] {
            refused(&program, &near).await;
        }
    }
    let program = Program::at(&edge, "http://127.0.0.1:1/cb").await;
    refused(&program, "http://localhost:1/cb").await;
}

#[tokio::test]
async fn a_program_with_a_scheme_of_its_own_is_answered_there() {
    let edge = edge().await;
    for redirect in ["claude://oauth/cb", "cursor://anysphere.cursor-retrieval/oauth/cb", "com.example.app:/cb"] {
        let program = Program::at(&edge, redirect).await;
        let allowed = program.allow(&edge.logins().invite()).await;
        let address = onward(allowed.text());
        assert!(address.starts_with(&format!("{redirect}?code=")), "{address}");
        assert_eq!(parameter(&address, "iss").as_deref(), Some("https://mcp.example"));
    }
}

#[tokio::test]
async fn an_address_that_another_client_has_registered_is_none_of_this_one() {
    let edge = edge().await;
    let (one, _other) = (Program::new(&edge).await, Program::at(&edge, "https://evil.example/cb").await);
    refused(&one, "https://evil.example/cb").await;
}
