//! A folder of this host is the guest; its shell and its programs are real.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kit::Tenant;

use super::CleanShell;
use crate::backend::host::{Argv, End, Ending, Local, Output, Recording, RunError, Surroundings};
use crate::backend::{BackendError, ControlLost, Exit, FileError, GuestPath, Killed, Pending, Written};

struct Guest {
    folder: tempfile::TempDir,
    runner: Local,
}

/// Whose end is always a proof.
struct Sure;

impl Ending for Sure {
    fn prove(&self, _: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async { Ok(Killed::Command) })
    }
}

/// A wrapper whose code is the proof, and nothing else is.
struct Wrapped;

impl Wrapped {
    fn fault() -> ControlLost {
        ControlLost { tenant: Tenant::parse("alice").unwrap(), reason: "it was killed".to_owned() }
    }
}

impl Ending for Wrapped {
    fn prove(&self, end: End) -> Pending<'_, Result<Killed, ControlLost>> {
        Box::pin(async move { if end == End::Forced { Err(Self::fault()) } else { Ok(Killed::Command) } })
    }

    fn lost(&self, exit: &Exit) -> Option<ControlLost> {
        matches!(exit, Exit::Signal(_)).then(Self::fault)
    }
}

const LIMIT: Duration = Duration::from_secs(1);

