//! The lifecycles on a pretended host: what they leave, and what they refuse.

use std::sync::Arc;
use std::time::Duration;

use kit::Tenant;

use super::ask::Host;
use super::fault::JailFault;
use super::jails::Jails;
use super::places::Places;
use super::reaper::Reaper;
use super::rehearsal::{Setting, World};
use super::settings::Settings;
use crate::backend::host::{End, Output, RunError};
use crate::backend::rehearsal::Before;
use crate::settings::TenantSettings;

struct Bench {
    world: Arc<World>,
    settings: Settings,
    alice: Tenant,
    places: Places,
}

impl Bench {
    fn new() -> Self {
        let collection = "ab".repeat(32).parse().unwrap();
        Self::with(Settings { relations_collection: Some(collection), ..Settings::default() })
    }

    fn with(settings: Settings) -> Self {
        let alice = Tenant::parse("alice").unwrap();
        let places = Places::of(&settings, &alice);
        let setting = Setting { before: Before::Absent, is_jailed: false, racct: true };
        Self { world: Arc::new(World::new(&settings, setting)), settings, alice, places }
    }

    /// A service that has just started.
    fn jails(&self) -> Jails {
        let host = Host::new(Arc::clone(&self.world) as _, Duration::from_secs(1));
        Jails::new(self.settings.clone(), host, Reaper::Timeout, TenantSettings::default(), || {
            "0123456789abcdef".repeat(4)
        })
    }

    async fn provision(&self) -> Result<bool, JailFault> {
        self.jails().provision(&self.alice, &TenantSettings::default()).await
    }

    async fn attach(&self) -> Result<(), JailFault> {
        self.jails().attach(&self.alice).await.map(|_| ())
    }

    async fn stop(&self) {
        self.jails().stop(&self.places).await.unwrap();
    }

    fn root(&self) -> String {
        format!("/{}", self.places.dataset)
    }

    fn has_run(&self, beginning: &str) -> bool {
        self.world.ran().iter().any(|line| line.starts_with(beginning))
    }

    /// Has the host answer one program otherwise.
    fn twist(
        &self,
        beginning: &'static [&'static str],
        answer: impl Fn() -> Result<Output, RunError> + Send + 'static,
    ) {
        self.world.twist(move |words| words.starts_with(beginning).then(&answer));
    }
}

fn hung() -> Result<Output, RunError> {
    Err(RunError::TimedOut {
        program: "it".to_owned(),
        limit: Duration::from_secs(1),
        said: String::new(),
        end: End::Forced,
    })
}

#[tokio::test]
async fn a_sandbox_is_made_once_and_found_afterwards() {
    let bench = Bench::new();
    assert!(bench.provision().await.unwrap());
    let made = bench.world.snapshot();
    assert!(!bench.provision().await.unwrap());
    assert_eq!(bench.world.snapshot(), made);
    assert_eq!(bench.world.text(bench.places.marker.as_str()).as_deref(), Some("alice"));
    assert_eq!(bench.world.text(bench.places.key.as_str()).unwrap().len(), 64);
    assert!(!made.contains(".staging/"), "nothing is left in staging:\n{made}");
    let profile = bench.world.text(&format!("{}/etc/profile", bench.root())).unwrap();
    assert!(profile.contains("PERSONA='alice assistant'") && profile.contains("cd /workspace"), "{profile}");
}

#[tokio::test]
async fn a_sandbox_that_was_stopped_comes_up_as_it_was() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    let made = bench.world.snapshot();
    bench.stop().await;
    bench.attach().await.unwrap();
    assert_eq!(bench.world.snapshot(), made);
}

#[tokio::test]
async fn a_stop_that_was_cut_off_is_seen_until_another_has_done_the_rest() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    let is_half_stopped = async || bench.jails().is_half_stopped(&bench.places).await.unwrap();
    bench.twist(&["umount"], hung);
    assert!(bench.jails().stop(&bench.places).await.is_err());
    bench.world.untwist();
    assert!(is_half_stopped().await);
    bench.stop().await;
    assert!(!is_half_stopped().await);
}

