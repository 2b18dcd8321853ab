use super::{Cause, data, of};

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
