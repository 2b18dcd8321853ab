use std::time::Duration;

use http::StatusCode;

use super::{Cause, data, of};

const AGAIN: Duration = Duration::from_secs(6);

fn causes() -> Vec<Cause> {
    let header = "Mcp-Method";
    vec![
        Cause::BadHost,
        Cause::WrongHost { origin: false },
        Cause::BadTarget,
        Cause::BadOrigin,
        Cause::RepeatedHeader("host"),
        Cause::BadTransferEncoding,
        Cause::UnknownMethod,
        Cause::NoCredential,
        Cause::BadCredential,
        Cause::WrongBackend,
        Cause::TenantDisabled,
        Cause::TooManyFailures { again: AGAIN },
        Cause::TooManyRequests { again: AGAIN },
        Cause::NoSuchPath,
        Cause::MethodNotAllowed { allow: "POST" },
        Cause::NotJson,
        Cause::Encoded,
        Cause::NotAcceptable,
        Cause::BodyTooLarge { most: 1 },
        Cause::HeadTooLarge,
        Cause::BodyTooSlow,
        Cause::BodyBroken,
        Cause::TenantBusy { most: 1 },
        Cause::TenantFull { most: 1 },
        Cause::EdgeBusy,
        Cause::NotRecorded,
        Cause::ToolDenied { tool: "exec".to_owned() },
        Cause::OutOfScope,
        Cause::LacksScopes(vec!["mcp:use".to_owned()]),
        Cause::Unparsable,
        Cause::BadShape("it is no object"),
        Cause::Repeated { member: "id".to_owned(), place: "the message" },
        Cause::HeaderMismatch { header, problem: "is missing" },
        Cause::UnsupportedVersion { requested: "2027-01-01".to_owned() },
        Cause::UnsupportedVersion { requested: "2025-11-25".to_owned() },
        Cause::MissingMeta("it"),
        Cause::BadParams("it"),
        Cause::UnnamedTool,
        Cause::MethodRemoved { method: "initialize" },
        Cause::BadLegacyVersion,
        Cause::RetiredVersion { requested: "2024-11-05" },
        Cause::SessionsOnly,
        Cause::StatelessOnly { requested: "2025-11-25".to_owned() },
        Cause::NotBridged,
        Cause::NoSession,
        Cause::UnknownSession,
        Cause::ForeignSession,
        Cause::TenantSessions { most: 1 },
        Cause::SessionNotEnded,
        Cause::NoWorker,
        Cause::NotSent,
        Cause::Forgotten,
        Cause::Timeout { after: AGAIN },
        Cause::Broken,
        Cause::WorkerRefusedUs,
        Cause::WorkerAnswerUnusable("it is empty"),
        Cause::ReplyTooLarge { most: 1 },
        Cause::ReplyUnheld { most: Some(1) },
        Cause::ReplyUnheld { most: None },
        Cause::WorkerError(StatusCode::BAD_REQUEST),
        Cause::WorkerError(StatusCode::SERVICE_UNAVAILABLE),
    ]
}

#[test]
fn every_refusal_says_what_happened_what_is_known_and_what_to_do_next() {
    for cause in causes() {
        let text = of(&cause);
        let (told, next) = text.split_once(" Next: ").unwrap_or_else(|| panic!("no next step: {text}"));
        assert!(told.ends_with('.') && told.contains(". "), "what is known: {text}");
        assert!(next.ends_with('.') || next.ends_with(')'), "{text}");
        assert!(!text.contains("  "), "{text}");
    }
}

#[test]
fn the_wait_in_the_text_is_the_wait_in_the_header() {
    for cause in [Cause::TooManyFailures { again: AGAIN }, Cause::TooManyRequests { again: AGAIN }] {
        assert_eq!(cause.retry_after(), Some(7));
        assert!(of(&cause).contains("wait 7 s"), "{}", of(&cause));
    }
    for cause in causes() {
        let passes = matches!(
            cause,
            Cause::TooManyFailures { .. }
                | Cause::TooManyRequests { .. }
                | Cause::TenantBusy { .. }
                | Cause::TenantFull { .. }
                | Cause::TenantSessions { .. }
                | Cause::EdgeBusy
                | Cause::NotSent
                | Cause::WorkerError(StatusCode::SERVICE_UNAVAILABLE)
        );
        assert_eq!(cause.retry_after().is_some(), passes, "{cause:?}");
    }
}

#[test]
fn a_refused_version_is_answered_with_those_that_the_client_can_use_instead() {
    let supported = |cause: Cause| {
        let data = data(&cause).expect("data");
        data["supported"].as_array().expect("versions").iter().map(|version| version.to_string()).collect::<String>()
    };
    let asked = |requested: &str| supported(Cause::UnsupportedVersion { requested: requested.to_owned() });
    assert_eq!(asked("2027-01-01"), r#""2026-07-28""2025-11-25""2025-06-18""2025-03-26""#);
    for sessionful in ["2025-11-25", "2025-03-26", "2024-11-05"] {
        assert_eq!(asked(sessionful), r#""2026-07-28""#);
    }
    let retired = Cause::RetiredVersion { requested: "2024-11-05" };
    for version in ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] {
        assert!(of(&retired).contains(version), "{}", of(&retired));
    }
    assert_eq!(supported(retired), r#""2025-11-25""2025-06-18""2025-03-26""#);
}

#[test]
fn every_code_is_the_protocols_or_lies_outside_of_its_range() {
    for cause in causes() {
        let code = cause.code();
        let known = [-32700, -32600, -32601, -32602, -32020, -32022].contains(&code);
        // On -32001 clients of sessions initialize again; who has no session cannot lose one.
        let lost = cause == Cause::UnknownSession && code == -32001;
        assert!(known || lost || !(-32_768..=-32_000).contains(&code), "{cause:?}: {code}");
    }
}