#[tokio::test]
async fn a_sandbox_that_goes_leaves_its_piles_and_what_is_others() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.jails().destroy(&bench.alice, false).await.unwrap();
    let left = bench.world.snapshot();
    assert!(!left.contains(bench.places.dataset.as_str()), "{left}");
    assert!(bench.world.text(bench.places.pile.as_str()).is_some());
    assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::NotProvisioned(_))));
    assert!(bench.provision().await.unwrap(), "it is made again upon the pile it had");
}

#[tokio::test]
async fn a_pile_goes_with_its_sandbox_only_when_that_is_asked_for() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.jails().destroy(&bench.alice, true).await.unwrap();
    assert!(!bench.world.snapshot().contains(bench.places.pile_folder.as_str()));
    assert!(bench.world.text(bench.places.shared.as_str()).is_some());
}

/// Cuts a lifecycle off at every one of its programs, as a kill of the service does, and runs it again.
async fn cut_everywhere(prepare: bool, destroy: bool) {
    for at in 1.. {
        let bench = Bench::new();
        if prepare {
            bench.provision().await.unwrap();
            bench.stop().await;
        }
        let mut count = 0;
        // From there on nothing happens any more, no undo either.
        bench.world.twist(move |_| {
            count += 1;
            (count >= at).then(hung)
        });
        let cut = if destroy {
            bench.jails().destroy(&bench.alice, false).await
        } else {
            bench.jails().provision(&bench.alice, &TenantSettings::default()).await.map(|_| ())
        };
        bench.world.untwist();
        if destroy {
            match bench.jails().destroy(&bench.alice, false).await {
                Ok(()) | Err(JailFault::NotProvisioned(_)) => {}
                Err(fault) => panic!("cut at {at}: {}", kit::chain(&fault)),
            }
            assert!(!bench.world.snapshot().contains(bench.places.dataset.as_str()), "cut at {at}");
            assert!(bench.world.text(bench.places.pile.as_str()).is_some(), "cut at {at}");
        } else {
            bench.provision().await.unwrap_or_else(|fault| panic!("cut at {at}: {}", kit::chain(&fault)));
            let whole = Bench::new();
            whole.provision().await.unwrap();
            assert_eq!(bench.world.snapshot(), whole.world.snapshot(), "cut at {at}");
        }
        if cut.is_ok() {
            assert!(at > 8, "it was cut {at} times");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_making_that_was_killed_anywhere_is_completed_by_the_next_one() {
    cut_everywhere(false, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_coming_up_that_was_killed_anywhere_is_completed_by_the_next_one() {
    cut_everywhere(true, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_was_killed_anywhere_is_completed_by_the_next_one() {
    cut_everywhere(true, true).await;
}

#[tokio::test(start_paused = true)]
async fn a_making_in_which_one_program_fails_leaves_nothing_but_piles() {
    for at in 1.. {
        let bench = Bench::new();
        let mut count = 0;
        bench.world.twist(move |_| {
            count += 1;
            (count == at).then(|| Ok(Output::bad(1, "told to fail")))
        });
        let made = bench.provision().await;
        bench.world.untwist();
        if made.is_ok() && count_of(&bench) < at {
            return;
        }
        let left = bench.world.snapshot();
        if made.is_err() {
            assert!(!left.contains(bench.places.dataset.as_str()), "the failure at {at} left\n{left}");
        }
        bench.provision().await.unwrap_or_else(|fault| panic!("after a failure at {at}: {}", kit::chain(&fault)));
    }
}

fn count_of(bench: &Bench) -> usize {
    bench.world.ran().len()
}

#[tokio::test]
async fn a_dataset_of_which_nothing_is_known_is_neither_made_nor_destroyed() {
    for said in ["cannot open: permission denied", "", "cannot open 'other': dataset does not exist"] {
        let bench = Bench::new();
        bench.twist(&["zfs", "list"], move || Ok(Output::bad(1, said)));
        assert!(matches!(bench.provision().await, Err(JailFault::Unclear { .. })));
        assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::Unclear { .. })));
        let ran = bench.world.ran();
        assert!(!ran.iter().any(|line| line.starts_with("zfs clone") || line.starts_with("zfs destroy")), "{ran:?}");
    }
    let bench = Bench::new();
    bench.twist(&["zfs", "list"], hung);
    assert!(matches!(bench.provision().await, Err(JailFault::Unanswered { .. })));
}

#[tokio::test]
async fn a_dataset_that_is_somebody_elses_is_left_alone() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.stop().await;
    bench.world.set(bench.places.dataset.as_str(), "playground:tenant", "bob");
    let before = bench.world.snapshot();
    assert!(matches!(bench.provision().await, Err(JailFault::OtherOwner { .. })));
    assert!(matches!(bench.attach().await, Err(JailFault::OtherOwner { .. })));
    assert_eq!(bench.jails().attach_all().await.unwrap(), 0);
    assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::OtherOwner { .. })));
    assert_eq!(bench.world.snapshot(), before);
}

