"""A FreeBSD host in a folder: the services run unchanged, at their own paths, among strict stand-ins.

Everything that they start writes down its arguments and its environment, and jexec what came through a pipe.
"""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEPLOY = HERE.parent.parent.parent / "deploy" / "freebsd"

# What FreeBSD has where; every other program is missing.
ALIKE = {
    "bin": ["sh", "cat", "chmod", "mkdir", "mv", "rm", "kill", "sleep", "ls"],
    "usr/bin": ["env", "id", "grep", "sort", "touch", "find", "mktemp", "tr"],
}
STRICT = {"usr/bin": ["stat"], "sbin": ["sysctl"], "usr/sbin": ["daemon", "jexec", "jls"], "usr/local/bin": ["playground"]}
JAIL = "playground-alice-0123abcd"
TOKEN = "T0ken.of-the_worker~that+must/not=leak0"
MANIFEST = "/usr/local/etc/playground-workers/workers.json"
CONFIG = "/usr/local/etc/playground-workers/playground_faculties_alice.conf"
FACULTIES = "playground_faculties_alice"


@dataclass
class Call:
    """One program that was started."""

    argv: list[str]
    environ: dict[str, str]
    order: tuple
    place: str
    at: Path

    def beside(self, kind: str) -> str | None:
        path = Path(f"{self.at}.{kind}")
        return path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else None


@dataclass
class Told:
    """What one rc command said."""

    code: int
    out: str
    err: str


