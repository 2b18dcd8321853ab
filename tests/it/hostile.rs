//! Commands that nobody should run, and what comes of each: a tree that is dead when its state says so, a worker whose
//! memory does not grow, and neighbours who are answered meanwhile.

use std::time::Duration;

use serde_json::{Value, json};

use crate::process::PATIENCE;
use crate::served::{Member, Served, text};

/// `(what, a command that would go on for ever)`: each is cancelled and timed out.
const ENDLESS: &[(&str, &str)] = &[
    ("a flood of lines", "yes"),
    ("a flood of zeros", "cat /dev/zero"),
    ("a flood on both streams", "yes & cat /dev/zero >&2"),
    ("a shell that waits for sleepers", "sleep 1000 & nohup sleep 1000 & wait"),
    ("a fork bomb", "bash -c ':(){ :|:& };:' 2>/dev/null & exec sleep 1000"),
    (
        "a fork bomb in new sessions",
        "b() { setsid sh -c 'sleep 60' & b 2>/dev/null & b 2>/dev/null; }; (b) & exec sleep 1000",
    ),
    (
        "children that never end",
        "python3 -c 'import os,time\n[os.fork() or time.sleep(60) for _ in iter(int,1)]' & exec sleep 1000",
    ),
    (
        "forks that end at once",
        "for n in 1 2 3 4 5 6 7 8; do setsid sh -c 'while :; do (setsid true &); done' 2>/dev/null & done; wait",
    ),
    (
        "a vfork bomb",
        "cat > v.py <<'E'\nimport subprocess,sys\nwhile True:\n  try: subprocess.Popen([sys.executable,__file__])\n  except OSError: pass\nE\n\
         python3 v.py 2>/dev/null",
    ),
    (
        "a hundred thousand threads",
        "cat > t.py <<'E'\nimport threading,time\nthreading.stack_size(65536)\nstarted = 0\nfor _ in range(100000):\n  try: \
         threading.Thread(target=time.sleep,args=(1000,),daemon=True).start(); started += 1\n  except RuntimeError: \
         break\nprint(started,flush=True)\ntime.sleep(1000)\nE\npython3 t.py",
    ),
    (
        "processes that stand still",
        "sh -c 'kill -STOP $$' & setsid sh -c 'trap \"\" TERM; kill -STOP $$' & kill -STOP $$",
    ),
    (
        "a tracer that holds its children",
        "cat > p.py <<'E'\nimport ctypes,os,signal,time\nlibc = ctypes.CDLL(None)\nfor _ in range(5):\n  pid = \
         os.fork()\n  if pid == 0:\n    libc.ptrace(0,0,0,0); os.kill(os.getpid(),signal.SIGSTOP); time.sleep(1000)\n  \
         os.waitpid(pid,os.WUNTRACED)\nsignal.pthread_sigmask(signal.SIG_BLOCK,range(1,64))\nprint('held',flush=True)\n\
         while True: time.sleep(1000)\nE\npython3 p.py",
    ),
    (
        "signals that are not heard",
        "trap '' TERM INT HUP QUIT; (setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' &); ( ( sleep 1000 & ) & ); \
         while :; do sleep 1000; done",
    ),
];

#[test]
fn nothing_of_a_hostile_command_is_alive_when_it_is_said_to_have_been_stopped() {
    let Some(served) = Served::with("hostile commands", &["alice", "bob"]) else { return };
    let (alice, bob) = (served.member(0), served.member(1));
    alice.says("true");
    bob.says("true");
    for (what, command) in ENDLESS {
        let before = kit::clock::now();
        let result = alice.exec(command, &json!({ "timeout_ms": 700 }));
        assert_dead(&served, what, "timed out");
        assert_eq!(result["_meta"]["kind"], "timed_out", "{what}: {result}");
        assert!(text(&result).ends_with("[exit 124]"), "{what}: {result}");
        let took = kit::clock::now().saturating_duration_since(before);
        assert!(took < Duration::from_secs(10), "{what} took {took:?}");

        let job = alice.job(command, &json!({}));
        until_it_stands(&served, what);
        assert_eq!(bob.says("echo calm"), "calm\n[exit 0]", "{what}");
        alice.client.call("job_cancel", &json!({ "job_id": job }));
        let (_output, last) = to_the_last_page(&alice, &job);
        assert_dead(&served, what, "cancelled");
        assert_eq!(last["terminal"]["kind"], "cancelled", "{what}: {last}");
        assert_eq!(alice.says("echo next"), "next\n[exit 0]", "{what}");
    }
    served.end();
}

