"""A fake host with a tenant's neighbour and strangers on it, and the program beside it."""

import hashlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.join(HERE, "../../target/debug")
BIN = os.environ.get("PLAYGROUND_BIN", os.path.join(BUILT, "playground"))
FAKEHOST = os.path.abspath(os.environ.get("FAKEHOST_BIN", os.path.join(BUILT, "fakehost")))
POOL = "pool/aitemp/playground"
FIRST, SHARED = "what piles begin with\n", "what is everybody's\n"
VERBS = {
    "create": ["user", "create", "alice"],
    "attach": ["user", "attach", "alice"],
    "exec": ["exec", "--timeout", "3s", "-n", "alice", "touch", "/tmp/done"],
    "destroy": ["user", "destroy", "alice", "--yes"],
    "clean": ["clean", "--yes"],
    # What a local client starts: every sandbox comes up, and ends when the client goes.
    "mcp": ["mcp"],
}
EVERYBODYS = ("clean", "mcp")
"""What is done to every tenant at once."""

KEPT = ("pool", "lima", "root", "far", "state", "model.json")
"""What a host consists of, and what the playground keeps beside it."""

UNSTABLE = ("tokens.json", "tokens.json.lock", "operator.jsonl", "ballast", "lock", "audit")
"""Files of the state that are not about sandboxes, or never twice the same."""


