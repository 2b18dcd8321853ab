use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kit::special::Special;
use proptest::prelude::*;

use super::{Asked, InvalidPlace, Policy, Refusal};
use crate::settings::{Egress, Host, InvalidHost};

fn policy(egress: &str) -> Policy {
    Policy::of(&egress.parse::<Egress>().unwrap()).unwrap()
}

fn asked(text: &str) -> Asked {
    Asked::parse(text, None).unwrap()
}

fn addresses(list: &[&str]) -> Vec<IpAddr> {
    list.iter().map(|text| text.parse().unwrap()).collect()
}

/// What is connected to, where a resolver says that a name leads to `resolved`; nothing where it is refused.
fn reached(egress: &str, place: &str, resolved: &[&str]) -> Vec<String> {
    let (policy, asked) = (policy(egress), asked(place));
    let resolved = asked.known().unwrap_or_else(|| addresses(resolved));
    let own = addresses(&["127.0.0.1", "::1", "192.0.2.2", "9.9.9.9"]);
    policy.choose(&asked, &resolved, &own).unwrap_or_default().iter().map(SocketAddr::to_string).collect()
}

#[test]
fn nothing_is_no_policy() {
    assert!(Policy::of(&Egress::None).is_none());
}

#[test]
fn open_reaches_what_is_public() {
    assert_eq!(reached("open", "example.org:443", &["1.1.1.1", "2606:4700::1"]), ["1.1.1.1:443", "[2606:4700::1]:443"]);
    assert_eq!(reached("open", "8.8.8.8:53", &[]), ["8.8.8.8:53"]);
    assert_eq!(reached("open", "[2606:4700::1]:80", &[]), ["[2606:4700::1]:80"]);
    assert_eq!(reached("open", "example.org:22", &["1.1.1.1"]), ["1.1.1.1:22"]);
}

#[test]
fn open_reaches_nothing_that_is_not() {
    for place in [
        "127.0.0.1:80",
        "127.9.9.9:80",
        "[::1]:80",
        "[::ffff:127.0.0.1]:80",
        "localhost:80",
        "LocalHost.:80",
        "a.localhost:80",
        "0.0.0.0:80",
        "[::]:80",
        "10.0.0.1:80",
        "169.254.169.254:80",
        "168.63.129.16:80",
        "[fd00:ec2::254]:80",
        "100.64.0.1:80",
        "224.0.0.1:80",
        "255.255.255.255:80",
        "[ff02::1]:80",
        "[fe80::1]:80",
        "[64:ff9b::10.0.0.1]:80",
        "[64:ff9b::9.9.9.9]:80",
        "[2002:7f00:1::]:80",
        "192.0.2.2:80",
        "9.9.9.9:80",
    ] {
        assert_eq!(reached("open", place, &[]), [""; 0], "{place}");
    }
    for resolved in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::ffff:127.0.0.1", "fd00::1", "9.9.9.9"] {
        assert_eq!(reached("open", "rebound.example:80", &[resolved]), [""; 0], "{resolved}");
    }
    assert_eq!(reached("open", "mixed.example:80", &["10.0.0.1", "1.1.1.1"]), ["1.1.1.1:80"]);
}

#[test]
fn mail_between_servers_is_refused_unless_the_list_names_its_port() {
    assert_eq!(policy("open").admit(&asked("example.org:25")), Err(Refusal::Mail));
    assert_eq!(reached("open", "example.org:26", &["1.1.1.1"]), ["1.1.1.1:26"]);
    assert_eq!(reached("open", "example.org:24", &["1.1.1.1"]), ["1.1.1.1:24"]);
    assert_eq!(reached("example.org:25", "example.org:25", &["1.1.1.1"]), ["1.1.1.1:25"]);
}

#[test]
fn a_list_reaches_what_it_names() {
    let list = "example.org:443,*.example.net:*,1.1.1.1:53,10.0.0.5:5432,[fd00::5]:80";
    for (place, good) in [
        ("example.org:443", true),
        ("EXAMPLE.org.:443", true),
        ("example.org:80", false),
        ("www.example.org:443", false),
        ("badexample.org:443", false),
        ("example.org.evil.example:443", false),
        ("example.net:443", false),
        ("a.example.net:22", true),
        ("a.b.example.net:1", true),
        ("aexample.net:22", false),
        ("1.1.1.1:53", true),
        ("[::ffff:1.1.1.1]:53", true),
        ("1.1.1.1:443", false),
        ("10.0.0.5:5432", true),
        ("[::ffff:10.0.0.5]:5432", true),
        ("10.0.0.5:5433", false),
        ("10.0.0.6:5432", false),
        ("[fd00::5]:80", true),
        ("[fd00::6]:80", false),
        ("8.8.8.8:443", false),
        ("localhost:443", false),
    ] {
        assert_eq!(!reached(list, place, &["1.2.3.4"]).is_empty(), good, "{place}");
    }
}

