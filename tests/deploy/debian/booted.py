"""The package under a running systemd: the small Debian is booted in namespaces of its own, with systemd as its first process.

What is started, watched, reloaded, started again or left alone is so by systemd itself, from the units as the package brings
them; a drop-in of a trial only makes a wait shorter. The host gives a control group of version 2 and a network of loopback alone.
"""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

system, debs = map(pathlib.Path, sys.argv[1:3])
first, second = sys.argv[3:5]
PATIENCE = 60
# All of it takes no longer than this.
LIMIT = 300
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "booted", "version": "1"}}
EDGE, SANDBOX, SOCKET = "playground-edge.service", "playground-sandbox.service", "playground-edge.socket"
STATE, TOKENS = "/var/lib/playground-sandbox", "/var/lib/playground-edge/tokens.json"
# As a container's manager prepares it. The cgroup namespace is made after the group is entered, so the group is all there is.
BOOT = """
mount --bind "$1" "$1"; cd "$1"
mount -t proc none proc
mount -t sysfs -o ro none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none dev
for node in null zero full random urandom tty loop-control fuse; do
  [ ! -e /dev/$node ] || { touch dev/$node; mount --bind /dev/$node dev/$node; }
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 none dev/pts
mount -t tmpfs none dev/shm
ln -s pts/ptmx dev/ptmx; ln -s /proc/self/fd dev/fd
for number in 0 1 2 3 4 5 6 7; do [ ! -b /dev/loop$number ] || mknod dev/loop$number b 7 $number; done
mount -t tmpfs -o mode=755 none run
mount -t tmpfs none tmp
pivot_root . mnt
umount -l /mnt
# As systemd expects it of who starts it in a container: what it mounts for a service is seen by that service.
mount --make-rshared /
exec env -i container=playground PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
"""


def main():
    if os.environ.get("INSIDE") != "1":
        again = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=dict(os.environ, INSIDE="1"), timeout=LIMIT).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    why_not = missing()
    if why_not:
        print(f"booted: skipped, since {why_not}", flush=True)
        return
    with Machine() as machine:
        installed(machine)
        served(machine)
        watched(machine)
        left_alone(machine)
        patient(machine)
        native(machine)
        upgraded(machine)
        one_service(machine)
        gone(machine)
    print("booted: systemd ran every unit of the package", flush=True)


def missing():
    """Why no systemd can be booted on this host; nothing where it can."""
    for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        try:
            if (pathlib.Path(place) / "cgroup.procs").exists():
                probe = pathlib.Path(place) / f"playground-{os.getpid()}"
                probe.mkdir()
                probe.rmdir()
                Machine.groups = pathlib.Path(place)
                return ""
        except OSError as fault:
            return f"no control group can be made in {place}: {fault}"
    return "there is no hierarchy of control groups of version 2"


