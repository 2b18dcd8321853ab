"""Every refusal of the services: what is wrong on the host, and the words that say so."""

import json
import os
from dataclasses import dataclass
from typing import Callable

from host import CONFIG, FACULTIES, JAIL, MANIFEST, TOKEN, Host

MCP, SANDBOX = "playground_mcp", "playground_sandbox"
KEY = "/usr/local/etc/playground-workers/alice.key"
SANDBOX_TOKEN = "/usr/local/etc/playground/sandbox.token"


@dataclass
class Refusal:
    service: str
    name: str
    prepare: Callable[[Host], object]
    says: str
    # Which of the tools that come later must not have been reached.
    reaches: tuple[str, ...] = ()
    uid: int = 0


REFUSALS: list[Refusal] = []
STARTS = ("start", "forcestart")


def refused(host: Host, refusal: Refusal) -> None:
    """However it is started, it is refused in its own words, and nothing is started and no token crosses."""
    refusal.prepare(host)
    # At boot as well, for what is the host's own.
    starts = (*STARTS, "faststart") if refusal.says.startswith(("security.", "kern.")) else STARTS
    for step, told in zip(starts, host.run(refusal.service, *starts, uid=refusal.uid)):
        assert told.code == 1, (step, told)
        assert f"{refusal.service} was not started: " in told.err, (step, told)
        assert refusal.says in told.err, (step, told)
        assert "Starting" not in told.out, (step, told)
    assert not host.calls("daemon") and not host.calls("faculties")
    for late in {"playground", "jexec"} - set(refusal.reaches):
        assert not host.calls(late), f"{late} was reached"
    staged = host.jail("/var/run/faculties-mcp")
    if staged.is_dir() and not staged.is_symlink():
        left = [at for at in staged.iterdir() if at.is_file() and TOKEN.encode() in at.read_bytes()]
        assert not left, f"a token was left in the jail: {left}"


def refuses(service, name, says, prepare, **other):
    REFUSALS.append(Refusal(service, name, prepare, says, **other))



def linked(host, path):
    """The same file, behind a link."""
    os.rename(host.path(path), host.path(path + ".real"))
    host.path(path).symlink_to(path + ".real")


def folder(host, path):
    host.path(path).unlink(missing_ok=True)
    host.path(path).mkdir()


# --- the host

for service in (MCP, SANDBOX, FACULTIES):
    for setting, values, says in (
            ("security.jail.jailed", (0, None), "security.jail.jailed is not 1"),
            ("security.jail.enforce_statfs", (1, 2, None), "security.jail.enforce_statfs is not 0"),
            ("security.jail.devfs_ruleset", (0, 5, None), "security.jail.devfs_ruleset is not 4"),
            ("kern.racct.enable", (0, None), "kern.racct.enable is not 1"),
            ("kern.securelevel", (0, -1, None, "high"), "kern.securelevel is below 1")):
        for value in values:
            refuses(service, f"{setting} is {'unknown' if value is None else value}", says,
                    lambda host, setting=setting, value=value: host.sysctl(setting, value))
    refuses(service, "another user than root", "only root may start it or ask for it", lambda host: None, uid=65534)
    for unread in ("env", "env_file", "limits", "login_class", "user", "group", "groups", "nice", "fib", "chroot", "chdir", "prepend"):
        refuses(service, f"rc.conf has its {unread}", f"{service}_{unread} is set in /etc/rc.conf and changes nothing here",
                lambda host, service=service, unread=unread: host.rc_conf(f"{service}_{unread}=/x\n"))
    refuses(service, "its program is missing", "/usr/local/bin/playground is no program that can be run",
            lambda host: host.path("/usr/local/bin/playground").unlink())
    refuses(service, "its program may not be run", "/usr/local/bin/playground is no program that can be run",
            lambda host: host.path("/usr/local/bin/playground").chmod(0o644))
    refuses(service, "its program is a folder", "is no program that can be run",
            lambda host: (host.path("/usr/local/bin/playground").unlink(), host.path("/usr/local/bin/playground").mkdir()))

    log, reaches = f"/var/log/{service}.log", ("playground",) if service == FACULTIES else ()
    for name, says, prepare in (
            ("a link", "is no regular file of root's (0 Symbolic Link)",
             lambda host, log=log: host.path(log).symlink_to("/etc/passwd")),
            ("a link to nowhere", "is no regular file of root's (0 Symbolic Link)",
             lambda host, log=log: host.path(log).symlink_to("/var/log/nowhere")),
            ("a folder", "is no regular file of root's (0 Directory)", lambda host, log=log: folder(host, log)),
            ("another user's", "is no regular file of root's (1001 Regular File)",
             lambda host, log=log: (host.write(log, "", 0o600), os.chown(host.path(log), 1001, 1001))),
            ("in no folder", "cannot be made; make its folder",
             lambda host, service=service: host.rc_conf(f"{service}_logfile=/var/log/none/x.log\n")),
            ("no absolute path", "is no absolute path; set " + service + "_logfile",
             lambda host, service=service: host.rc_conf(f"{service}_logfile=x.log\n")),
            ("not to be made private", "cannot be set to 0600",
             lambda host: host.write("/bin/chmod", "#!/host/bin/dash\nexit 1\n", 0o755))):
        refuses(service, f"the log is {name}", says, prepare, reaches=reaches)