class Host:
    def __init__(self, deploy: Path = DEPLOY):
        self.root = Path(tempfile.mkdtemp(prefix="playground-rc."))
        self.root.chmod(0o755)
        self._programs(self.root)
        for folder in ("etc", "var/run", "var/log", "var/db/playground", "record/jail", "model/sysctl", "proc", "dev", "tmp",
                       "root", "jails", "usr/local/etc/rc.d", "usr/local/etc/playground", "usr/local/libexec",
                       "usr/local/etc/playground-workers"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "rc.subr", self.root / "etc/rc.subr")
        shutil.copy(HERE / "fakes/record", self.root / "model/record")
        (self.root / "record").chmod(0o777)
        (self.root / "usr/local/bin/jq").symlink_to("/model/jq")
        shutil.copy(HERE / "fakes/wrapper", self.root / "model/jq")
        self._install(deploy)
        self._good()

    def _programs(self, root: Path) -> None:
        for folder, names in ALIKE.items():
            (root / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy(HERE / "fakes/wrapper", root / folder / name)
        for folder, names in STRICT.items() if root == self.root else []:
            (root / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy(HERE / "fakes" / name, root / folder / name)
        (root / "host").mkdir()
        for link in ("lib", "lib64"):
            (root / link).symlink_to(f"host/{link}")
        (root / "usr/lib").symlink_to("/host/lib")
        (root / "etc").mkdir(exist_ok=True)
        (root / "etc/passwd").write_text("root:*:0:0::/root:/bin/sh\n")

    def _install(self, deploy: Path) -> None:
        services = self.root / "usr/local/etc/rc.d"
        for name in ("playground_mcp", "playground_sandbox"):
            shutil.copy(deploy / name, services / name)
        template = (deploy / "playground_faculties").read_text()
        # The line that stands in it.
        (services / FACULTIES).write_text(template.replace("_INSTANCE\n", "_alice\n"))
        shutil.copy(deploy / "playground.subr", self.root / "usr/local/libexec/playground.subr")

    def _good(self) -> None:
        """All as the recipe leaves it."""
        for name, value in (("security.jail.jailed", 1), ("security.jail.enforce_statfs", 0),
                            ("security.jail.devfs_ruleset", 4), ("kern.racct.enable", 1),
                            ("kern.securelevel", 1)):
            self.sysctl(name, value)
        self.write("/etc/rc.conf", "".join(f"{name}_enable=YES\n" for name in
                                           ("playground_mcp", "playground_sandbox", FACULTIES)), 0o644)
        self.write("/var/db/playground/tokens.json", '{"tokens":{}}', 0o600)
        self.write("/usr/local/etc/playground/sandbox.token", "s" * 44 + "\n", 0o600)
        self.write(CONFIG, CONFIGURATION, 0o600)
        self.write(MANIFEST, '{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"},'
                   '{"tenant":"bob","address":"127.0.0.1:8402","token_file":"bob.key","name":"b"}]}', 0o600)
        self.write("/usr/local/etc/playground-workers/alice.key", TOKEN + "\n", 0o400)
        self.model("attach", '{"session_id":"%s","persona":"alice assistant"}\n' % JAIL)
        self.model("attach.code", "0")
        self.model("ip4", "inherit\n")
        self.model("ip6", "inherit\n")
        self.model("attach.words", "user attach --backend jail --jail-local --jail-external-rctl --jail-dataset-parent"
                   " aitemp/playground --jail-pile-root /aitemp/playground/piles --jail-prefix playground"
                   " --jail-network inherit --state /var/db/playground -- alice")
        self.model("serve.code", "serve")
        self.model("verb.code", "0")
        jail = self.root / "jails" / JAIL
        jail.mkdir(parents=True)
        self._programs(jail)
        for folder in ("record", "model", "proc", "dev", "var/run", "pile", "opt/faculties", "tmp"):
            (jail / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "fakes/record", jail / "model/record")
        shutil.copy(HERE / "fakes/faculties", jail / "opt/faculties/faculties")
        (jail / "pile/self.pile").write_text("pile")
        (jail / "pile/self.key").write_text("0" * 64)

    def path(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def jail(self, path: str) -> Path:
        return self.root / "jails" / JAIL / path.lstrip("/")

    def write(self, path: str, text: str | bytes, mode: int) -> None:
        at = self.path(path)
        at.unlink(missing_ok=True)
        at.write_bytes(text if isinstance(text, bytes) else text.encode())
        at.chmod(mode)

    def model(self, name: str, text: str | bytes) -> None:
        self.write(f"/model/{name}", text, 0o644)

    def sysctl(self, name: str, value: object) -> None:
        if value is None:
            self.path(f"/model/sysctl/{name}").unlink()
        else:
            self.write(f"/model/sysctl/{name}", f"{value}\n", 0o644)

    def rc_conf(self, lines: str) -> None:
        self.write("/etc/rc.conf", self.path("/etc/rc.conf").read_text() + lines, 0o644)

    def run(self, service: str, *steps: str, uid: int = 0, environ: dict[str, str] | None = None) -> list[Told]:
        """Runs rc commands one after the other on one boot of the host, and kills all that is left of it.

        A step that begins with `!` is a line of sh. What the steps print is returned, one each.
        """
        # As a login leaves it: core files allowed, and what is made is for all to read.
        lines = ["cd /root", "ulimit -c unlimited", "umask 022"]
        setpriv = f"/host/bin/setpriv --reuid={uid} --regid={uid} --clear-groups " if uid else ""
        shell = "/host/bin/dash /bin/sh" if uid else "/bin/sh"
        words = " ".join(f"{name}='{value}'" for name, value in
                         ({"PATH": "/sbin:/bin:/usr/sbin:/usr/bin", "HOME": "/root"} | (environ or {})).items())
        for at, step in enumerate(steps):
            what = step[1:] if step.startswith("!") else f"{shell} /usr/local/etc/rc.d/{service} {step}"
            what = f"{setpriv}/host/bin/env -i {words} {what}" if not step.startswith("!") else what
            lines.append(f"( {what} ) >/tmp/{at}.out 2>/tmp/{at}.err </dev/null; echo $? >/tmp/{at}.code")
        # The host ends with this shell.
        self.write("/tmp/steps", "\n".join(lines) + "\n", 0o644)
        mounts = [f"mount --bind /usr {self.root}/host", f"mount -t proc proc {self.root}/proc",
                  f"mount --bind /dev {self.root}/dev"]
        for jail in (self.root / "jails").iterdir():
            mounts += [f"mount --bind /usr {jail}/host", f"mount -t proc proc {jail}/proc", f"mount --bind /dev {jail}/dev",
                       f"mount --bind {self.root}/record/jail {jail}/record"]
        whole = " && ".join(mounts) + f" && exec chroot {self.root} /host/bin/dash /tmp/steps"
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", whole],
                              capture_output=True, timeout=60, check=False, text=True)
        if done.returncode != 0:
            raise AssertionError(f"the host did not come up: {done.stderr}")
        said = []
        for at in range(len(steps)):
            out, err, code = (self.path(f"/tmp/{at}.{kind}").read_text() for kind in ("out", "err", "code"))
            said.append(Told(int(code), out, err))
        return said

    def calls(self, name: str | None = None) -> list[Call]:
        found = []
        for place in ("", "jail"):
            for argv in (self.root / "record" / place).glob("*.argv"):
                at = argv.with_suffix("")
                words = argv.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]
                if name not in (None, words[0]):
                    continue
                pid = int(at.name.split(".")[0])
                found.append(Call(words, environ(at), (pid, at.name.count("+")), place, at))
        return sorted(found, key=lambda call: call.order)

    def one(self, name: str) -> Call:
        calls = self.calls(name)
        assert len(calls) == 1, f"{name} was called {len(calls)} times: {[call.argv for call in calls]}"
        return calls[0]

    def strict(self) -> str:
        """What the stand-ins would not take."""
        said = [self.root / "record/strict", self.root / "record/jail/strict"]
        return "".join(path.read_text() for path in said if path.exists())

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


def environ(at: Path) -> dict[str, str]:
    """As it was written down: by the kernel, or by sh."""
    if Path(f"{at}.environ").exists():
        lines = Path(f"{at}.environ").read_bytes().decode("utf-8", "surrogateescape").split("\0")
        return dict(line.split("=", 1) for line in lines if "=" in line)
    text = Path(f"{at}.exports").read_bytes().decode("utf-8", "surrogateescape")
    return dict(re.findall(r"^export (\w+)(?:='(.*?)')?$", text, re.M | re.S))


CONFIGURATION = """\
worker_tenant=alice
worker_manifest=/usr/local/etc/playground-workers/workers.json
worker_dataset_parent=aitemp/playground
worker_pile_root=/aitemp/playground/piles
worker_jail_prefix=playground
"""
