use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use kit::Secret;
use kit::tasks::Tasks;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::keys::{ASK_PAUSE, MOST_AGE};
use super::{Issuer, MOST_TOKEN_BYTES, Settings, Signing, Unfit};
use crate::outbound::Outbound;
use crate::outbound::remote::{NAMES, Remote, Script};

const AUDIENCE: &str = "https://mcp.example";

/// A key pair of the issuer's.
struct Signer {
    name: &'static str,
    key: EncodingKey,
    algorithm: Algorithm,
}

impl Signer {
    fn ec(name: &'static str) -> Self {
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).expect("a key");
        Self { name, key: EncodingKey::from_ec_der(pair.as_ref()), algorithm: Algorithm::ES256 }
    }

    fn rsa(name: &'static str) -> Self {
        let pair = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().expect("DER");
        // The library wants the key within its envelope.
        let inner = der.as_ref().get(26..).expect("the envelope of PKCS #8").to_vec();
        Self { name, key: EncodingKey::from_rsa_der(&inner), algorithm: Algorithm::RS256 }
    }

    fn jwk(&self) -> Value {
        let mut key =
            serde_json::to_value(Jwk::from_encoding_key(&self.key, self.algorithm).expect("a key")).expect("JSON");
        key["kid"] = self.name.into();
        key
    }

    fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": self.algorithm, "kid": self.name, "typ": "at+jwt" }), &claims.to_string())
    }

    /// With a header of the caller's own.
    fn signed(&self, header: &Value, claims: &str) -> String {
        let text = format!("{}.{}", part(header.to_string()), part(claims));
        let signature = crypto::sign(text.as_bytes(), &self.key, self.algorithm).expect("signed");
        format!("{text}.{signature}")
    }
}

/// An issuer whose document can be another.
struct Setting {
    remote: Remote,
    document: Arc<Mutex<Option<String>>>,
    issuer: Issuer,
}

impl Setting {
    async fn new(keys: &[&Signer]) -> Self {
        Self::with(keys, |_| {}).await
    }

    async fn with(keys: &[&Signer], change: impl FnOnce(&mut Settings)) -> Self {
        let document = Arc::new(Mutex::new(Some(document(keys))));
        let shown = Arc::clone(&document);
        let remote = Remote::new(move |_| match &*shown.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(document) => Script::json(document),
            None => Script::answer("503 Service Unavailable", "", ""),
        });
        let remote = remote.await;
        let mut settings = settings();
        settings.jwks_url = Some(remote.at("/keys"));
        change(&mut settings);
        let issuer = Issuer::new(settings, outbound(&remote), Tasks::new());
        Self { remote, document, issuer }
    }

    fn shows(&self, keys: Option<&[&Signer]>) {
        *self.document.lock().unwrap_or_else(PoisonError::into_inner) = keys.map(document);
    }

    async fn judge(&self, token: &str) -> Result<String, Unfit> {
        self.issuer.judge(&Secret::new(token)).await.map(|bearer| bearer.tenant.to_string())
    }

    /// Lets so much time go by.
    fn age(&self, by: Duration) {
        self.issuer.0.keys.age_for_test(by);
    }
}

fn outbound(remote: &Remote) -> Outbound {
    Outbound::for_test(&[(NAMES[0], &["127.0.0.1"])], &remote.trust)
}

fn settings() -> Settings {
    Settings {
        issuer: "https://auth.example/realm".to_owned(),
        audience: vec![AUDIENCE.to_owned()],
        jwks_url: None,
        tenant_claim: "tenant".to_owned(),
        algorithms: Signing::usual(),
        scopes: Vec::new(),
        allow_private: false,
    }
}

fn document(keys: &[&Signer]) -> String {
    json!({ "keys": keys.iter().map(|key| key.jwk()).collect::<Vec<_>>() }).to_string()
}

