//! What a machine is made with, what is told of that, and what is refused since it would be no more than told.

use super::{ALICE, Host, tenant};
use crate::backend::{Backend, BackendError, Change, Pile, Provision};
use crate::settings::TenantSettings;

fn wanting(text: &str) -> Provision {
    let settings: TenantSettings = serde_json::from_str(text).unwrap();
    Provision { settings, ..Pile::None.into() }
}

fn change(text: &str) -> Change {
    Change::Settings { settings: serde_json::from_str(text).unwrap(), overcommit: false }
}

#[tokio::test]
async fn a_machine_is_not_made_with_a_wall_that_it_has_not() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    for text in [r#"{"egress":"none"}"#, r#"{"egress":["a.example:1"]}"#, r#"{"processes":9}"#, r#"{"inodes":99}"#] {
        let refused = lima.provision(&alice, &wanting(text)).await;
        assert!(matches!(refused, Err(BackendError::NotKept(_))), "{text}: {refused:?}");
    }
    assert_eq!((host.machines(), lima.tenants().await.unwrap()), (vec![], vec![]));
    lima.provision(&alice, &wanting(r#"{"egress":"open"}"#)).await.unwrap();
    let refused = lima.change(&alice, change(r#"{"egress":"none"}"#)).await;
    assert!(matches!(refused, Err(BackendError::NotKept(_))), "{refused:?}");
    assert_eq!(lima.record(&alice).await.unwrap().in_force.fields()["egress"], "open");
}

#[tokio::test]
async fn what_is_told_of_a_machine_is_what_it_was_made_with() {
    let (host, alice, bob) = (Host::new().await, tenant("alice"), tenant("bob"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    let of_all = lima.record(&alice).await.unwrap();
    let told: TenantSettings = serde_json::from_str(
        r#"{"memory":"8GiB","disk":"30GiB","cpu_percent":400,"egress":"open","shared_pile":false}"#,
    )
    .unwrap();
    assert_eq!(of_all.in_force, told);
    assert_eq!((of_all.profile.limits.memory, of_all.profile.limits.disk), (8 << 30, Some(30 << 30)));
    let usage = lima.usage(&alice).await.unwrap();
    assert_eq!((usage.disk.used, usage.disk.bound), (None, Some(30 << 30)));
    lima.provision(&bob, &wanting(r#"{"memory":"1GiB","cpu_percent":50}"#)).await.unwrap();
    drop(lima);
    // What holds for all may be another when it is looked at again.
    let again = host.open_with(r#"{"memory":"3GiB","disk":"9GiB"}"#).await;
    let found = again.record(&bob).await.unwrap().in_force.fields();
    assert_eq!(
        (&found["memory"], &found["disk"], &found["cpu_percent"]),
        (&(1u64 << 30).into(), &(30u64 << 30).into(), &100.into())
    );
}

#[tokio::test]
async fn a_machine_keeps_the_size_that_it_was_made_with() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &wanting(r#"{"memory":"1GiB"}"#)).await.unwrap();
    for text in
        [r#"{"memory":"2GiB"}"#, "{}", r#"{"memory":"1GiB","disk":"9GiB"}"#, r#"{"memory":"1GiB","cpu_percent":9}"#]
    {
        let told = kit::chain(&lima.change(&alice, change(text)).await.unwrap_err());
        assert!(told.contains("user destroy and user create"), "{text}: {told}");
    }
    lima.change(&alice, change(r#"{"memory":"1GiB","egress":"open"}"#)).await.unwrap();
}

#[tokio::test]
async fn a_template_has_to_be_there() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.try_open(|settings| settings.template = Some("/nonexistent".into())).await.unwrap();
    let told = kit::chain(&lima.provision(&alice, &Pile::None.into()).await.unwrap_err());
    assert!(told.contains("use the template /nonexistent"), "{told}");
    assert_eq!((host.machines(), lima.tenants().await.unwrap()), (vec![], vec![]));
    assert!(!host.path("root").join(ALICE).exists());
}