# --- files that only root may have written and only root may read


def private(service, what, path, most, reaches=()):
    for name, says, prepare in (
            ("missing", f"{path} is missing; make it, owned by root", lambda host: host.path(path).unlink()),
            ("a link", f"{path} is a Symbolic Link; put the file itself there", lambda host: linked(host, path)),
            ("a folder", f"{path} is a Directory", lambda host: folder(host, path)),
            ("a pipe", f"{path} is a Fifo File",
             lambda host: (host.path(path).unlink(), os.mkfifo(host.path(path), 0o600))),
            ("another user's", f"{path} belongs to uid 1001", lambda host: os.chown(host.path(path), 1001, 0)),
            ("for its group to read", f"{path} has mode 640", lambda host: host.path(path).chmod(0o640)),
            ("for all to read", f"{path} has mode 644", lambda host: host.path(path).chmod(0o644)),
            ("for others to write", f"{path} has mode 602", lambda host: host.path(path).chmod(0o602)),
            ("a program", f"{path} has mode 700", lambda host: host.path(path).chmod(0o700)),
            ("too large", f"has {most + 1} bytes, more than the {most} that are allowed",
             lambda host: host.write(path, "#" + " " * (most - 1) + "\n", 0o600))):
        refuses(service, f"{what} is {name}", says, prepare, reaches=reaches)


private(SANDBOX, "its token file", SANDBOX_TOKEN, 1026)
private(FACULTIES, "its configuration", CONFIG, 65536)
private(FACULTIES, "its list of workers", MANIFEST, 1048576)
private(FACULTIES, "its token file", KEY, 1026)

refuses(MCP, "its credential store is missing", "the credential store /var/db/playground/tokens.json is missing",
        lambda host: host.path("/var/db/playground/tokens.json").unlink())
refuses(MCP, "its credential store is a folder", "the credential store /var/db/playground/tokens.json is missing",
        lambda host: folder(host, "/var/db/playground/tokens.json"))

# --- a worker's name


def named(name, provides=None):
    def prepare(host):
        services = host.path("/usr/local/etc/rc.d")
        text = (services / FACULTIES).read_text().replace(f"# PROVIDE: {FACULTIES}", f"# PROVIDE: {provides or name}")
        (services / name).write_text(text)
        host.rc_conf("".join(f"{odd}_enable=YES\n" for odd in (name,) if odd.replace("_", "").isalnum()))
    return prepare


for name, says in (("playground_faculties_Alice", "may have a-z, 0-9 and _ in its name"),
                   ("playground_faculties_a-b", "may have a-z, 0-9 and _ in its name"),
                   ("playground_faculties_a.b", "may have a-z, 0-9 and _ in its name"),
                   ("playground_faculties_", "may have a-z, 0-9 and _ in its name"),
                   ("playground_faculties", "this is a template; install it as playground_faculties_INSTANCE"),
                   ("faculties_alice", "this is a template; install it as playground_faculties_INSTANCE")):
    refuses(name, "its own name", says, named(name))
refuses("playground_faculties_bob", "that its file provides another name", "its file does not provide playground_faculties_bob",
        named("playground_faculties_bob", "playground_faculties_alice"))
refuses(FACULTIES, "jq is missing", "/usr/local/bin/jq is no program that can be run; run: pkg install jq",
        lambda host: host.path("/usr/local/bin/jq").unlink())

# --- a worker's configuration