#[tokio::test]
async fn a_dataset_without_an_owner_is_taken_over_only_if_it_is_a_clone_of_the_template_and_never_destroyed() {
    let bench = Bench::new();
    let (dataset, template) = (bench.places.dataset.to_string(), bench.settings.template_snapshot.to_string());
    bench.world.by_hand(&["zfs", "clone", &template, &dataset], b"");
    assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::NoOwner { .. })));
    assert!(matches!(bench.attach().await, Err(JailFault::NoOwner { .. })));
    assert_eq!(bench.jails().attach_all().await.unwrap(), 0);
    bench.world.set(&dataset, "origin", "a/other@base");
    assert!(matches!(bench.provision().await, Err(JailFault::NoOwner { .. })));
    bench.world.set(&dataset, "origin", &template);
    assert!(!bench.provision().await.unwrap());
}

#[tokio::test]
async fn piles_with_another_name_on_them_are_refused_and_those_without_any_are_taken_over() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.jails().destroy(&bench.alice, false).await.unwrap();
    bench.world.by_hand(&["tee", bench.places.marker.as_str()], b"bob\n");
    assert!(matches!(bench.provision().await, Err(JailFault::OtherPile { .. })));
    assert!(
        !bench.world.ran().iter().any(|line| line.starts_with("zfs clone"))
            || bench.world.text(&bench.root()).is_none()
    );
    bench.world.by_hand(&["rm", "-f", bench.places.marker.as_str()], b"");
    assert!(bench.provision().await.unwrap());
    assert_eq!(bench.world.text(bench.places.marker.as_str()).as_deref(), Some("alice"));
}

#[tokio::test]
async fn a_link_where_something_of_the_hosts_would_be_put_is_refused() {
    for guest in ["/pile", "/pile/self.pile", "/shared", "/dev", "/etc", "/etc/profile", "/workspace"] {
        let bench = Bench::new();
        bench.provision().await.unwrap();
        bench.stop().await;
        bench.world.link(&format!("{}{guest}", bench.root()));
        bench.world.ran();
        assert!(matches!(bench.attach().await, Err(JailFault::Unexpected { .. })), "{guest}");
        let ran = bench.world.ran();
        let acts = ["mount -t", "jail -c", "touch", "mkdir", "tee", "cp"];
        assert!(!ran.iter().any(|line| acts.iter().any(|act| line.starts_with(act))), "{guest}: {ran:?}");
    }
}

#[tokio::test]
async fn a_link_or_a_folder_of_others_on_the_way_to_the_piles_is_refused_before_anything_is_made() {
    for path in
        ["/aitemp/playground/piles", "/aitemp/playground/piles/.staging", "/aitemp/playground/piles/shared/shared.pile"]
    {
        let bench = Bench::new();
        bench.world.link(path);
        assert!(matches!(bench.provision().await, Err(JailFault::Unexpected { .. })), "{path}");
        assert!(!bench.has_run("zfs clone"), "{path}");
    }
    let bench = Bench::new();
    bench.world.by_hand(&["chmod", "775", "/aitemp/playground"], b"");
    assert!(matches!(bench.provision().await, Err(JailFault::Unexpected { .. })));
}

