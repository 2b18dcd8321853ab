//! What is believed of records and of what `limactl` says, and what an attempt leaves.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use super::{ALICE, Host, tenant};
use crate::backend::{Backend, Pile};

#[tokio::test]
async fn a_torn_record_keeps_nobody_elses_machine_from_its_tenant() {
    let (host, alice, bob) = (Host::new().await, tenant("alice"), tenant("bob"));
    let lima = host.open().await;
    for tenant in [&alice, &bob] {
        lima.provision(tenant, &Pile::None.into()).await.unwrap();
    }
    drop(lima);
    fs::write(host.path(&format!("state/lima/{ALICE}.json")), "{").unwrap();
    let lima = host.open().await;
    assert_eq!(lima.tenants().await.unwrap(), std::slice::from_ref(&bob));
    lima.open(&bob).await.unwrap();
    let told = kit::chain(&lima.open(&alice).await.map(drop).unwrap_err());
    for word in ["is no record of a machine", &format!("{ALICE}.json"), &format!("limactl delete --force {ALICE}")] {
        assert!(told.contains(word), "{word}: {told}");
    }
    lima.provision(&alice, &Pile::None.into()).await.unwrap_err();
    lima.shutdown().await.unwrap();
    let states: Vec<_> = host.machines().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, ["Running", "Stopped"], "nobody knows any more whose alice's is");
}

#[tokio::test]
async fn a_list_that_is_not_understood_is_no_list_of_no_machines() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    host.calls();
    for garbage in ["x Running\n", "{\"name\":1}\n", "x Running /x\n\n", "time=1 level=warning msg=x\n", "x a b\n"] {
        fs::write(host.path("list"), garbage).unwrap();
        let told = kit::chain(&lima.provision(&tenant("bob"), &Pile::None.into()).await.unwrap_err());
        assert!(told.contains("is no answer that is understood"), "{garbage}: {told}");
        let told = host.try_open(|_| {}).await.map(drop).unwrap_err();
        assert!(kit::chain(&told).contains("is no answer"), "{garbage}");
        lima.destroy(&alice, false).await.unwrap_err();
    }
    assert!(!host.calls().iter().any(|call| call.starts_with("create ")));
    fs::remove_file(host.path("list")).unwrap();
    assert_eq!(lima.tenants().await.unwrap(), [alice]);
}

#[tokio::test]
async fn a_machine_is_up_when_it_is_seen_to_run() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    fs::write(host.path("no-run"), "").unwrap();
    let told = kit::chain(&lima.provision(&alice, &Pile::None.into()).await.unwrap_err());
    assert!(told.contains("the machine is Stopped") && !lima.is_live(&alice), "{told}");
    assert_eq!(host.machines(), []);
    fs::write(host.path("list"), "").unwrap();
    let told = kit::chain(&lima.provision(&alice, &Pile::None.into()).await.unwrap_err());
    assert!(told.contains("the machine is not there"), "{told}");
    for name in ["list", "no-run", &format!("machines/{ALICE}")] {
        fs::remove_file(host.path(name)).unwrap();
    }
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    assert!(lima.is_live(&alice));
}

#[tokio::test]
async fn an_attempt_that_makes_no_machine_leaves_nothing_that_one_is_made_from() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    fs::create_dir(host.path("far")).unwrap();
    fs::write(host.path("far/self.pile"), "kept").unwrap();
    let pile = host.path("far/self.pile").canonicalize().unwrap();
    let lima = host
        .try_open(|settings| {
            settings.faculty_pile = Some(pile.clone());
            // The view of the pile is there when it is found that no template can name this.
            settings.faculties = Some(OsStr::from_bytes(b"/\xff").into());
        })
        .await
        .unwrap();
    let told = kit::chain(&lima.provision(&alice, &Pile::IfEnforceable.into()).await.unwrap_err());
    assert!(told.contains("write the machine's template"), "{told}");
    assert!(!host.path("root").join(ALICE).exists() && fs::read(&pile).unwrap() == b"kept");
    assert_eq!((host.machines(), lima.tenants().await.unwrap()), (vec![], vec![]));
}

#[tokio::test]
async fn a_machine_is_ours_by_what_it_was_made_from_and_not_by_its_name() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    host.open().await.provision(&alice, &Pile::None.into()).await.unwrap();
    let (made_from, record) =
        (host.path(&format!("made/{ALICE}/lima.yaml")), host.path(&format!("state/lima/{ALICE}.json")));
    let ours = fs::read_to_string(&made_from).unwrap();
    fs::write(&made_from, "images: []\n").unwrap();
    let before = host.machines();
    let lima = host.open().await;
    assert!(!lima.is_live(&alice), "it runs, and is not ours");
    let refused = [
        lima.open(&alice).await.map(drop),
        lima.stop(&alice).await,
        lima.destroy(&alice, false).await,
        lima.provision(&alice, &Pile::None.into()).await.map(drop),
    ];
    for refused in refused {
        let said = kit::chain(&refused.unwrap_err());
        assert!(said.contains("has not made"), "{said}");
    }
    lima.shutdown().await.unwrap();
    assert_eq!(host.machines(), before);
    fs::remove_file(&made_from).unwrap();
    host.open().await.open(&alice).await.map(drop).unwrap_err();
    // One of an earlier release carries nothing, and its record says so.
    let kept = fs::read_to_string(&record).unwrap();
    let mark = ours
        .split_whitespace()
        .find_map(|word| word.strip_suffix(':').filter(|word| word.starts_with("playground-")))
        .unwrap();
    let earlier: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(earlier["mark"], mark);
    let serde_json::Value::Object(mut earlier) = earlier else { panic!("an object") };
    earlier.remove("mark");
    fs::write(&record, serde_json::to_vec(&earlier).unwrap()).unwrap();
    let lima = host.open().await;
    assert!(lima.is_live(&alice));
    lima.destroy(&alice, false).await.unwrap();
    assert!(host.machines().is_empty());
}
