//! The end of a service while machines are made, boot, or do not heed.

use std::fs;

use tokio::io::AsyncReadExt;

use super::{ALICE, Host, LONG, shell, tenant};
use crate::backend::{Backend, Pile};

/// Waits until a call that begins so has come.
async fn called(host: &Host, beginning: &str) {
    let has_come = || {
        let calls = fs::read_to_string(host.path("calls")).unwrap_or_default();
        calls.lines().any(|call| call.starts_with(beginning))
    };
    let waiting = async {
        while !has_come() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, waiting).await.unwrap();
}

#[tokio::test]
async fn a_service_that_ends_does_not_wait_for_a_machine_that_boots() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    lima.shutdown().await.unwrap();
    host.calls();
    fs::write(host.path("slow-start"), "").unwrap();
    let lima = host.open().await;
    assert_eq!(lima.reattach().await.unwrap(), 1);
    called(&host, "start ").await;
    tokio::time::timeout(LONG, lima.shutdown()).await.expect("it boots for longer than that").unwrap();
    assert_eq!(host.machines(), [(ALICE.to_owned(), "Stopped".to_owned())]);
    let told = kit::chain(&lima.open(&alice).await.map(drop).unwrap_err());
    assert!(told.contains("this process ends"), "{told}");
}

#[tokio::test]
async fn a_machine_whose_making_is_broken_off_goes_again() {
    for slow in ["slow-create", "slow-start"] {
        let (host, alice) = (Host::new().await, tenant("alice"));
        let lima = host.open().await;
        fs::write(host.path(slow), "").unwrap();
        let ending = async {
            called(&host, &slow.replace("slow-", "")).await;
            lima.leave().await.unwrap();
        };
        let spec = Pile::None.into();
        let making = tokio::time::timeout(LONG, lima.provision(&alice, &spec));
        let (made, ()) = tokio::join!(making, ending);
        let made = made.expect("it is slower than that");
        let told = kit::chain(&made.unwrap_err());
        assert!(told.contains("broken off"), "{told}");
        assert_eq!((host.machines(), lima.tenants().await.unwrap()), (vec![], vec![]), "{slow}");
        fs::remove_file(host.path(slow)).unwrap();
        assert!(host.open().await.provision(&alice, &Pile::None.into()).await.unwrap().created);
    }
}

#[tokio::test]
async fn a_command_that_is_cancelled_at_once_leaves_no_process() {
    let (host, alice) = (Host::new().await, tenant("alice"));
    let lima = host.open().await;
    lima.provision(&alice, &Pile::None.into()).await.unwrap();
    for is_up in [false, true].repeat(10) {
        let mut victim = lima.start(&alice, shell("echo up; exec sleep 1000")).await.unwrap();
        if is_up {
            victim.stdout.read_u8().await.unwrap();
        }
        victim.command.kill().await.unwrap();
        // Whoever lives on has it open.
        let mut told = Vec::new();
        tokio::time::timeout(LONG, victim.stdout.read_to_end(&mut told)).await.expect("it lives on").unwrap();
    }
}