#[tokio::test]
async fn a_mount_that_is_not_exactly_the_one_is_refused_and_what_was_mounted_is_taken_back() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.stop().await;
    let stopped = bench.world.snapshot();
    let target = format!("{}/pile/self.pile", bench.root());
    bench.world.mount("/elsewhere/self.pile", &target, "nullfs");
    assert!(matches!(bench.attach().await, Err(JailFault::WrongMount { .. })));
    bench.world.by_hand(&["umount", "-f", &target], b"");
    assert_eq!(bench.world.snapshot(), stopped);
}

#[tokio::test]
async fn a_mount_that_is_nobodys_keeps_a_sandbox_from_being_removed() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.world.mount("/usr/ports", &format!("{}/usr/ports", bench.root()), "nullfs");
    assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::StrangeMount(_))));
    assert!(!bench.has_run("zfs destroy"));
}

#[tokio::test]
async fn mounts_of_whole_folders_go_when_an_old_box_comes_up() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.stop().await;
    for (guest, source) in [("/pile", &bench.places.pile_folder), ("/shared", &bench.places.shared_folder)] {
        bench.world.mount(source.as_str(), &format!("{}{guest}", bench.root()), "nullfs");
    }
    bench.attach().await.unwrap();
    let state = bench.world.snapshot();
    assert!(!state.contains(&format!("\"{}/pile\"", bench.root())), "{state}");
}

#[tokio::test]
async fn an_old_box_without_a_key_gets_one_when_it_comes_up_and_none_while_it_runs() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    let key = bench.places.key.as_str();
    bench.world.by_hand(&["rm", "-f", key], b"");
    bench.attach().await.unwrap();
    assert_eq!(bench.world.text(key), None);
    bench.stop().await;
    bench.attach().await.unwrap();
    assert_eq!(bench.world.text(key).unwrap().len(), 64);
}

#[tokio::test]
async fn bounds_are_not_waived_because_nobody_knows_whether_there_are_any() {
    let bench = Bench::new();
    bench.twist(&["sysctl", "-n", "kern.racct.enable"], || Ok(Output::bad(1, "unknown oid")));
    assert!(matches!(bench.provision().await, Err(JailFault::Unclear { .. })));
    assert!(!bench.has_run("zfs clone"));
    let bench = Bench::new();
    bench.twist(&["rctl", "-a"], || Ok(Output::bad(1, "told to fail")));
    assert!(matches!(bench.provision().await, Err(JailFault::Step(_))));
    assert!(!bench.world.snapshot().contains(bench.places.dataset.as_str()));
}

#[tokio::test]
async fn a_sandbox_goes_only_after_its_bounds_which_would_bind_the_next_of_its_name() {
    for (left, goes) in [("jail:box:maxproc:deny=512\n", false), ("", true)] {
        let bench = Bench::new();
        bench.provision().await.unwrap();
        bench.world.twist(move |words| match words {
            ["rctl", "-r", _] => Some(Ok(Output::bad(1, "told to fail"))),
            ["rctl", _] => Some(Ok(Output::good(left))),
            _ => None,
        });
        assert_eq!(bench.jails().destroy(&bench.alice, false).await.is_ok(), goes, "{left}");
        assert_eq!(!bench.world.snapshot().contains(bench.places.dataset.as_str()), goes, "{left}");
        bench.world.untwist();
        let done = bench.jails().destroy(&bench.alice, false).await;
        assert!(done.is_ok() != goes, "{left}");
    }
}

#[tokio::test]
async fn where_the_physical_host_bounds_jails_nothing_is_bounded_here() {
    let bench = Bench::with(Settings { external_rctl: true, ..Bench::new().settings });
    bench.provision().await.unwrap();
    bench.jails().destroy(&bench.alice, false).await.unwrap();
    let ran = bench.world.ran();
    assert!(!ran.iter().any(|line| line.contains("rctl") || line.contains("racct")), "{ran:?}");
}

#[tokio::test]
async fn inside_a_jail_mounts_have_to_be_seen() {
    for (jailed, statfs, is_good) in
        [("0", "2", true), ("1", "0", true), ("1", "1", false), ("1", "2", false), ("2", "0", false)]
    {
        let bench = Bench::new();
        bench.world.variable("security.jail.jailed", jailed);
        bench.world.variable("security.jail.enforce_statfs", statfs);
        assert_eq!(bench.provision().await.is_ok(), is_good, "{jailed}, {statfs}");
        assert_eq!(bench.has_run("zfs clone"), is_good, "{jailed}, {statfs}");
    }
}