fn part(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

fn seconds(from_now: i64) -> i64 {
    i64::try_from(kit::clock::since_epoch().as_secs()).expect("a time") + from_now
}

fn claims() -> Value {
    json!({
        "iss": "https://auth.example/realm", "aud": AUDIENCE, "sub": "alice@example", "client_id": "c1",
        "exp": seconds(300), "iat": seconds(0), "tenant": "alice", "scope": "mcp other",
    })
}

/// The usual claims with one changed, or left out where it is null.
fn but(name: &str, value: Value) -> Value {
    let mut claims = claims();
    let all = claims.as_object_mut().expect("an object");
    if value.is_null() {
        all.remove(name)
    } else {
        all.insert(name.to_owned(), value)
    };
    claims
}

#[tokio::test]
async fn a_token_of_the_issuers_names_its_tenant_and_its_holder() {
    let key = Signer::ec("k1");
    let setting = Setting::new(&[&key]).await;
    let judge = async |claims: &Value| setting.issuer.judge(&Secret::new(key.token(claims))).await.expect("known");
    let first = judge(&claims()).await;
    assert_eq!(first.tenant.as_str(), "alice");
    assert_eq!(first.scopes, ["mcp", "other"]);
    assert_eq!(i64::try_from(first.ends.as_secs()).expect("a time"), claims()["exp"].as_i64().expect("a time"));
    let again = judge(&but("exp", seconds(900).into())).await;
    assert_eq!(first.credential, again.credential, "a fresh token of the same holder");
    for (name, other) in [("sub", "bob@example"), ("client_id", "c2"), ("tenant", "bob")] {
        assert_ne!(judge(&but(name, other.into())).await.credential, first.credential, "{name}");
    }
    assert_eq!(setting.remote.asked().len(), 1, "the keys are asked for once");
}

#[tokio::test]
async fn a_claim_that_is_not_right_is_refused() {
    let key = Signer::ec("k1");
    let setting = Setting::with(&[&key], |settings| settings.scopes = vec!["mcp".to_owned()]).await;
    let absent = |name: &str| Unfit::Claim(name.to_owned());
    for (name, value, why) in [
        ("exp", json!(seconds(-31)), Unfit::Expired),
        ("exp", json!("soon"), absent("exp")),
        ("exp", Value::Null, absent("exp")),
        ("nbf", json!(seconds(60)), Unfit::Early),
        ("iss", json!("https://auth.example"), Unfit::Issuer),
        ("iss", json!("https://auth.example/realm/"), Unfit::Issuer),
        ("iss", json!(["https://auth.example/realm"]), Unfit::Issuer),
        ("iss", Value::Null, absent("iss")),
        ("aud", json!("https://other.example"), Unfit::Audience),
        ("aud", json!(["https://other.example"]), Unfit::Audience),
        ("aud", json!([]), Unfit::Audience),
        ("aud", Value::Null, absent("aud")),
        ("tenant", json!(""), absent("tenant")),
        ("tenant", json!("a\nb"), absent("tenant")),
        ("tenant", json!(["alice"]), absent("tenant")),
        ("tenant", json!(5), absent("tenant")),
        ("tenant", Value::Null, absent("tenant")),
        ("cnf", json!({ "jkt": "x" }), Unfit::Bound),
    ] {
        assert_eq!(setting.judge(&key.token(&but(name, value.clone()))).await, Err(why), "{name}: {value}");
    }
    for value in [json!("mcpx other"), Value::Null] {
        let told = setting.judge(&key.token(&but("scope", value.clone()))).await;
        assert!(matches!(told, Err(Unfit::Scope { tenant, .. }) if tenant.as_str() == "alice"), "{value}");
    }
    for (name, value) in [
        ("exp", json!(seconds(-20))),
        ("nbf", json!(seconds(20))),
        ("aud", json!(["https://other.example", AUDIENCE])),
        ("sub", Value::Null),
        ("client_id", Value::Null),
    ] {
        assert_eq!(
            setting.judge(&key.token(&but(name, value.clone()))).await.as_deref(),
            Ok("alice"),
            "{name}: {value}"
        );
    }
}

#[tokio::test]
async fn a_claim_that_stands_twice_is_no_claim() {
    let key = Signer::ec("k1");
    let setting = Setting::new(&[&key]).await;
    let header = json!({ "alg": "ES256", "kid": "k1" });
    for name in ["tenant", "exp", "aud", "other"] {
        let once = claims().to_string();
        let twice = format!(r#"{{"{name}":{},{}"#, claims()[name].clone(), &once[1..]);
        let twice = if name == "other" { format!(r#"{{"other":1,"other":2,{}"#, &once[1..]) } else { twice };
        assert_eq!(setting.judge(&key.signed(&header, &twice)).await, Err(Unfit::Malformed), "{name}");
    }
}

#[tokio::test]
async fn a_header_that_asks_for_another_way_to_check_is_refused() {
    let (ec, rsa, own) = (Signer::ec("ec"), Signer::rsa("rsa"), Signer::ec("ec"));
    let setting = Setting::new(&[&ec, &rsa]).await;
    let text = claims().to_string();
    assert_eq!(setting.judge(&rsa.token(&claims())).await.as_deref(), Ok("alice"), "both kinds of keys count");
    let unsigned =
        |algorithm: &str| format!("{}.{}.", part(json!({ "alg": algorithm, "kid": "ec" }).to_string()), part(&text));
    for none in ["none", "None", "NONE", ""] {
        assert_eq!(setting.judge(&unsigned(none)).await, Err(Unfit::Malformed), "{none}");
    }
    // The public key as if it were a shared secret.
    let modulus = URL_SAFE_NO_PAD.decode(rsa.jwk()["n"].as_str().expect("a modulus")).expect("base64");
    let shared =
        Signer { name: "rsa", key: EncodingKey::from_secret(&modulus).expect("a secret"), algorithm: Algorithm::HS256 };
    assert_eq!(setting.judge(&shared.token(&claims())).await, Err(Unfit::Algorithm));
    for (why, header, by, fault) in [
        ("not allowed", json!({ "alg": "RS384", "kid": "rsa" }), &rsa, Unfit::Algorithm),
        ("a key of another kind", json!({ "alg": "RS256", "kid": "ec" }), &ec, Unfit::UnknownKey),
        ("a key of its own", json!({ "alg": "ES256", "kid": "ec", "jwk": own.jwk() }), &own, Unfit::Signature),
        (
            "an address of its own",
            json!({ "alg": "ES256", "kid": "ec", "jku": "https://evil.example" }),
            &own,
            Unfit::Signature,
        ),
        (
            "another type",
            json!({ "alg": "ES256", "kid": "ec", "typ": "logout+jwt" }),
            &ec,
            Unfit::Type("logout+jwt".to_owned()),
        ),
        (
            "what must be understood",
            json!({ "alg": "ES256", "kid": "ec", "crit": ["x"], "x": 1 }),
            &ec,
            Unfit::Malformed,
        ),
        ("another's name", json!({ "alg": "ES256", "kid": "rsa" }), &ec, Unfit::UnknownKey),
    ] {
        assert_eq!(setting.judge(&by.signed(&header, &text)).await, Err(fault), "{why}");
    }
    for kind in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt"] {
        let header = json!({ "alg": "ES256", "kid": "ec", "typ": kind });
        assert_eq!(setting.judge(&ec.signed(&header, &text)).await.as_deref(), Ok("alice"), "{kind}");
    }
    let nameless = ec.signed(&json!({ "alg": "ES256" }), &text);
    assert_eq!(setting.judge(&nameless).await.as_deref(), Ok("alice"), "the one key of its kind");
}

#[tokio::test]
async fn what_was_changed_is_signed_no_more() {
    let key = Signer::ec("k1");
    let setting = Setting::new(&[&key]).await;
    let token = key.token(&claims());
    let [header, _, signature] = token.split('.').collect::<Vec<_>>()[..] else { panic!("{token}") };
    let other = part(but("tenant", "bob".into()).to_string());
    assert_eq!(setting.judge(&format!("{header}.{other}.{signature}")).await, Err(Unfit::Signature));
}

#[tokio::test]
async fn a_new_key_is_found_and_an_unknown_one_costs_one_question_in_a_while() {
    let (first, second, stranger) = (Signer::ec("k1"), Signer::ec("k2"), Signer::ec("k3"));
    let setting = Setting::new(&[&first]).await;
    assert!(setting.judge(&first.token(&claims())).await.is_ok());
    setting.shows(Some(&[&first, &second]));
    assert_eq!(setting.judge(&second.token(&claims())).await, Err(Unfit::UnknownKey), "the issuer was just asked");
    setting.age(ASK_PAUSE);
    assert_eq!(setting.judge(&second.token(&claims())).await.as_deref(), Ok("alice"));
    for _ in 0..20 {
        assert_eq!(setting.judge(&stranger.token(&claims())).await, Err(Unfit::UnknownKey));
    }
    assert_eq!(setting.remote.asked().len(), 2);
    setting.shows(Some(&[&second]));
    setting.age(ASK_PAUSE);
    assert_eq!(setting.judge(&stranger.token(&claims())).await, Err(Unfit::UnknownKey));
    assert_eq!(setting.judge(&first.token(&claims())).await, Err(Unfit::UnknownKey), "a key that was taken back");
    assert_eq!(setting.remote.asked().len(), 3);
}

#[tokio::test]
async fn an_issuer_that_is_down_stops_nobody_for_a_day() {
    let key = Signer::ec("k1");
    let setting = Setting::new(&[&key]).await;
    assert!(setting.judge(&key.token(&claims())).await.is_ok());
    setting.shows(None);
    setting.age(MOST_AGE - Duration::from_secs(60));
    assert_eq!(setting.judge(&key.token(&claims())).await.as_deref(), Ok("alice"));
    setting.age(Duration::from_secs(60));
    assert_eq!(setting.judge(&key.token(&claims())).await, Err(Unfit::UnknownKey));
    setting.shows(Some(&[&key]));
    setting.age(ASK_PAUSE);
    assert_eq!(setting.judge(&key.token(&claims())).await.as_deref(), Ok("alice"));
}

#[tokio::test]
async fn as_many_as_come_at_once_wait_for_one_question() {
    let key = Signer::ec("k1");
    let permits = Arc::new(Semaphore::new(0));
    let script = Script::json(&document(&[&key])).after(&permits);
    let remote = Remote::new(move |_| script.clone()).await;
    let settings = Settings { jwks_url: Some(remote.at("/keys")), ..settings() };
    let issuer = Issuer::new(settings, outbound(&remote), Tasks::new());
    let (tasks, (tell, mut told)) = (Tasks::new(), tokio::sync::mpsc::channel(20));
    for _ in 0..20 {
        let (issuer, tell, token) = (issuer.clone(), tell.clone(), key.token(&claims()));
        tasks.start(async move {
            let _ = tell.send(issuer.judge(&Secret::new(token)).await).await;
        });
    }
    permits.add_permits(20);
    for _ in 0..20 {
        assert!(told.recv().await.expect("told").is_ok());
    }
    assert_eq!(remote.asked().len(), 1);
}

#[tokio::test]
async fn without_an_address_the_issuers_own_metadata_has_it() {
    let key = Signer::ec("k1");
    for (openid, issuer_says, good) in [(true, "", true), (false, "", true), (true, "/other", false)] {
        let at = Arc::new(Mutex::new(String::new()));
        let (base, keys) = (Arc::clone(&at), document(&[&key]));
        let remote = Remote::new(move |path| {
            let base = base.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let metadata = json!({ "issuer": format!("{base}/realm{issuer_says}"), "jwks_uri": format!("{base}/k") });
            match path {
                "/realm/.well-known/openid-configuration" if openid => Script::json(&metadata.to_string()),
                "/.well-known/oauth-authorization-server/realm" => Script::json(&metadata.to_string()),
                "/k" => Script::json(&keys),
                _ => Script::answer("404 Not Found", "", ""),
            }
        });
        let remote = remote.await;
        *at.lock().unwrap_or_else(PoisonError::into_inner) = remote.at("");
        let settings = Settings { issuer: remote.at("/realm"), ..settings() };
        let issuer = Issuer::new(settings, outbound(&remote), Tasks::new());
        let token = key.token(&but("iss", remote.at("/realm").into()));
        let judged = issuer.judge(&Secret::new(token)).await;
        assert_eq!(judged.is_ok(), good, "{openid} {issuer_says} {judged:?}");
    }
}

#[tokio::test]
async fn a_token_is_as_long_as_it_may_be_and_has_its_form() {
    let key = Signer::ec("k1");
    let setting = Setting::new(&[&key]).await;
    let long = |bytes: usize| key.token(&but("pad", "a".repeat(bytes).into()));
    let base = long(0).len();
    let fits = (MOST_TOKEN_BYTES - base) * 3 / 4 - 4;
    assert!(long(fits).len() <= MOST_TOKEN_BYTES);
    assert_eq!(setting.judge(&long(fits)).await.as_deref(), Ok("alice"));
    assert_eq!(setting.judge(&"a".repeat(MOST_TOKEN_BYTES + 1)).await, Err(Unfit::TooLong));
    for form in ["", "a", "a.b", "a.b.c", "..", "a.b.c.d", "a.b.c.d.e"] {
        assert_eq!(setting.judge(form).await, Err(Unfit::Malformed), "{form}");
    }
    for (text, could) in [
        ("a.b.c", true),
        (key.token(&claims()).as_str(), true),
        ("pgt_abc", false),
        ("a.b", false),
        ("a.b.", false),
        ("a.b.c.d", false),
        ("a.b c.d", false),
    ] {
        assert_eq!(Issuer::could_be(&Secret::new(text)), could, "{text}");
    }
}