class Site:
    """What all hosts have in common. Those below say what a tenant is there."""

    def __init__(self, root, verb):
        self.root, self.verb = root, verb
        self.words = [*VERBS[verb], *self.more(verb)]
        os.makedirs(self.path("bin"))
        os.symlink(FAKEHOST, self.path("bin/host"))
        self.host("host", "new")
        self.settle_in()
        if verb != "create":
            self.done([*VERBS["create"], *self.more("create")])
        if verb in ("attach", "exec", "mcp"):
            self.rest(everybody=verb == "attach")
        self.strangers = self.others(strangers=True)

    def more(self, verb):
        """Words of this kind of host alone."""
        return []

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(text)

    def host(self, program, *words):
        subprocess.run([self.path("bin", program), *words], check=True, capture_output=True)

    def talk(self, command):
        """A client that opens alice's sandbox and goes."""
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        opening = {"name": "open_session", "arguments": {"tenant": "alice"}}
        lines = [{"id": 1, "method": "initialize", "params": client}, {"method": "notifications/initialized"},
                 {"id": 2, "method": "tools/call", "params": opening}]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=self.environment(), text=True) as child:
            try:
                for line in lines:
                    print(json.dumps({"jsonrpc": "2.0", **line}), file=child.stdin, flush=True)
                while (line := child.stdout.readline()) and json.loads(line).get("id") != 2:
                    pass
                child.stdin.close()
            except BrokenPipeError:
                child.stdin = None
            said = child.stderr.read()
            child.stdin = None
        return subprocess.CompletedProcess(command, child.returncode, "", said)

    def environment(self):
        return {"PATH": self.path("bin"), "HOME": self.root, "USER": "operator"}

    def run(self, words, limit=60):
        # Its options before what it is to run.
        options = ["--state", self.path("state"), "--admin-limit-s", str(limit), *self.flags()]
        command = [BIN, *words, *options] if words[0] == "user" else [BIN, *words[:1], *options, *words[1:]]
        if words[0] == "mcp":
            return self.talk(command)
        return subprocess.run(command, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def done(self, words):
        ran = self.run(words)
        assert ran.returncode == 0, ran.stderr

    def model(self):
        with open(self.path("model.json")) as file:
            return json.load(file)

    def fault(self, faults):
        """What is to go wrong from now on; the calls are counted anew."""
        model = self.model() | {"calls": 0, "met": {}}
        self.write("faults.json", json.dumps(faults))
        self.write("model.json", json.dumps(model))

    def calls(self):
        with open(self.path("calls")) as file:
            calls = [json.loads(line)["argv"] for line in file]
        return calls[len(calls) - self.model()["calls"]:]

    def copy(self, source, target):
        os.makedirs(target, exist_ok=True)
        for name in KEPT:
            gone = os.path.join(target, name)
            shutil.rmtree(gone) if os.path.isdir(gone) else os.path.exists(gone) and os.remove(gone)
        words = [os.path.join(source, name) for name in KEPT if os.path.exists(os.path.join(source, name))]
        # As they are, which names share a file too.
        subprocess.run(["/bin/cp", "-a", *words, target], check=True)

    def settle(self, at_once=False):
        """Waits until what a killed playground has started has ended. What hangs behind an ssh does so for ever."""
        mark = f"PATH={self.path('bin')}".encode()
        for number in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                with open(f"/proc/{number}/environ", "rb") as file:
                    ours = mark in file.read().split(b"\0")
                if ours:
                    process = os.pidfd_open(number)
                    if at_once:
                        signal.pidfd_send_signal(process, signal.SIGKILL)
                    ended = select.select([process], [], [], 60)[0]
                    os.close(process)
                    assert ended, f"process {number} does not end"
                    return self.settle(at_once)
            except OSError:
                pass

    def known(self):
        """Everything that has to be the same after every second run: the model, and every file."""
        known = {key: value for key, value in self.model().items() if key not in ("calls", "met")}
        # Which of them came first says nothing.
        rows = {key: sorted(known[key], key=json.dumps) for key in ("mounts", "rules")}
        return known | rows | {"files": self.files()}

    def files(self):
        """Every file with its kind, mode and content; of a key, which is never twice the same, the length."""
        found = {}
        for name in KEPT:
            for folder, folders, files in os.walk(self.path(name)):
                if folder == self.path("state"):
                    files = [file for file in files if file not in UNSTABLE]
                    folders[:] = [each for each in folders if each not in UNSTABLE]
                for each in [*folders, *files]:
                    path = os.path.join(folder, each)
                    found[os.path.relpath(path, self.root)] = self.told_of(path)
        return found

    def told_of(self, path):
        its = os.lstat(path)
        if stat.S_ISLNK(its.st_mode):
            return os.readlink(path)
        text = oct(its.st_mode)
        if stat.S_ISREG(its.st_mode):
            with open(path, "rb") as file:
                content = file.read()
            text += f" {len(content)}"
            if not path.endswith("self.key"):
                text += f" {hashlib.sha256(content).hexdigest()}"
        return text

    def others(self, strangers=False):
        """What is not alice's; with `strangers`, nor any tenant's."""
        names = [self.name_of("alice"), *([self.name_of("bob")] if strangers else [])]
        known = self.known()
        rows = [f"{key} {json.dumps(each)}" for key in ("mounts", "rules") for each in known[key]]
        rows += [f"{key} {name} {json.dumps(each)}" for key in ("datasets", "jails", "machines", "flags")
                 for name, each in known[key].items()]
        rows += [f"{path} {told}" for path, told in self.files().items()]
        return sorted(row for row in rows if not any(name in row for name in names) and not self.may_grow(row))

    def may_grow(self, row):
        return False

    def wrong(self, wanted):
        """What is not as it has to be, wherever it was cut."""
        found = []
        for pile, first in self.piles().items():
            if os.path.exists(self.path(pile)):
                with open(self.path(pile)) as file:
                    if not file.read().startswith(first):
                        found.append(f"{pile} has lost what it began with")
        for missing in set(self.strangers) - set(self.others(strangers=True)):
            found.append(f"of a stranger's is gone or changed: {missing}")
        if os.path.exists(self.path("violations")):
            with open(self.path("violations")) as file:
                found.append(file.read())
        return found + different(self.known(), wanted) if wanted else found


def different(one, wanted, place=""):
    """Where two models differ, one by one."""
    if one == wanted:
        return []
    if isinstance(one, dict) and isinstance(wanted, dict):
        return [fault for key in sorted(one.keys() | wanted.keys())
                for fault in different(one.get(key), wanted.get(key), f"{place} {key}")]
    if isinstance(one, list) and isinstance(wanted, list):
        return [f"{place.strip()}: {word} {json.dumps(each)}" for word, some, rest in (("odd", one, wanted), ("lacks", wanted, one))
                for each in some if each not in rest] or [f"{place.strip()}: some of {one} twice"]
    return [f"{place.strip()}: {one} and not {wanted}"]


class Jails(Site):
    """A FreeBSD host, which is this one."""

    def settle_in(self):
        self.write(f"{POOL}/piles/shared/shared.pile", SHARED)
        self.write(f"{POOL}/bootstrap.pile", FIRST)
        # Somebody's own, named as ours are, and one that is not.
        for name in ("playground-visitor", "visitor"):
            tree = self.path(POOL, name)
            self.host("zfs", "clone", "aitemp/playground/template@base", f"aitemp/playground/{name}")
            self.host("jail", "-c", f"name={name}", f"path={tree}", "persist", "ip4=disable")
        self.done(["user", "create", "bob"])

    def flags(self):
        piles = self.path(POOL)
        return ["--backend", "jail", *self.reach(), f"--jail-pile-root={piles}/piles",
                f"--jail-bootstrap-pile={piles}/bootstrap.pile", "--jail-relations-collection", "a" * 64]

    def reach(self):
        return ["--jail-local"]

    def rest(self, everybody):
        if everybody:
            self.host("host", "reboot")
        else:
            self.done(["user", "stop", "alice"])

    def name_of(self, tenant):
        return f"playground-{tenant}-{hashlib.sha256(tenant.encode()).hexdigest()}"

    def may_grow(self, row):
        """A new tenant is entered as a person."""
        return row.startswith(f"{POOL}/piles/shared/shared.pile ")

    def piles(self):
        own = {f"{POOL}/piles/{self.name_of(tenant)}/self.pile": FIRST for tenant in ("alice", "bob")}
        return {f"{POOL}/piles/shared/shared.pile": SHARED, **own}


class Elsewhere(Jails):
    """A FreeBSD host behind an ssh."""

    def reach(self):
        return ["--jail-host", "jailhost"]


class Machines(Site):
    """A host of virtual machines."""

    def settle_in(self):
        self.write("far/self.pile", FIRST)
        self.write("far/self.key", "k" * 64)
        self.write("far/other", "of nobody's business\n")
        # The original's, one as of another service's, and one at rest.
        for name, state in (("playground-sbx-alice", "Running"), ("playground-sbx-zoe-0123456789abcdef", "Stopped")):
            self.write("own.yaml", "images: []\nmounts: []\n")
            self.host("limactl", "create", "--tty=false", "--name", name, self.path("own.yaml"))
            if state == "Running":
                self.host("limactl", "start", "--tty=false", name)
            self.write(f"lima/{name}/root/root/kept", "theirs\n")
        self.done(["user", "create", "bob", "--faculty-pile", self.path("far/self.pile")])

    def flags(self):
        return ["--backend", "lima", "--state-root", self.path("root")]

    def more(self, verb):
        return ["--pile-unenforced"] if verb == "create" else []

    def rest(self, everybody):
        self.done(["clean", "--yes"] if everybody else ["user", "stop", "alice"])

    def name_of(self, tenant):
        return f"playground-sbx-{tenant}-{hashlib.sha256(tenant.encode()).hexdigest()[:16]}"

    def piles(self):
        own = f"state/sandbox/lima/piles/{self.name_of('alice')}/self.pile"
        return {"far/self.pile": FIRST, own: "", f"root/{self.name_of('bob')}/faculty-files/pile/self.pile": FIRST}


KINDS = {"jails": Jails, "elsewhere": Elsewhere, "machines": Machines}