def configured(**changed):
    def prepare(host):
        lines = dict(line.split("=", 1) for line in host.path(CONFIG).read_text().splitlines())
        lines = {name: value for name, value in (lines | changed).items() if value is not None}
        host.write(CONFIG, "".join(f"{name}={value}\n" for name, value in lines.items()), 0o600)
    return prepare


refuses(FACULTIES, "a configuration that sh cannot read", "cannot be read as lines of NAME=VALUE",
        lambda host: host.write(CONFIG, "worker_tenant=(\n", 0o600))
for name, says, odd in (
        ("worker_tenant", "must name a tenant", (None, "''", '"a\nb"', '"a\tb"')),
        ("worker_tenant", "has 201 characters, and 200 are allowed", ("x" * 201,)),
        ("worker_manifest", "must be the absolute path of the list of workers", (None, "workers.json", '"/a\nb"')),
        ("worker_pile_root", "must be the absolute path that --jail-pile-root names", (None, "piles", '"/a\tb"')),
        ("worker_state", "must be the absolute path of the state directory", ("state", '"/a\nb"')),
        ("worker_dataset_parent", "must be a ZFS dataset", (None, "/aitemp", "-r", "'a b'", "'a@b'")),
        ("worker_jail_prefix", "must be a word such as playground", (None, "-p", "a.b", "'a b'", "a/b"))):
    for value in odd:
        shown = "missing" if value is None else repr(value) if len(value) < 9 else "long"
        refuses(FACULTIES, f"{name} is {shown}", f"{name} in {CONFIG} {says}", configured(**{name: value}))

# --- its list


def listed(text):
    return lambda host: host.write(MANIFEST, text if isinstance(text, str) else json.dumps(text), 0o600)


def entry(**changed):
    whole = {"tenant": "alice", "address": "127.0.0.1:8401", "token_file": "alice.key"} | changed
    return {name: value for name, value in whole.items() if value is not None}


BOB = entry(tenant="bob", address="127.0.0.1:8402")
GOOD = json.dumps({"workers": [entry()]})
NOT_ONE = "is not one JSON text in which no member stands twice"
for name, says, text in (
        ("empty", NOT_ONE, ""),
        ("no JSON", NOT_ONE, "workers"),
        ("cut off", NOT_ONE, GOOD[:-2]),
        ("two texts", NOT_ONE, GOOD + GOOD),
        ("a member twice", NOT_ONE, GOOD.replace('{"tenant"', '{"tenant":"eve","tenant"')),
        ("the list twice", NOT_ONE, GOOD[:-1] + ',"workers":[]}'),
        ("the list twice, the good one last", NOT_ONE, '{"workers":[],' + GOOD[1:]),
        ("a list alone", "it must be one object with the member workers alone", [entry()]),
        ("null", "it must be one object with the member workers alone", "null"),
        ("no workers", "it must be one object with the member workers alone", "{}"),
        ("one more member", "it must be one object with the member workers alone", {"workers": [entry()], "version": 1}),
        ("workers is an object", "it must be one object with the member workers alone", {"workers": {"alice": entry()}}),
        ("no worker", "it must list 1 to 1024 workers", {"workers": []}),
        ("1025 workers", "it must list 1 to 1024 workers",
         {"workers": [entry(tenant=f"t{at}", address=f"127.0.0.1:{at + 1}") for at in range(1024)] + [entry()]}),
        ("a worker that is a word", "each worker is an object with", {"workers": ["alice"]}),
        ("a worker with a member nobody knows", "each worker is an object with", {"workers": [entry(adress="x")]}),
        ("another worker with such a member", "each worker is an object with", {"workers": [entry(), BOB | {"port": 1}]}),
        ("no tenant", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(tenant=None)]}),
        ("no address", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(address=None)]}),
        ("no token_file", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(token_file=None)]}),
        ("an empty token_file", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(token_file="")]}),
        ("a number for an address", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(address=8401)]}),
        ("a control character in a token_file", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(token_file="a\nb")]}),
        ("a control character in another tenant", "tenant, address and token_file of each worker must be strings, not empty", {"workers": [entry(), BOB | {"tenant": "b\x7f"}]}),
        ("a tenant twice", "a tenant stands there twice", {"workers": [entry(), BOB | {"tenant": "alice"}]}),
        ("another tenant twice", "a tenant stands there twice", {"workers": [entry(), BOB, BOB | {"address": "127.0.0.1:1"}]}),
        ("an address twice", "an address stands there twice", {"workers": [entry(), BOB | {"address": "127.0.0.1:8401"}]}),
        ("only other tenants", "it has no worker for the tenant of this service", {"workers": [BOB]}),
        ("a tenant in other letters", "it has no worker for the tenant of this service", {"workers": [entry(tenant="Alice")]}),
        ("another path", "the path of this tenant must be /", {"workers": [entry(path="/mcp")]})):
    refuses(FACULTIES, f"its list of workers: {name}", f"the list of workers {MANIFEST}{' ' if says == NOT_ONE else ': '}{says}",
            listed(text))