class Machine:
    """A systemd that runs."""

    groups = None

    def __enter__(self):
        self.group = Machine.groups / f"playground-{os.getpid()}"
        self.group.mkdir()
        enter = f"echo $$ >{self.group}/cgroup.procs; exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child sh -ec \"$0\" sh \"$1\""
        self.outer = subprocess.Popen(["sh", "-ec", enter, BOOT, str(system)], stdin=subprocess.DEVNULL, start_new_session=True)
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        booted = lambda: "systemd" in self.name_of(children.read_text().split())
        try:
            until(booted, "systemd is not started")
            self.first = int(children.read_text())
            until(lambda: (system / f"proc/{self.first}").exists() or self.asked("is-system-running") in ("running", "degraded"),
                  "the system does not come up")
            print("booted:", self.told("systemctl", "--version").splitlines()[0], "says", self.asked("is-system-running"), flush=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    @staticmethod
    def name_of(numbers):
        try:
            return pathlib.Path(f"/proc/{numbers[0]}/comm").read_text() if numbers else ""
        except OSError:
            return ""

    def __exit__(self, *_):
        # Its namespace of processes ends with it.
        self.outer.kill()
        self.outer.wait()
        for _ in range(100):
            # The deepest first.
            groups = sorted(self.group.rglob("."), key=lambda it: -len(it.parts)) if self.group.exists() else []
            for group in groups:
                try:
                    group.rmdir()
                except OSError:
                    time.sleep(0.05)
            if not self.group.exists():
                break

    def run(self, *command, code=0, quiet=False):
        words = ["nsenter", "--target", str(self.first), "--mount", "--pid", "--uts", "--ipc", "--cgroup", "env", "-i",
                 "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *map(str, command)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        if not quiet:
            print("+", *command, flush=True)
            print(done.stdout + done.stderr, end="", flush=True)
        assert code is None or done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done

    def told(self, *command):
        return self.run(*command, quiet=True).stdout.strip()

    def asked(self, *command):
        return self.run("systemctl", *command, code=None, quiet=True).stdout.strip()

    def control(self, *command, code=0):
        done = self.run("systemctl", *command, code=None)
        assert code is None or done.returncode == code, f"{command} left {done.returncode}\n{self.log()}"

    def has(self, unit):
        """What systemd knows of a unit."""
        return dict(line.split("=", 1) for line in self.told("systemctl", "show", unit).splitlines() if "=" in line)

    def log(self):
        return self.run("journalctl", "--no-pager", "--lines", "1000", code=None, quiet=True).stdout

    def drop_in(self, unit, **keys):
        """Other values of a unit, for this boot alone."""
        folder = f"/run/systemd/system/{unit}.d"
        lines = "".join(f"{key}={value}\\n" for key, value in keys.items())
        lines = lines.replace("ExecStart=", "ExecStart=\\nExecStart=")
        self.run("sh", "-ec", f"mkdir -p {folder}; printf '[Service]\\n{lines}' >{folder}/trial.conf; systemctl daemon-reload", quiet=True)

    def no_drop_in(self, unit):
        self.run("sh", "-ec", f"rm -r /run/systemd/system/{unit}.d; systemctl daemon-reload", quiet=True)

    def write(self, path, text, mode=0o600):
        file = system / path.lstrip("/")
        file.write_text(text)
        file.chmod(mode)

    def read(self, path):
        return (system / path.lstrip("/")).read_text()

    def install(self, version):
        (deb,) = debs.glob(f"playground_{version}_*.deb")
        (system / "var/tmp" / deb.name).write_bytes(deb.read_bytes())
        said = self.run("dpkg", "--install", f"/var/tmp/{deb.name}")
        (system / "var/tmp" / deb.name).unlink()
        return said.stdout + said.stderr


def until(true, complaint):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, complaint() if callable(complaint) else complaint
        time.sleep(0.05)


def installed(machine):
    machine.install(first)
    for unit in (EDGE, SANDBOX, SOCKET, "playground.service"):
        assert machine.asked("is-enabled", unit) == "disabled" and machine.asked("is-active", unit) == "inactive", unit
    machine.run("playground", "cert", "dev", "--out", "/root/cert")
    for made, part in (("dev.pem", "cert.pem"), ("dev.key", "key.pem")):
        machine.write(f"/etc/playground/tls/{part}", machine.read(f"/root/cert/{made}"))
    machine.write("/etc/playground/worker-tokens/bob", os.urandom(32).hex() + "\n")
    machine.write("/etc/playground/playground.toml", CONFIG, 0o644)


CONFIG = """hosts = ["localhost"]
[tls]
cert = "credential:tls_cert.pem"
key = "credential:tls_key.pem"
[[worker]]
tenant = "bob"
address = "127.0.0.1:8401"
token_file = "credential:worker_bob"
"""


def served(machine):
    """Both halves by their units, and a tenant's command in what the hardening leaves of the sandbox."""
    machine.control("enable", "--now", SANDBOX, SOCKET, EDGE)
    edge, sandbox = machine.has(EDGE), machine.has(SANDBOX)
    for unit in (edge, sandbox):
        assert (unit["ActiveState"], unit["SubState"], unit["NRestarts"]) == ("active", "running", "0"), unit
    print("edge:", edge["StatusText"], "| sandbox:", sandbox["StatusText"], flush=True)
    assert "https://" in edge["StatusText"] and "127.0.0.1:8378" in sandbox["StatusText"], (edge["StatusText"], sandbox["StatusText"])
    assert machine.told("stat", "-c", "%U", f"/proc/{edge['MainPID']}") == "playground"
    assert machine.told("stat", "-c", "%U", f"/proc/{sandbox['MainPID']}") == "root"
    machine.run("playground", "user", "create", "alice", "--state", STATE, "--tokens", TOKENS, "--out", "/root/alice.token")
    machine.run("playground", "token", "mint", "bob", "--catalogue", "native", "--tokens", TOKENS, "--out", "/root/bob.token")
    talk = Talk(machine, "alice")
    said = talk.shell("echo up; id -u; cat /proc/self/status; df -P . | tail -1; tr '\\0' '\\n' </proc/1/environ; "
                      "for kind in pid mnt net uts ipc user; do readlink /proc/self/ns/$kind; done; touch it && chattr -V 2>&1 | head -1")
    assert said.startswith("up\n"), said
    assert not re.search("NOTIFY_SOCKET|LISTEN_|CREDENTIALS|WATCHDOG", said), said
    for kind in ("pid", "mnt", "net", "uts", "ipc", "user"):
        outside = machine.told("readlink", f"/proc/{sandbox['MainPID']}/ns/{kind}")
        assert outside not in said and f"{kind}:[" in said, (kind, outside, said)
    assert re.search(r"^CapEff:\s+0+$", said, re.M) and re.search(r"^Seccomp:\s+2$", said, re.M), said
    doctor = machine.run("playground", "user", "list", "--json", "--state", STATE)
    assert '"alice"' in doctor.stdout
    print("the disk of a tenant:", re.search(r"^\S+ +\d+ .*$", said, re.M)[0], flush=True)
    opens_no_device(machine)
    # A reload, from its begin to its end.
    machine.control("reload", EDGE)
    until(lambda: machine.has(EDGE)["ActiveState"] == "active", "the reload does not end")
    assert machine.has(EDGE)["MainPID"] == edge["MainPID"]
    assert moved() == (308, "https://localhost/mcp")


def opens_no_device(machine):
    """In the unit no device of the host can be opened, though its root may make nodes; outside it can, or this would show nothing."""
    # The kernel's messages, which every host has.
    read = "[ -c /dev/trial ] || mknod /dev/trial c 1 11; exec 3</dev/trial"
    machine.run("sh", "-ec", read)
    refused = machine.run("sh", "-ec", f"echo $$ >/sys/fs/cgroup/system.slice/{SANDBOX}/cgroup.procs; {read}", code=2)
    assert "Operation not permitted" in refused.stderr, refused
    machine.run("rm", "/dev/trial")


def watched(machine):
    """A service that hangs is ended and started again, and nobody is refused meanwhile."""
    for unit in (EDGE, SANDBOX):
        machine.drop_in(unit, WatchdogSec=2)
        machine.control("restart", unit)
        time.sleep(3)
        before = machine.has(unit)
        assert before["NRestarts"] == "0", "it lives, and says so"
        machine.control("kill", "--kill-whom=main", "--signal=STOP", unit)
        until(lambda: machine.has(unit)["NRestarts"] == "1" and machine.has(unit)["ActiveState"] == "active", machine.log)
        assert machine.has(unit)["MainPID"] != before["MainPID"]
        assert "Watchdog timeout" in machine.log() and "Failed with result 'watchdog'" in machine.log()
        machine.no_drop_in(unit)
        machine.control("restart", unit)
    assert Talk(machine, "alice").shell("echo again") == "again\n[exit 0]"
    print("watchdog: what hangs is ended and started again", flush=True)


def left_alone(machine):
    """10 and 11 and 2 are not started again, all else is."""
    machine.control("stop", EDGE)
    machine.write("/etc/playground/playground.toml", "nonsense = 1\n", 0o644)
    machine.control("start", EDGE, code=1)
    failed(machine, EDGE, "10")
    assert "nonsense" in machine.log()
    machine.write("/etc/playground/playground.toml", CONFIG, 0o644)
    machine.control("reset-failed", EDGE, SOCKET)
    for unit in (EDGE, SANDBOX):
        machine.control("stop", unit)
        for code in (2, 10, 11):
            machine.drop_in(unit, ExecStart=f'/bin/sh -c "exit {code}"')
            machine.control("start", unit, code=1)
            failed(machine, unit, str(code))
            machine.control("reset-failed", unit)
        machine.drop_in(unit, ExecStart='/bin/sh -c "exit 1"', RestartSec="100ms")
        machine.control("start", unit, code=1)
        until(lambda: int(machine.has(unit)["NRestarts"]) > 1, machine.log)
        machine.control("stop", unit)
        machine.no_drop_in(unit)
        machine.control("reset-failed", unit, SOCKET)
    machine.control("start", SOCKET, SANDBOX, EDGE)
    print("exit codes: 2, 10 and 11 are left alone, 1 is started again", flush=True)


def failed(machine, unit, code):
    """It ended with this code and stays so, for longer than until its next start."""
    time.sleep(1.5)
    seen = machine.has(unit)
    assert (seen["ActiveState"], seen["Result"], seen["ExecMainStatus"], seen["NRestarts"]) == ("failed", "exit-code", code, "0"), (
        unit, {key: seen[key] for key in ("ActiveState", "SubState", "Result", "ExecMainStatus", "NRestarts")}, machine.log())


# A program of machines for which one takes eight seconds to make, and then cannot be.
SLOW = """#!/bin/sh
case $* in
  *start*) sleep 8; echo "no machine here" >&2; exit 1 ;;
esac
"""


def patient(machine):
    """A start that goes on is waited for beyond the unit's time, also when it comes to nothing in the end."""
    machine.write("/usr/local/bin/limactl", SLOW, 0o755)
    machine.run("sh", "-ec", "mkdir -p /opt/all/faculties/src; cd /opt/all/faculties; echo 'version = 4' >Cargo.lock; "
                "printf '[package]\\nname = \"faculties\"\\n' >Cargo.toml; echo 'fn main() {}' >src/main.rs")
    machine.control("stop", SANDBOX)
    machine.drop_in(SANDBOX, TimeoutStartSec=2, Restart="no", Environment="XDG_CACHE_HOME=/var/lib/playground-sandbox PLAYGROUND_LIMA_USER=operator",
                    ExecStart="/usr/bin/playground worker sandbox --listen 127.0.0.1:8378 --state /var/lib/playground-sandbox/other "
                    "--token-file credential:sandbox.token --backend lima --faculties-src /opt/all/faculties")
    began = time.monotonic()
    machine.control("start", SANDBOX, code=1)
    seen = machine.has(SANDBOX)
    assert time.monotonic() - began > 7 and seen["Result"] == "exit-code", (seen["Result"], time.monotonic() - began, machine.log())
    machine.no_drop_in(SANDBOX)
    machine.control("reset-failed", SANDBOX)
    machine.control("start", SANDBOX, EDGE)
    print("a long start: waited for while it goes on", flush=True)


# A stdio server of one answer.
SERVER = """#!/bin/sh
while read -r line; do
  case $line in
    *'"initialize"'*) printf '%s\\n' '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"native of bob","version":"1"}}}' ;;
  esac
done
"""


def native(machine):
    """A native worker as a user that systemd makes for it; what is wrong with it is left alone."""
    unit = "playground-worker@bob.service"
    machine.write("/etc/playground/workers/bob.conf", "address=127.0.0.1:8401\nprogram=/usr/local/bin/server\n")
    machine.control("start", unit, code=None)
    until(lambda: machine.has(unit)["ActiveState"] == "failed", machine.log)
    failed(machine, unit, "78")
    assert "/usr/local/bin/server cannot be run" in machine.log()
    machine.write("/usr/local/bin/server", SERVER, 0o755)
    words = ["worker", "stdio", "--listen", "{address}", "--token-file", "{token}", "--", "/usr/local/bin/server"]
    lines = ["address=127.0.0.1:8401", "program=/usr/bin/playground", *(f"argument={word}" for word in words)]
    machine.write("/etc/playground/workers/bob.conf", "\n".join(lines) + "\n")
    machine.control("reset-failed", unit)
    machine.control("start", unit)
    until(lambda: "ready http://127.0.0.1:8401" in machine.log(), machine.log)
    main = machine.has(unit)["MainPID"]
    assert int(machine.told("stat", "-c", "%u", f"/proc/{main}")) >= 61184, "a user of its own"
    machine.drop_in(unit, RestartSec="100ms")
    machine.control("kill", "--kill-whom=main", "--signal=KILL", unit)
    until(lambda: machine.has(unit)["NRestarts"] == "1" and machine.has(unit)["ActiveState"] == "active", machine.log)
    machine.no_drop_in(unit)
    machine.control("stop", unit)
    print("a native worker: a user of its own, left alone when wrong, started again when it falls", flush=True)


def upgraded(machine):
    """The next version, while a tenant has a session and a command, and others come all the time."""
    talk = Talk(machine, "alice")
    job = talk.call("job_exec", {"session": talk.handle, "command": "sleep 3; echo through > kept; sleep 600"})
    sandbox, edge = machine.has(SANDBOX)["MainPID"], machine.has(EDGE)["MainPID"]
    answers, over = [], threading.Event()

    def come():
        while not over.is_set():
            try:
                talk.ask("ping", {})
                answers.append("answered")
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionResetError, http.client.RemoteDisconnected):
                # The old edge had accepted it and heard nothing of it for two seconds after it was told to stop.
                answers.append("cut")
            except (OSError, AssertionError) as fault:
                answers.append(fault)
            time.sleep(0.1)

    coming = threading.Thread(target=come)
    coming.start()
    try:
        machine.install(second)
        assert machine.has(EDGE)["ActiveState"] == "active" and machine.has(EDGE)["MainPID"] != edge, "the edge is the new one"
        assert machine.has(SANDBOX)["MainPID"] == sandbox, "the sandboxes go on"
        # The very session, and the command in it.
        until(lambda: "through" in talk.shell("cat kept 2>/dev/null"), "the command did not go on")
    finally:
        over.set()
        coming.join()
    cut = answers.count("cut")
    others = [it for it in answers if it != "answered"]
    assert job and len(answers) > 9 and set(others) <= {"cut"} and cut <= 1, (len(answers), others[:3])
    print(f"upgraded: the session and its command went on; of {len(answers)} callers meanwhile none was refused, and {cut} cut off")


def one_service(machine):
    """The single unit takes the place of both halves, which it conflicts with."""
    machine.control("stop", SOCKET)
    machine.control("start", "playground.service")
    assert machine.has(SANDBOX)["ActiveState"] == "inactive" and machine.has(EDGE)["ActiveState"] == "inactive"
    print("playground.service:", machine.has("playground.service")["StatusText"], flush=True)
    main = machine.has("playground.service")["MainPID"]
    machine.control("reload", "playground.service")
    assert machine.has("playground.service")["MainPID"] == main
    machine.control("stop", "playground.service")
    ended = machine.has("playground.service")
    assert (ended["ActiveState"], ended["Result"]) == ("inactive", "success"), ended
    machine.control("start", SANDBOX, SOCKET, EDGE)


def gone(machine):
    """Removed, it has ended in order; purged, it leaves what tenants have."""
    machine.run("dpkg", "--purge", "playground")
    left = machine.told("sh", "-c", "for it in /proc/[0-9]*; do readlink $it/exe; done 2>/dev/null | grep playground || true")
    assert not left, left
    assert (system / "var/lib/playground-sandbox/sandbox/tenants").exists()
    log = machine.log()
    assert "SIGKILL" not in log.rsplit("Stopping", 1)[-1], log


class Talk:
    """A tenant's session through the socket of the edge."""

    def __init__(self, machine, tenant):
        self.token, self.session = machine.read(f"/root/{tenant}.token").strip(), None
        self.ask("initialize", INITIALIZE)
        opened = self.call("open_session", {})
        self.handle = re.search(r"[A-Za-z0-9_-]{20,}", json.dumps(opened["structuredContent"])).group()

    def call(self, tool, arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def shell(self, command):
        return self.call("exec", {"session": self.handle, "command": command})["content"][0]["text"]

    def ask(self, method, params):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                   "Accept": "application/json, text/event-stream"}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-11-25"}
        connection = encrypted()
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (answer.status, text)
        self.session = answer.getheader("mcp-session-id") or self.session
        data = [line[5:] for line in text.splitlines() if line.startswith("data:") and "{" in line]
        return json.loads(data[-1] if data else text)["result"]


def encrypted():
    tls = ssl.create_default_context(cafile=str(system / "root/cert/dev-ca.pem"))
    return http.client.HTTPSConnection("localhost", 443, context=tls, timeout=PATIENCE)


def moved():
    connection = http.client.HTTPConnection("localhost", 80, timeout=PATIENCE)
    connection.request("GET", "/mcp", headers={"Host": "localhost"})
    answer = connection.getresponse()
    return answer.status, answer.getheader("location")


main()