#[test]
fn as_many_threads_and_processes_as_a_tenant_may_have_and_not_one_more() {
    let settings = json!({ "tenants": { "processes": 100 } });
    let Some(served) = Served::with_settings("the bound on processes", &["alice"], &settings) else { return };
    let alice = served.member(0);
    let forks = "python3 -c 'import os,time\nn = 0\ntry:\n  while os.fork(): n += 1\n  time.sleep(60)\nexcept OSError as \
                 fault: print(fault.errno, n)\n'";
    let said = alice.says(&format!("{forks}; pkill -9 python3 || kill -9 -1"));
    let (errno, forked) = said.lines().next().expect("a line").split_once(' ').expect("two words");
    assert_eq!(errno, "11", "EAGAIN: {said}");
    let forked: u64 = forked.parse().expect("a number");
    assert!((80..100).contains(&forked), "{forked}");
    served.end();
}

#[test]
fn a_flood_of_output_costs_the_worker_no_memory_and_is_counted_to_the_byte() {
    let Some(served) = Served::with("a flood of output", &["alice"]) else { return };
    let alice = served.member(0);
    // The rings, the pipes and the allocator reach their size with the first megabytes.
    alice.exec("head -c 20000000 /dev/zero", &json!({}));
    alice.follow(&alice.job("head -c 20000000 /dev/zero", &json!({})), &json!({}));
    let worker = served.service.child("__worker").id;
    let before = peak(worker);
    let bytes = (flood() << 20) + 17;
    let command = format!("head -c {bytes} /dev/zero");
    let result = alice.exec(&command, &json!({ "timeout_ms": 600_000 }));
    assert_eq!(result["_meta"]["stdout_bytes"], bytes, "{}", result["_meta"]);
    let shown = bytes - result["_meta"]["cut_bytes"].as_u64().expect("a number");
    assert!((8_000..=17_000).contains(&shown), "{shown} bytes shown");
    let job = alice.job(&command, &json!({}));
    let mut last = alice.poll(&job, u64::MAX, &json!({}));
    while last["state"] != "terminal" {
        last = alice.poll(&job, u64::MAX, &json!({}));
    }
    let (kept, page) = alice.follow(&job, &json!({ "max_output_bytes": 45_000 }));
    let first = alice.poll(&job, 0, &json!({}));
    let dropped = first["dropped_bytes"].as_u64().expect("a number");
    assert_eq!(dropped + kept.len() as u64, bytes, "{page}");
    assert!(kept.len() <= 4 << 20, "{}", kept.len());
    let grown = peak(worker).saturating_sub(before);
    println!("{} MiB of output, twice: the worker's peak grew by {grown} KiB from {before} KiB", flood());
    assert!(grown < 16 << 10, "{grown} KiB");
    served.end();
}

#[test]
fn bytes_that_are_no_text_come_back_as_text_and_are_counted() {
    let Some(served) = Served::with("binary output", &["alice"]) else { return };
    let alice = served.member(0);
    let result = alice.exec("printf 'a\\377b\\000c\\342\\202'", &json!({}));
    let said = text(&result);
    assert!(said.starts_with("a\u{fffd}b\0c\u{fffd}\n[note] ") && said.ends_with("[exit 0]"), "{said}");
    assert!(said.contains("not UTF-8") && said.contains("base64"), "it says how the exact bytes can be had: {said}");
    assert_eq!(result["_meta"]["stdout_bytes"], 7);
    let result = alice.exec("head -c 5000 /dev/urandom; head -c 5000 /dev/urandom >&2", &json!({}));
    assert_eq!((&result["_meta"]["stdout_bytes"], &result["_meta"]["stderr_bytes"]), (&json!(5000), &json!(5000)));
    served.end();
}