for address in ("127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:080", "127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:123456",
                "127.0.0.2:1", "0.0.0.0:1", "[::]:1", "::1:1", "[::1]1", "localhost:1", "127.0.0.1:1 ", " 127.0.0.1:1", "127.0.0.1:1x",
                "http://127.0.0.1:1", "127.0.0.1:-1", "127x0x0x1:1"):
    refuses(FACULTIES, f"its list of workers: the address {address!r}",
            f"the list of workers {MANIFEST}: the address of this tenant must be 127.0.0.1:PORT or [::1]:PORT",
            listed({"workers": [entry(address=address)]}))
refuses(FACULTIES, "its list of workers: jq fails on it", "cannot be read by jq",
        lambda host: host.write("/model/jq", '#!/host/bin/dash\ncase $* in *--arg*) exit 5 ;; *) exec /host/bin/jq "$@" ;; esac\n', 0o755))

# --- its token


def token(value):
    return lambda host: host.write(KEY, value, 0o600)


ODD = "holds something else than one line of A-Z a-z 0-9"
for name, says, value in (
        ("31 characters", "has 31 characters, and 32 to 1024 are wanted", "a" * 31 + "\n"),
        ("nothing", "has 0 characters, and 32 to 1024 are wanted", ""),
        ("a line end", "has 0 characters, and 32 to 1024 are wanted", "\n"),
        ("1025 characters", "has 1025 characters, and 32 to 1024 are wanted", "a" * 1025),
        ("two lines", ODD, "a" * 32 + "\nb\n"),
        ("an empty line behind", ODD, "a" * 32 + "\n\n"),
        ("an empty line before", ODD, "\n" + "a" * 32),
        ("a carriage return alone", ODD, "a" * 32 + "\r"),
        ("a space", ODD, "a" * 32 + " \n"),
        ("a quote", ODD, "a" * 32 + "'\n"),
        ("a dollar", ODD, "a" * 32 + "$(id)\n"),
        ("a star", ODD, "*" + "a" * 32),
        ("a NUL", "holds bytes that no token has", b"a" * 32 + b"\0\n"),
        ("a letter with an accent", "s", "é" * 20 + "\n")):
    refuses(FACULTIES, f"its token: {name}", says, token(value))
refuses(FACULTIES, "its token: it cannot be read", "cannot be read; look at it with",
        lambda host: host.write("/bin/cat", '#!/host/bin/dash\ncase $1 in *.key) exit 1 ;; *) exec /host/bin/cat "$@" ;; esac\n', 0o755))

# --- its jail

REACHES = ("playground", "jls", "jexec")
refuses(FACULTIES, "the tenant cannot be attached", "the tenant's jail could not be started",
        lambda host: host.model("attach.code", "6"), reaches=("playground",))
refuses(FACULTIES, "what attach prints is no one JSON text", "printed something else than one JSON object",
        lambda host: host.model("attach", "{"), reaches=("playground",))
refuses(FACULTIES, "what attach prints cannot be read by jq", "printed something that jq cannot read",
        lambda host: host.write("/model/jq", '#!/host/bin/dash\ncase $* in *session_id*) exit 5 ;; *) exec /host/bin/jq "$@" ;; esac\n', 0o755),
        reaches=("playground",))
refuses(FACULTIES, "the jail is not there", "the network of the jail playground-gone is not known",
        lambda host: host.model("attach", '{"session_id":"playground-gone","persona":"p"}'), reaches=("playground", "jls"))
for network in ("disable", "new"):
    refuses(FACULTIES, f"the network of its jail is {network!r}", f"runs without the parent jail's network (ip4 is {network})",
            lambda host, network=network: host.model("ip4", network + "\n"), reaches=("playground", "jls"))
refuses(FACULTIES, "its address is of IPv6, and its jail has none", "runs without the parent jail's network (ip6 is disable)",
        lambda host: (host.model("ip6", "disable\n"), listed({"workers": [entry(address="[::1]:8401")]})(host)),
        reaches=("playground", "jls"))
