//! Starting commands and how they end.

use std::os::unix::fs::PermissionsExt;

use sandbox::backend::{Backend, BackendError, CommandSpec, Exit, Shell};
use tokio::io::AsyncWriteExt;

use crate::world::{finish, spec, tenant, within, world};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_as_the_tenants_user_and_its_output_and_code_come_back() {
    let Some(world) = world("commands") else { return };
    let me = world.make("me").await;
    let done = world.run(&me, "id -u; id -un; pwd; echo oops >&2; exit 7").await;
    assert_eq!(done.stdout, "1000\nagent\n/home/agent\n");
    assert_eq!(done.stderr, "oops\n");
    assert_eq!(done.exit, Exit::Code(7));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_end_is_told_apart() {
    let Some(world) = world("endings") else { return };
    let me = world.make("me").await;
    for (command, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 255", Exit::Code(255)),
        ("exit 137", Exit::Code(137)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -SEGV $$", Exit::Signal(11)),
        ("no-such-program", Exit::Code(127)),
        ("/etc/passwd", Exit::Code(126)),
    ] {
        assert_eq!(world.run(&me, command).await.exit, exit, "{command}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_any_length_runs_and_one_with_a_zero_byte_is_refused() {
    let Some(world) = world("lengths") else { return };
    let me = world.make("me").await;
    for length in [100, 16_383, 16_384, 16_385, 131_070, 131_071, 131_072, 131_073, 1_000_000] {
        let begin = "set -- '";
        let end = "'; echo ${#1}; ls /proc/self/fd | tr '\\n' ' '";
        let filler = length - begin.len() - end.len();
        let done = world.run(&me, &format!("{begin}{}{end}", "x".repeat(filler))).await;
        assert_eq!(done.exit, Exit::Code(0), "{length}: {}", done.stderr);
        assert_eq!(done.stdout, format!("{filler}\n0 1 2 3 "), "{length}");
    }
    let refused = world.backend.start(&me, spec("echo \0")).await;
    assert!(matches!(refused, Err(BackendError::Step { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn standard_input_is_what_was_fed_or_nothing() {
    let Some(world) = world("stdin") else { return };
    let me = world.make("me").await;
    assert_eq!(world.says(&me, "cat | wc -c").await, "0");
    for size in [0usize, 1, 65_536, 3 << 20] {
        let mut started = world.backend.start(&me, CommandSpec { stdin: true, ..spec("wc -c") }).await.unwrap();
        let mut stdin = started.stdin.take().unwrap();
        let fed = async move {
            stdin.write_all(&vec![7; size]).await.unwrap();
            drop(stdin);
        };
        let (done, ()) = tokio::join!(finish(started), fed);
        assert_eq!(done.stdout.trim(), size.to_string());
    }
    let mut started = world.backend.start(&me, CommandSpec { stdin: true, ..spec("true") }).await.unwrap();
    let mut stdin = started.stdin.take().unwrap();
    let refused = within(stdin.write_all(&vec![7; 3 << 20])).await;
    assert!(refused.is_err(), "a reader that is gone is an error, not a wait");
    assert_eq!(finish(started).await.exit, Exit::Code(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_begins_where_it_was_asked_to() {
    let Some(world) = world("cwd") else { return };
    let me = world.make("me").await;
    let started =
        world.backend.start(&me, CommandSpec { cwd: Some("/workspace".to_owned()), ..spec("pwd") }).await.unwrap();
    assert_eq!(finish(started).await.stdout, "/workspace\n");
    world.says(&me, "mkdir -p d/e").await;
    for (relative, whole) in [("d/e", "/home/agent/d/e"), (".", "/home/agent"), ("../..", "/")] {
        let started = world.backend.start(&me, CommandSpec { cwd: Some(relative.to_owned()), ..spec("pwd") }).await;
        assert_eq!(finish(started.unwrap()).await.stdout, format!("{whole}\n"));
    }
    for nowhere in ["/nowhere", "nowhere", "/etc/passwd", "", "/proc/1/cwd", &"x".repeat(5000), &"x".repeat(1 << 20)] {
        let refused = world.backend.start(&me, CommandSpec { cwd: Some(nowhere.to_owned()), ..spec("pwd") }).await;
        assert!(matches!(refused, Err(BackendError::NoDirectory(_))), "{nowhere}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_is_made_and_not_inherited() {
    let Some(world) = world("environment") else { return };
    let me = world.make("me").await;
    let started = world.backend.start(&me, CommandSpec { shell: Shell::Clean, ..spec("env | sort") }).await.unwrap();
    let names: Vec<String> = finish(started)
        .await
        .stdout
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        .collect();
    assert_eq!(
        names,
        [
            "GIT_CONFIG_SYSTEM",
            "GIT_PAGER",
            "HOME",
            "LANG",
            "LOGNAME",
            "PAGER",
            "PATH",
            "PERSONA",
            "PWD",
            "SHELL",
            "TERM",
            "USER"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn thirty_two_commands_at_once_keep_their_outputs_apart() {
    let Some(world) = world("parallel") else { return };
    let me = world.make("me").await;
    let runs = (0..32).map(|n| {
        let (world, me) = (&world, &me);
        async move {
            let done = world.run(me, &format!("echo {n} > /tmp/f.{n}; cat /tmp/f.{n}; exit {n}")).await;
            assert_eq!((done.stdout, done.exit), (format!("{n}\n"), Exit::Code(n)));
        }
    });
    let mut set = Vec::new();
    for run in runs {
        set.push(Box::pin(run));
    }
    for run in set {
        run.await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_numbers_of_processes_are_those_that_proc_shows() {
    let Some(world) = world("numbers") else { return };
    let me = world.make("me").await;
    let said = world.says(&me, "read pid rest < /proc/self/stat; test $pid = $$ && { sleep 5 >/dev/null 2>&1 & test -d /proc/$! && echo same; kill $!; }").await;
    assert_eq!(said, "same");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_was_never_made_cannot_be_opened() {
    let Some(world) = world("unmade") else { return };
    let nobody = tenant("nobody");
    assert!(matches!(world.backend.open(&nobody).await, Err(BackendError::NotProvisioned(_))));
    assert!(!world.state.path().join("tenants/nobody").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_made_a_program_run_and_the_work_committed() {
    let Some(world) = world("work") else { return };
    let me = world.make("me").await;
    let said = world
        .says(
            &me,
            "cd /workspace && git init -q p && cd p && \
             printf 'echo $((6*7))\\n' > p.sh && sh p.sh && git add . && git commit -qm first && git log --oneline | wc -l",
        )
        .await;
    assert_eq!(said, "42\n1");
    let author = "cd /workspace/p && git log -1 --format='%an <%ae>' && git branch --show-current";
    assert_eq!(world.says(&me, author).await, "agent <agent@localhost>\nmain");
    let own = "git config --global user.name me && cd /workspace/p && git commit -q --allow-empty -m second";
    assert_eq!(world.says(&me, &format!("{own} && git log -1 --format='%an <%ae>'")).await, "me <agent@localhost>");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_folder_to_begin_in_leads_outside() {
    let Some(world) = world("cwd outside") else { return };
    let me = world.make("me").await;
    world.says(&me, "ln -s /proc/self/fd/7 a; ln -s /proc/1/cwd b; ln -s /proc/1/root c; ln -s /proc/self/root/.. d; mkdir -m 0 shut").await;
    // Where everybody could read it who got out.
    let outside = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let canary = outside.path().join("canary");
    std::fs::write(&canary, "canary").unwrap();
    let climb = "../".repeat(40);
    let descriptors: Vec<String> = (0..32).map(|number| format!("/proc/self/fd/{number}")).collect();
    let names = [
        "/proc/1/cwd",
        "/proc/1/root",
        "/proc/self/root/..",
        "/proc/self/cwd",
        "/dev/fd/7",
        "a",
        "b",
        "c",
        "d",
        &climb,
        "",
        "zero\0",
        "shut",
    ];
    for cwd in names.into_iter().chain(descriptors.iter().map(String::as_str)) {
        let command =
            format!("pwd -P; cat {0} .{0} {climb}{0} 2>/dev/null; ls {climb}boot 2>/dev/null", canary.display());
        let spec = CommandSpec { cwd: Some(cwd.to_owned()), ..spec(&command) };
        // Refused, or in the tenant's own root.
        if let Ok(started) = world.backend.start(&me, spec).await {
            let done = finish(started).await;
            assert_eq!(done.stdout, "/\n", "{cwd}: {done:?}");
        }
    }
    assert_eq!(world.says(&me, "echo alive").await, "alive");
}
