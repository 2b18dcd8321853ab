use super::Config;

fn check(descriptors: u64, workers: usize) -> (bool, Config) {
    let mut config = Config::default();
    let lowered = config.fit(descriptors, workers);
    (lowered, config)
}

#[test]
fn what_fits_stays_as_it_is() {
    // 4096 connections, 1024 exchanges, 32 that rest, and the slack.
    let (lowered, config) = check(4096 + 1024 + 32 + 64, 1);
    assert!(!lowered);
    assert_eq!(config, Config::default());
    let (lowered, config) = check(4096 + 1024 + 32 + 63, 1);
    assert!(lowered);
    assert_eq!(config.connections.most, 4095);
}

#[test]
fn whatever_the_limit_all_of_it_fits() {
    for descriptors in [128, 256, 1024, 4096, 65_536] {
        for workers in [0, 1, 7, 1000] {
            let (_, config) = check(descriptors, workers);
            let used = config.connections.most + config.exchanges.most + config.answers.most_pooled * workers + 64;
            assert!(used as u64 <= descriptors, "{descriptors} {workers}: {used}");
            assert!(config.connections.most >= 1 && config.exchanges.most >= 1);
        }
    }
}
