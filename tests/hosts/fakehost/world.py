"""The model: one JSON file under a lock, beside the trees that its datasets and machines are."""

import contextlib
import fcntl
import json
import os
import stat

TEMPLATE = "aitemp/playground/template"

class Failed(Exception):
    """What the real program would say no to, with its words and its exit code."""

    def __init__(self, text, code=1):
        super().__init__(text)
        self.code = code


class Refused(Exception):
    """What the model does not know: the test fails by it."""


class World:
    def __init__(self, root):
        self.root = os.path.realpath(root)

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    @contextlib.contextmanager
    def model(self):
        """The model, by one program at a time; kept if nothing is raised."""
        with open(self.path("lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with open(self.path("model.json")) as file:
                model = json.load(file)
            before = json.dumps(model)
            yield model
            if json.dumps(model) != before:
                self.write(model)

    def write(self, model):
        fresh = self.path("model.json.new")
        with open(fresh, "w") as file:
            json.dump(model, file, indent=1, sort_keys=True)
        os.replace(fresh, self.path("model.json"))

    def note(self, name, line):
        with open(self.path(name), "a") as file:
            file.write(line + "\n")

    def found(self, programs):
        """A fresh host: a pool, its template and the piles' parent, and nothing of a tenant."""
        import shutil

        for name in programs:
            os.symlink("host", self.path("bin", name))
        pool = self.path("pool")
        snapshot = self.path("snapshots", f"{TEMPLATE}@base")
        for folder in ("dev", "etc/profile.d", "opt/faculties", "root", "tmp", "usr", "var"):
            os.makedirs(os.path.join(snapshot, folder))
        for name in ("bin", "lib", "lib64", "sbin"):
            if os.path.islink(f"/{name}"):
                os.symlink(os.readlink(f"/{name}"), os.path.join(snapshot, name))
        with open(os.path.join(snapshot, "etc/profile"), "w") as file:
            file.write('for part in /etc/profile.d/*.sh; do [ -r "$part" ] && . "$part"; done\n')
        relations = os.path.join(snapshot, "opt/faculties/relations")
        shutil.copy(os.path.join(os.path.dirname(__file__), "relations.sh"), relations)
        os.chmod(relations, 0o755)
        datasets = ["aitemp", "aitemp/playground", TEMPLATE]
        for name in datasets:
            os.makedirs(os.path.join(pool, name))
        self.write({
            "datasets": {name: {"mountpoint": os.path.join(pool, name)} for name in datasets},
            "snapshots": [f"{TEMPLATE}@base"],
            "mounts": [],
            "jails": {},
            "rules": [],
            "flags": {},
            "machines": {},
            "hosts": ["jailhost"],
            "interfaces": {"em1": [["inet", "192.0.2.7"]]},
            "sudo": True,
            "calls": 0,
            "sysctls": {
                "security.jail.jailed": "0",
                "security.jail.enforce_statfs": "2",
                "kern.racct.enable": "1",
                "kern.securelevel": "1",
            },
        })

    def inside(self, path):
        """The path that an administrator's program is to touch: absolute, and of this world."""
        if not path.startswith("/"):
            raise Refused(f"a path that is not absolute: {path!r}")
        if not within(os.path.realpath(path), self.root):
            raise Refused(f"{path} leads out of this host, to {os.path.realpath(path)}")
        return path


def within(path, folder):
    return path == folder or path.startswith(folder + "/")


def through(model, path):
    """Where a path leads below the mounts: what is mounted last on it or above it hides the rest."""
    for row in reversed(model["mounts"]):
        if row["type"] == "nullfs" and within(path, row["target"]):
            return row["source"] + path[len(row["target"]):]
    return path


def kind(path):
    """File or folder, for those that mount one on another."""
    try:
        mode = os.stat(path).st_mode
    except OSError as fault:
        raise Failed(f"{path}: {fault.strerror}") from None
    return "folder" if stat.S_ISDIR(mode) else "file"


def privileged():
    """What only root may: here everybody is, and at the other end of an ssh whoever sudo made it."""
    if os.environ.get("FAKEHOST_USER") == "operator":
        raise Failed("Operation not permitted")