#[test]
fn what_is_left_in_the_background_lives_on_and_ends_with_the_sandbox() {
    let Some(served) = Served::with("background", &["alice"]) else { return };
    let alice = served.member(0);
    for command in [
        "sleep 1000 & echo done",
        "nohup sleep 1000 & echo done",
        "exec 3>&1; sleep 1000 3>&1 >/dev/null 2>&1 & echo done",
    ] {
        let began = kit::clock::now();
        let said = alice.says(command);
        let took = kit::clock::now().saturating_duration_since(began);
        assert!(said.starts_with("done\n") && said.ends_with("[exit 0]"), "{command}: {said}");
        assert!(took < Duration::from_secs(5), "{command} took {took:?}");
    }
    assert_eq!(served.living_commands().len(), 3, "the positive control");
    let family = served.service.family();
    served.end();
    assert!(family.iter().all(|process| process.gone_within(Duration::ZERO)));
}

#[test]
fn the_bomb_as_it_is_usually_typed_is_a_fault_of_the_shell_or_held() {
    let Some(served) = Served::with("the bomb", &["alice"]) else { return };
    let alice = served.member(0);
    // Not every shell takes a colon for a name; where it does, the shell itself ends and its bomb goes on behind it.
    let result = alice.exec(":(){ :|:& };:", &json!({ "timeout_ms": 5000 }));
    assert!(text(&result).contains("[exit "), "{result}");
    assert_eq!(alice.says("echo next"), "next\n[exit 0]");
    served.end();
}

#[test]
fn no_dead_process_waits_for_its_parent() {
    let Some(served) = Served::with("zombies", &["alice"]) else { return };
    let alice = served.member(0);
    let orphans = "for i in $(seq 500); do (sleep 0.1 &) ; done";
    for _ in 0..4 {
        alice.says(orphans);
    }
    // Cut off half-way as well.
    alice.exec(&format!("{orphans}; sleep 1000"), &json!({ "timeout_ms": 300 }));
    let deadline = kit::clock::now() + PATIENCE;
    let worker = served.service.child("__worker").id;
    loop {
        let below = crate::process::family_of(worker);
        let left = below.iter().filter(|process| crate::process::parent_of(process.id) != Some(worker)).count();
        if left == 0 {
            break;
        }
        assert!(kit::clock::now() < deadline, "{left} processes are left, dead or alive");
        std::thread::yield_now();
    }
    served.end();
}

/// Reads a job to its end without keeping what it wrote, which may be without bound.
fn to_the_last_page(member: &Member, job: &str) -> ((), Value) {
    let deadline = kit::clock::now() + PATIENCE;
    loop {
        let page = member.poll(job, u64::MAX, &json!({}));
        if page["state"] == "terminal" {
            return ((), page);
        }
        assert!(kit::clock::now() < deadline, "{page}");
    }
}

/// The command has begun, and its tree is there to be killed.
fn until_it_stands(served: &Served, what: &str) {
    let deadline = kit::clock::now() + PATIENCE;
    while served.living_commands().is_empty() {
        assert!(kit::clock::now() < deadline, "{what} never began");
    }
}

fn assert_dead(served: &Served, what: &str, how: &str) {
    let left = served.living_commands();
    let names: Vec<_> = left.iter().map(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline"))).collect();
    assert!(left.is_empty(), "{what} was {how} and lives on: {names:?}");
}

/// The most memory that a process has had, in KiB.
fn peak(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
    line.split_whitespace().next().expect("a number").parse().expect("a number")
}

/// How many MiB a flood has; the long run's are 5 GiB.
fn flood() -> u64 {
    std::env::var_os("PLAYGROUND_FLOOD_MIB")
        .map_or(300, |text| text.to_str().and_then(|text| text.parse().ok()).expect("a number"))
}