#[tokio::test]
async fn a_new_tenant_needs_to_be_told_where_it_is_entered_and_an_old_one_does_not() {
    let nowhere = Bench::with(Settings::default());
    assert!(matches!(nowhere.provision().await, Err(JailFault::NoRelations)));
    assert!(!nowhere.has_run("zfs clone"));
    let bench = Bench::new();
    bench.provision().await.unwrap();
    let ran = bench.world.ran();
    let entering: Vec<_> = ran.iter().filter(|line| line.contains("/opt/faculties/relations")).collect();
    assert_eq!(entering.len(), 1);
    assert!(entering[0].contains("--id 25c147ed19fde75186fef26c7217f5db"), "{entering:?}");
    let later = Bench { settings: Settings::default(), ..bench };
    later.stop().await;
    later.attach().await.unwrap();
    assert!(!later.provision().await.unwrap());
}

#[tokio::test]
async fn the_pile_that_all_share_is_made_only_where_no_faculties_keep_it() {
    let bench = Bench::new();
    bench.world.by_hand(&["rm", "-f", bench.places.shared.as_str()], b"");
    assert!(matches!(bench.provision().await, Err(JailFault::Unexpected { .. })));
    assert!(!bench.has_run("zfs clone"));
    let bench = Bench::with(Settings { relations_collection: Some("none".parse().unwrap()), ..Settings::default() });
    bench.provision().await.unwrap();
    assert!(bench.world.text(bench.places.shared.as_str()).is_some());
    assert!(!bench.has_run("jexec"));
}

#[tokio::test]
async fn what_is_not_there_is_not_opened() {
    let bench = Bench::new();
    assert!(matches!(bench.attach().await, Err(JailFault::NotProvisioned(_))));
    assert!(!bench.has_run("zfs clone"));
}

#[tokio::test(start_paused = true)]
async fn a_jail_that_does_not_end_keeps_its_files() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    bench.twist(&["jail", "-r"], || Ok(Output::bad(1, "told to fail")));
    assert!(bench.jails().destroy(&bench.alice, false).await.is_err());
    bench.twist(&["jail", "-r"], || Ok(Output::good("")));
    assert!(matches!(bench.jails().destroy(&bench.alice, false).await, Err(JailFault::NotSo(..))));
    let ran = bench.world.ran();
    assert!(!ran.iter().any(|line| line.starts_with("umount") || line.starts_with("zfs destroy")), "{ran:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dataset_that_is_busy_for_a_moment_is_tried_once_more() {
    let bench = Bench::new();
    bench.provision().await.unwrap();
    let mut tries = 0;
    bench.world.twist(move |words| {
        tries += usize::from(words.starts_with(&["zfs", "destroy"]));
        (words.starts_with(&["zfs", "destroy"]) && tries == 1).then(|| Ok(Output::bad(1, "dataset is busy")))
    });
    bench.jails().destroy(&bench.alice, false).await.unwrap();
    let ran = bench.world.ran();
    assert_eq!(ran.iter().filter(|line| line.starts_with("zfs destroy")).count(), 2);
}

#[tokio::test]
async fn when_a_service_starts_every_sandbox_comes_up_but_those_that_are_disabled_or_half_made() {
    let bench = Bench::new();
    for name in ["alice", "bob", "carol", "dave"] {
        let tenant = Tenant::parse(name).unwrap();
        bench.jails().provision(&tenant, &TenantSettings::default()).await.unwrap();
        let places = Places::of(&bench.settings, &tenant);
        bench.jails().stop(&places).await.unwrap();
        match name {
            "bob" => bench.world.set(places.dataset.as_str(), "playground:disabled", "yes"),
            "carol" => {
                bench.world.by_hand(&["chflags", "nosappnd", places.pile.as_str()], b"");
                bench.world.by_hand(&["rm", "-f", places.pile.as_str()], b"");
            }
            _ => {}
        }
    }
    assert_eq!(bench.jails().attach_all().await.unwrap(), 2);
    let jails = bench.jails();
    let tenants = jails.tenants().await.unwrap();
    let ran: Vec<_> = tenants.iter().filter(|tenant| jails.ran(tenant)).map(Tenant::as_str).collect();
    assert_eq!((tenants.len(), ran), (4, vec!["alice", "dave"]));
}