refuses(FACULTIES, "the jail goes before the worker is there", "is not ready for the worker: jexec: jail",
        lambda host: host.write("/usr/sbin/jls", "#!/host/bin/dash\necho inherit\n", 0o755) or
        host.model("attach", '{"session_id":"playground-gone","persona":"p"}'), reaches=("playground", "jexec"))


def in_jail(name, says, prepare):
    refuses(FACULTIES, f"in the jail: {name}", f"the jail {JAIL} is not ready for the worker: {says}", prepare, reaches=REACHES)


def away(path):
    return lambda host: host.jail(path).unlink()


def link_in(path):
    def prepare(host):
        os.rename(host.jail(path), host.jail(path + ".real"))
        host.jail(path).symlink_to(path + ".real")
    return prepare


def folder_in(path):
    def prepare(host):
        if host.jail(path).exists():
            host.jail(path).unlink()
        host.jail(path).mkdir(parents=True)
    return prepare


def fails_in(program, script="exit 1"):
    return lambda host: host.jail(program).write_text(f"#!/host/bin/dash\n{script}\n")


STAGED = "/var/run/faculties-mcp"
in_jail("no faculties", "/opt/faculties/faculties is no program in it", away("/opt/faculties/faculties"))
in_jail("faculties that may not be run", "/opt/faculties/faculties is no program in it",
        lambda host: host.jail("/opt/faculties/faculties").chmod(0o644))
in_jail("faculties are a folder", "/opt/faculties/faculties is no program in it", folder_in("/opt/faculties/faculties"))
in_jail("no pile", "/pile/self.pile is no regular file in it", away("/pile/self.pile"))
in_jail("the pile is a link", "/pile/self.pile is no regular file in it", link_in("/pile/self.pile"))
in_jail("the pile is a folder", "/pile/self.pile is no regular file in it", folder_in("/pile/self.pile"))
in_jail("no key", "/pile/self.key is no regular file with a key in it", away("/pile/self.key"))
in_jail("the key is empty", "/pile/self.key is no regular file with a key in it", lambda host: host.jail("/pile/self.key").write_text(""))
in_jail("the key is a link", "/pile/self.key is no regular file with a key in it", link_in("/pile/self.key"))
in_jail("the key is a folder", "/pile/self.key is no regular file with a key in it", folder_in("/pile/self.key"))
in_jail("the folder of the token is a link", f"{STAGED} is a link in it",
        lambda host: (host.jail("/elsewhere").mkdir(), host.jail(STAGED).symlink_to("/elsewhere")))
in_jail("the folder of the token is a link to nowhere", f"{STAGED} is a link in it", lambda host: host.jail(STAGED).symlink_to("/nowhere"))
in_jail("the folder of the token is a file", f"{STAGED} is no directory of its root", lambda host: host.jail(STAGED).write_text(""))
in_jail("the folder of the token is another user's", f"{STAGED} is no directory of its root",
        lambda host: (host.jail(STAGED).mkdir(), os.chown(host.jail(STAGED), 1001, 1001)))
in_jail("the token is a link", f"{STAGED}/token is a link in it",
        lambda host: (host.jail(STAGED).mkdir(), host.jail(STAGED + "/token").symlink_to("/pile/self.pile")))
in_jail("the token is a folder", f"{STAGED}/token is no regular file in it", lambda host: host.jail(STAGED + "/token").mkdir(parents=True))
in_jail("its folder cannot be made", f"{STAGED} cannot be made in it", fails_in("/bin/mkdir"))
in_jail("its folder cannot be made private", f"the mode of {STAGED} cannot be set", fails_in("/bin/chmod"))
in_jail("no file can be made", f"no file can be made in {STAGED}", fails_in("/usr/bin/mktemp"))
in_jail("the token cannot be written", f"the token cannot be written into {STAGED}", fails_in("/bin/cat"))
in_jail("nothing comes through the pipe", "no token came through the pipe", fails_in("/bin/cat", "exit 0"))
in_jail("the token cannot be made private", "the mode of the token cannot be set",
        fails_in("/bin/chmod", 'case $1 in 0400) exit 1 ;; *) exec /host/bin/chmod "$@" ;; esac'))
in_jail("the token cannot be moved", "the token cannot be moved into place", fails_in("/bin/mv"))