#[test]
fn a_listed_name_leads_inside_only_where_the_list_names_the_address_too() {
    assert_eq!(reached("db.example:5432", "db.example:5432", &["10.0.0.5"]), [""; 0]);
    assert_eq!(reached("db.example:5432,10.0.0.5:5432", "db.example:5432", &["10.0.0.5"]), ["10.0.0.5:5432"]);
    assert_eq!(reached("db.example:5432,10.0.0.5:80", "db.example:5432", &["10.0.0.5"]), [""; 0]);
    assert_eq!(reached("10.0.0.5:5432", "db.example:5432", &["10.0.0.5"]), [""; 0]);
    assert_eq!(reached("localhost:80", "localhost:80", &[]), [""; 0]);
    assert_eq!(reached("localhost:80,127.0.0.1:80", "localhost:80", &[]), ["127.0.0.1:80"]);
    assert_eq!(reached("*.localhost:80", "a.localhost:80", &[]), [""; 0]);
}

#[test]
fn a_refusal_says_what_and_why() {
    let list = policy("example.org:443");
    assert_eq!(
        list.admit(&asked("evil.example:443")).unwrap_err().to_string(),
        "evil.example:443 is not on the list of places that this sandbox may reach (example.org:443)"
    );
    let refusal = policy("open").choose(&asked("a.example:80"), &addresses(&["10.0.0.1"]), &[]).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "a.example:80 leads to 10.0.0.1, which is a private address; the list has to name that address and port themselves"
    );
}

#[test]
fn a_place_is_read_exactly() {
    for (text, usual, read) in [
        ("example.org:443", None, Ok("example.org:443")),
        ("example.org", Some(80), Ok("example.org:80")),
        ("example.org", None, Err(InvalidPlace::Port)),
        ("example.org:", Some(80), Err(InvalidPlace::Port)),
        ("example.org:0", None, Err(InvalidPlace::Port)),
        ("example.org:+80", None, Err(InvalidPlace::Port)),
        ("example.org:65536", None, Err(InvalidPlace::Port)),
        ("example.org:65535", None, Ok("example.org:65535")),
        ("[2001:db8::1]:443", None, Ok("[2001:db8::1]:443")),
        ("[2001:db8::1]", Some(80), Ok("[2001:db8::1]:80")),
        ("[::1]x:80", None, Err(InvalidPlace::Host(InvalidHost::NotAName))),
        ("2001:db8::1", Some(80), Err(InvalidPlace::Host(InvalidHost::NotAName))),
        ("ok@evil.example:80", None, Err(InvalidPlace::Host(InvalidHost::User))),
        ("ok:pass@evil.example:80", None, Err(InvalidPlace::Host(InvalidHost::User))),
        ("a:1:2", None, Err(InvalidPlace::Host(InvalidHost::NotAName))),
        ("2130706433:80", None, Err(InvalidPlace::Host(InvalidHost::OddAddress))),
    ] {
        assert_eq!(Asked::parse(text, usual).map(|asked| asked.to_string()), read.map(str::to_owned), "{text}");
    }
}

proptest! {
    #[test]
    fn open_never_reaches_a_special_address(bits in any::<u128>(), four in any::<u32>(), port in 1u16..) {
        let own = [IpAddr::from(Ipv4Addr::new(9, 9, 9, 9))];
        let asked = Asked { host: Host::Name("a.example".parse().unwrap()), port };
        let candidates = [IpAddr::from(std::net::Ipv6Addr::from_bits(bits)), IpAddr::from(Ipv4Addr::from_bits(four))];
        for address in policy("open").choose(&asked, &candidates, &own).unwrap_or_default() {
            prop_assert_eq!(Special::of(address.ip(), &own), None);
            prop_assert_eq!(address.port(), port);
            prop_assert!(candidates.iter().any(|one| one.to_canonical() == address.ip()));
        }
    }

    #[test]
    fn a_list_never_reaches_another_host_or_port(host in "[a-c]{1,2}(\\.[a-c]{1,2}){0,2}", port in 79u16..82) {
        let asked = Asked { host: host.parse().unwrap(), port };
        let good = port == 80 && (host == "a.b" || host.ends_with(".c.a"));
        prop_assert_eq!(policy("a.b:80,*.c.a:80").admit(&asked).is_ok(), good);
    }
}