#[tokio::test]
async fn a_sandbox_that_cannot_come_up_keeps_nobody_else_down_and_a_host_that_does_not_answer_everybody() {
    let bench = Bench::new();
    for name in ["alice", "bob", "carol"] {
        let tenant = Tenant::parse(name).unwrap();
        bench.jails().provision(&tenant, &TenantSettings::default()).await.unwrap();
        let places = Places::of(&bench.settings, &tenant);
        bench.jails().stop(&places).await.unwrap();
        match name {
            "alice" => bench.world.set(places.dataset.as_str(), "playground:tenant", "mallory"),
            "bob" => bench.world.link(&format!("/{}/pile", places.dataset)),
            _ => {}
        }
    }
    let jails = bench.jails();
    assert_eq!(jails.attach_all().await.unwrap(), 1);
    assert!(jails.ran(&Tenant::parse("carol").unwrap()));
    bench.twist(&["zfs", "get"], hung);
    assert!(matches!(bench.jails().attach_all().await, Err(JailFault::Unanswered { .. })));
}

#[tokio::test]
async fn what_the_operator_decided_stays_with_the_sandbox() {
    let bench = Bench::new();
    let settings =
        TenantSettings { processes: Some(64), disk: Some(crate::settings::Size::new(1 << 30)), ..Default::default() };
    bench.jails().provision(&bench.alice, &settings).await.unwrap();
    assert!(bench.has_run(&format!("rctl -a jail:{}:maxproc:deny=64", bench.places.jail)));
    let jails = bench.jails();
    let mut remembered = jails.recall(&bench.places).await.unwrap();
    assert_eq!(remembered.settings, settings);
    assert_eq!(jails.usage(&bench.places).await.unwrap().disk.bound, Some(1 << 30));
    remembered.disabled = true;
    jails.amend(&bench.places, &remembered).await.unwrap();
    assert!(bench.jails().recall(&bench.places).await.unwrap().disabled);
    let egress = TenantSettings { egress: Some("open".parse().unwrap()), ..Default::default() };
    let refused = bench.jails().provision(&Tenant::parse("bob").unwrap(), &egress).await;
    assert!(matches!(refused, Err(JailFault::NotKept(_))));
}

#[tokio::test]
async fn a_label_with_odd_letters_is_found_under_the_name_that_its_box_has() {
    let bench = Bench::new();
    let odd = Tenant::parse("Odd One").unwrap();
    bench.jails().provision(&odd, &TenantSettings::default()).await.unwrap();
    let ours = Places::of(&bench.settings, &odd);
    let theirs = ours.dataset.as_str().replace("Odd-One", "OddOne");
    bench.jails().destroy(&odd, true).await.unwrap();
    bench.world.by_hand(&["zfs", "clone", bench.settings.template_snapshot.as_str(), &theirs], b"");
    bench.world.set(&theirs, "playground:tenant", "Odd One");
    assert_eq!(bench.jails().places(&odd).await.unwrap().dataset.as_str(), theirs);
}

#[tokio::test]
async fn an_address_has_to_be_the_hosts_already() {
    let bench = Bench::with(Settings { network: "em1:192.0.2.7".parse().unwrap(), ..Bench::new().settings });
    bench.provision().await.unwrap();
    let ran = bench.world.ran();
    assert!(ran.iter().any(|line| line.ends_with("persist ip4.addr=192.0.2.7 ip6=disable")), "{ran:?}");
    let bench = Bench::with(bench.settings);
    bench.twist(&["ifconfig"], || Ok(Output::good("\tinet 192.0.2.70 netmask\n")));
    assert!(matches!(bench.provision().await, Err(JailFault::NoAddress(..))));
    assert!(!bench.has_run("zfs clone"));
}