impl Guest {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self { folder, runner: Local::new(Surroundings::default()) }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    async fn work<T>(&self, work: impl AsyncFnOnce(CleanShell<'_>) -> T) -> T {
        let home = self.home();
        let inside = |words: Vec<String>| {
            let (program, rest) = words.split_first().unwrap();
            Argv::new(program.clone(), rest.to_vec())
        };
        let home = home.to_str().unwrap();
        let limit = Duration::from_secs(60);
        work(CleanShell { runner: &self.runner, inside: &inside, home, limit, ending: &Sure }).await
    }

    async fn read(&self, path: &str, most: u64) -> Result<Vec<u8>, FileError> {
        self.work(async |shell| shell.read(&at(path), most).await).await
    }

    async fn write(&self, path: &str, content: &[u8]) -> Result<Written, FileError> {
        self.work(async |shell| shell.write(&at(path), content).await).await
    }

    async fn append(&self, path: &str, content: &[u8]) -> Result<Written, FileError> {
        self.work(async |shell| shell.append(&at(path), content).await).await
    }
}

fn at(path: &str) -> GuestPath {
    GuestPath { cwd: None, path: path.to_owned() }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether modes keep anybody out here: they do not keep out root.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[tokio::test]
async fn what_was_written_is_read_again_byte_for_byte() {
    let guest = Guest::new();
    let content: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let written = guest.write("a", &content).await.unwrap();
    assert_eq!(written, Written { bytes: 100_000, created: true, size: 100_000 });
    assert_eq!(guest.read("a", 100_000).await.unwrap(), content);
    assert_eq!(fs::metadata(guest.home().join("a")).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(names(&guest.home()), ["a"]);
}

#[tokio::test]
async fn a_file_is_replaced_and_keeps_its_mode() {
    let guest = Guest::new();
    let file = guest.home().join("a");
    fs::write(&file, "much more than before").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    let written = guest.write("a", b"new").await.unwrap();
    assert_eq!(written, Written { bytes: 3, created: false, size: 3 });
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(guest.write("a", b"").await.unwrap().size, 0);
}

#[tokio::test]
async fn names_that_a_shell_would_take_for_something_else_are_names() {
    let guest = Guest::new();
    for name in ["-n", "a b", "$(touch x)", "`touch x`", "a'b\"c", "*", "~", "a\nb", "é", ";touch x", "--"] {
        guest.write(name, name.as_bytes()).await.unwrap();
        assert_eq!(fs::read(guest.home().join(name)).unwrap(), name.as_bytes(), "{name:?}");
        assert_eq!(guest.append(name, b"!").await.unwrap().size, name.len() as u64 + 1, "{name:?}");
        assert_eq!(guest.read(name, 100).await.unwrap(), [name.as_bytes(), b"!"].concat(), "{name:?}");
    }
    assert!(!guest.home().join("x").exists());
}

#[tokio::test]
async fn a_path_begins_in_the_home_the_cwd_or_the_root() {
    let guest = Guest::new();
    fs::create_dir_all(guest.home().join("deep er")).unwrap();
    let inside = |cwd: &str, path: &str| GuestPath { cwd: Some(cwd.to_owned()), path: path.to_owned() };
    let root = guest.home().join("c").to_str().unwrap().to_owned();
    for path in [at("a"), inside("deep er", "b"), inside("deep er", &root)] {
        guest.work(async |shell| shell.write(&path, b"it").await).await.unwrap();
    }
    assert_eq!(names(&guest.home()), ["a", "c", "deep er"]);
    assert_eq!(names(&guest.home().join("deep er")), ["b"]);
    let fault = guest.work(async |shell| shell.read(&inside("none", "b"), 9).await).await.unwrap_err();
    assert!(matches!(&fault, FileError::NotFound(path) if path == "none/b"), "{fault}");
}

#[tokio::test]
async fn a_file_at_the_bound_is_read_and_one_byte_more_is_refused() {
    let guest = Guest::new();
    fs::write(guest.home().join("a"), vec![b'x'; 1000]).unwrap();
    assert_eq!(guest.read("a", 1000).await.unwrap().len(), 1000);
    let fault = guest.read("a", 999).await.unwrap_err();
    assert!(matches!(fault, FileError::TooLarge { size: 1000, most: 999, .. }), "{fault}");
    // It has no size before it is read.
    let fault = guest.read("/proc/self/status", 10).await.unwrap_err();
    assert!(matches!(fault, FileError::TooLarge { most: 10, .. }), "{fault}");
}

#[tokio::test]
async fn what_is_no_file_is_told_by_its_kind() {
    let guest = Guest::new();
    fs::create_dir(guest.home().join("folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        guest.home().join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(guest.home().join("socket")).unwrap();
    for (path, wanted) in [
        ("folder", "is a directory"),
        ("folder/", "is a directory"),
        ("pipe", "is a named pipe"),
        ("socket", "is a socket"),
        ("/dev/null", "is a character device"),
        ("none", "no such file"),
        ("none/deeper", "no such file"),
        ("pipe/deeper", "no such file"),
    ] {
        let fault = guest.read(path, 10).await.unwrap_err().to_string();
        assert!(fault.contains(wanted), "read {path}: {fault}");
        if path == "none" {
            continue;
        }
        let fault = guest.write(path, b"x").await.unwrap_err().to_string();
        assert!(fault.contains(wanted), "write {path}: {fault}");
        let fault = guest.append(path, b"x").await.unwrap_err().to_string();
        assert!(fault.contains(wanted), "append {path}: {fault}");
    }
    assert!(matches!(guest.read("", 1).await, Err(FileError::NotFound(_))));
    assert!(guest.read("a\0b", 1).await.unwrap_err().to_string().contains("zero byte") || cfg!(not(test)));
    assert_eq!(names(&guest.home()), ["folder", "pipe", "socket"]);
}

#[tokio::test]
async fn a_link_is_followed_and_stays() {
    let guest = Guest::new();
    fs::create_dir(guest.home().join("far")).unwrap();
    fs::write(guest.home().join("far/file"), "old").unwrap();
    symlink("far/file", guest.home().join("link")).unwrap();
    symlink("nowhere/file", guest.home().join("dangling")).unwrap();
    guest.write("link", b"new").await.unwrap();
    guest.append("link", b"er").await.unwrap();
    assert_eq!(guest.read("link", 100).await.unwrap(), b"newer");
    assert_eq!(fs::read(guest.home().join("far/file")).unwrap(), b"newer");
    assert!(guest.home().join("link").is_symlink());
    assert!(matches!(guest.write("dangling", b"x").await, Err(FileError::NotFound(_))));
    assert_eq!(names(&guest.home().join("far")), ["file"]);
}

#[tokio::test]
async fn an_append_makes_what_is_not_there_and_adds_to_what_is() {
    let guest = Guest::new();
    assert_eq!(guest.append("a", b"one").await.unwrap(), Written { bytes: 3, created: true, size: 3 });
    assert_eq!(guest.append("a", b"two").await.unwrap(), Written { bytes: 3, created: false, size: 6 });
    assert_eq!(fs::read(guest.home().join("a")).unwrap(), b"onetwo");
}

#[tokio::test]
async fn parents_are_made_and_those_that_are_there_stay() {
    let guest = Guest::new();
    let parents = |path: &'static str| guest.work(async move |shell| shell.make_parents(&at(path)).await);
    for path in ["a", "-x/y/b", "-x/y/c"] {
        parents(path).await.unwrap();
    }
    assert!(guest.home().join("-x/y").is_dir());
    parents("/a").await.unwrap();
    fs::write(guest.home().join("file"), "").unwrap();
    let fault = parents("file/a/b").await.unwrap_err();
    assert!(matches!(fault, FileError::NotFound(_)), "{fault}");
}

#[tokio::test]
async fn a_denied_write_leaves_the_old_content_and_no_neighbour() {
    if is_root() {
        // What only the kernel's flag keeps root from is proven where that flag is.
        let fault = Guest::new().write("/proc/none", b"x").await.unwrap_err();
        assert!(matches!(fault, FileError::NotFound(_) | FileError::Denied(_)), "{fault}");
        return;
    }
    let guest = Guest::new();
    let file = guest.home().join("a");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(matches!(guest.write("a", b"new").await, Err(FileError::Denied(_))));
    assert!(matches!(guest.append("a", b"new").await, Err(FileError::Denied(_))));
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_eq!(names(&guest.home()), ["a"]);
}

#[tokio::test]
async fn a_full_disk_is_told_and_nothing_half_written_stays() {
    let guest = Guest::new();
    let fault = guest.append("/dev/full", b"x").await.unwrap_err();
    // No regular file is full on every host; this one is refused for its kind, and the words are tried below.
    assert!(matches!(fault, FileError::NotRegular { .. }), "{fault}");
    for (code, said, wanted) in [
        (1, "cat: write error: No space left on device", "no space left"),
        (1, "cat: stdout: Disc quota exceeded", "no space left"),
        (95, "10 4", "only 4 of 10 bytes"),
        (1, "cat: Read-only file system", "permission denied"),
        (1, "sh: cannot create b: Directory nonexistent", "no such file"),
        (77, "something\nelse", "something; else"),
    ] {
        let runner = Recording::new(move |_| Ok(Output::bad(code, said)));
        let inside = |words: Vec<String>| Argv::new("jexec", words);
        let shell = CleanShell { runner: &runner, inside: &inside, home: "/", limit: LIMIT, ending: &Sure };
        let fault = shell.write(&at("a"), b"0123456789").await.unwrap_err();
        assert!(kit::chain(&fault).contains(wanted), "{said}: {}", kit::chain(&fault));
    }
}

#[tokio::test]
async fn a_script_whose_wrapper_proves_nothing_any_more_is_a_loss_of_control() {
    type Outcome = Box<dyn Fn() -> Result<Output, RunError> + Send + Sync>;

    let late = |end: &End| RunError::TimedOut {
        program: "it".to_owned(),
        limit: LIMIT,
        said: String::new(),
        end: end.clone(),
    };
    let killed = || Ok(Output { exit: Exit::Signal(9), stdout: Vec::new(), stderr: Vec::new() });
    let (heeded, forced) = (End::Yielded(Exit::Code(143)), End::Forced);
    let outcomes: [(Outcome, bool); 4] = [
        (Box::new(killed), true),
        (Box::new(move || Err(late(&forced))), true),
        (Box::new(move || Err(late(&heeded))), false),
        (Box::new(|| Ok(Output::bad(137, ""))), false),
    ];
    for (outcome, is_loss) in outcomes {
        let runner = Recording::new(move |_| outcome());
        let inside = |words: Vec<String>| Argv::new("jexec", words);
        let shell = CleanShell { runner: &runner, inside: &inside, home: "/", limit: LIMIT, ending: &Wrapped };
        let fault = shell.write(&at("a"), b"0123456789").await.unwrap_err();
        let lost = matches!(&fault, FileError::Backend(BackendError::ControlLost(_)));
        assert_eq!(lost, is_loss, "{}", kit::chain(&fault));
    }
}
