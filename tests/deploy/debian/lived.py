"""A package's life in a small Debian: installed, started, upgraded, removed, purged, and purged with all that it kept.

The services are started by hand, since no systemd runs there: by the command lines of the units that the package brings, as
the users that they name, in a network namespace of their own.
"""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

system, debs = map(pathlib.Path, sys.argv[1:3])
first, second = sys.argv[3:5]
PATIENCE = 60
ENABLED = ["playground-sandbox.service", "playground-edge.socket", "playground-worker@alice.service"]
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "debian", "version": "1"}}
# Not by chroot: no user namespace can be made in one.
ENTER = """
mount --bind "$1" "$1"; cd "$1"; shift
mount --rbind /dev dev; mount --rbind /sys sys; mount -t proc none proc; mount -t tmpfs none tmp
pivot_root . mnt
umount -l /mnt
exec "$@"
"""
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root",
               "DEBIAN_FRONTEND": "noninteractive"}


def main():
    if os.environ.get("INSIDE") != "1":
        again = ["unshare", "--net", sys.executable, __file__, *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=dict(os.environ, INSIDE="1")).returncode)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        installed()
        sandbox, edge = started()
        upgraded(sandbox, edge)
        removed()
        purged()
        asked()
    finally:
        for service in Service.all:
            if service.process.poll() is None:
                os.killpg(service.process.pid, signal.SIGKILL)


def inside(*command):
    """A command line in the small Debian, as its root."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", ENTER, "sh", str(system), *map(str, command)]


def run(*command, code=0):
    print("+", *command, flush=True)
    done = subprocess.run(inside(*command), env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    print(done.stdout + done.stderr, end="", flush=True)
    assert done.returncode == code, (command, done.returncode)
    return done.stdout + done.stderr


def install(version):
    (deb,) = debs.glob(f"playground_{version}_*.deb")
    (system / "var/tmp" / deb.name).write_bytes(deb.read_bytes())
    said = run("dpkg", "--install", f"/var/tmp/{deb.name}")
    (system / "var/tmp" / deb.name).unlink()
    return said


def look(path):
    """Whose a file is and its mode, by the names of the small Debian."""
    return run("stat", "-c", "%U %a", path).strip()


def there(path):
    return (system / path.lstrip("/")).exists()


def installed():
    install(first)
    for path, expected in {
        "/etc/playground": "root 755", "/etc/playground/playground.toml": "root 644", "/etc/playground/sandbox.token": "root 600",
        "/etc/playground/tls": "root 700", "/etc/playground/worker-tokens": "root 700", "/etc/playground/workers": "root 755",
        "/var/lib/playground-edge": "playground 700", "/var/lib/playground-edge/tokens.json": "playground 600",
        "/usr/bin/playground": "root 755", "/usr/lib/playground/worker-run": "root 755",
    }.items():
        assert look(path) == expected, path
    passwords = (system / "etc/passwd").read_text()
    assert re.search("^playground:.*:/usr/sbin/nologin$", passwords, re.M), passwords
    assert re.search("^playground-sandbox:.*:/usr/sbin/nologin$", passwords, re.M), passwords
    assert not list((system / "etc/systemd").rglob("*wants/playground*")), "nothing is enabled that nobody chose"
    verbs = re.findall(r"^  ([a-z-]+) ", run("/usr/bin/playground", "--help").split("Options:")[0], re.M)
    pages = {page.name for page in (system / "usr/share/man/man1").iterdir()}
    # Debian's small systems leave the manual out of what they unpack, where they are told to.
    assert pages >= {f"playground-{verb}.1.gz" for verb in verbs if verb != "help"}, verbs
    script = "/usr/share/bash-completion/completions/playground"
    assert "_playground" in run("bash", "-c", f"complete() {{ echo \"$@\"; }}; . {script}"), "the script can be read"
    assert run("playground", "check-config", "--config", "/etc/playground/playground.toml", "--state", "/var/tmp/state")
    assert not (system / "var/tmp/state").exists(), "a check makes nothing"


class Service:
    """What a unit of the package starts."""

    all = []

    def __init__(self, unit):
        self.unit = unit
        values = {}
        for line in (system / "lib/systemd/system" / unit).read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                values.setdefault(key, []).append(value.replace("%S", "/var/lib"))
        user = values.get("User", ["root"])[0]
        folders = "/run/credentials/" + unit
        commands = [f"mkdir -p {folders} && chmod 755 /run/credentials"]
        for pair in values.get("LoadCredential", []):
            name, source = pair.split(":")
            commands.append(f"[ ! -f {source} ] || install -o {user} -m 400 {source} {folders}/{name}")
        state = values["StateDirectory"][0]
        commands.append(f"[ -d /var/lib/{state} ] || install -d -o {user} -m 700 /var/lib/{state}; umask {values['UMask'][0]}")
        commands.append(f"exec setpriv --reuid {user} --regid {user} --init-groups {values['ExecStart'][0]}")
        environment = ENVIRONMENT | {"CREDENTIALS_DIRECTORY": folders}
        self.log = open(system / "var/tmp" / f"{unit}.log", "w+")
        self.process = subprocess.Popen(inside("sh", "-ec", "\n".join(commands)), env=environment, stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        Service.all.append(self)

    def said(self):
        return pathlib.Path(self.log.name).read_text()

    def ready(self):
        end = time.monotonic() + PATIENCE
        while "ready http" not in self.said():
            assert time.monotonic() < end and self.process.poll() is None, self.said()
            time.sleep(0.05)
        print(f"{self.unit}:", re.search("ready .*", self.said()).group(), flush=True)
        return self

    def stop(self):
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0, self.said()


def initialize(token):
    connection = http.client.HTTPConnection("127.0.0.1", 8377, timeout=PATIENCE)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE})
    connection.request("POST", "/mcp", body, {
        "Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"})
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200 and '"protocolVersion":"2025-11-25"' in text, (answer.status, text)
    print("initialize:", text.strip()[:120], flush=True)


STATE, TOKENS = "/var/lib/playground-sandbox", "/var/lib/playground-edge/tokens.json"


def started():
    sandbox, edge = Service("playground-sandbox.service").ready(), Service("playground-edge.service").ready()
    run("playground", "user", "create", "alice", "--state", STATE, "--tokens", TOKENS, "--out", "/root/alice.token")
    assert look(TOKENS) == "playground 600"
    initialize(token())
    assert "hello" in run("playground", "exec", "alice", "--state", STATE, "--", "sh", "-c", "echo hello | tee kept")
    return sandbox, edge


def token():
    return (system / "root/alice.token").read_text().strip()


def upgraded(sandbox, edge):
    mine = system / "etc/playground/playground.toml"
    mine.write_text('hosts = ["127.0.0.1"]\n')
    secret = (system / "etc/playground/sandbox.token").read_text()
    install(second)
    assert mine.read_text() == 'hosts = ["127.0.0.1"]\n', "what the operator wrote stays"
    assert (system / "etc/playground/sandbox.token").read_text() == secret
    # The sandboxes go on, and the next edge serves them.
    initialize(token())
    edge.stop()
    edge = Service("playground-edge.service").ready()
    initialize(token())
    assert "hello" in run("playground", "exec", "alice", "--state", STATE, "--", "cat", "kept")
    edge.stop()
    sandbox.stop()


def removed():
    run("systemctl", "enable", *ENABLED)
    run("dpkg", "--remove", "playground")
    assert not there("/usr/bin/playground") and not there("/lib/systemd/system/playground.service")
    assert there("/etc/playground/playground.toml") and there("/etc/playground/sandbox.token") and there(STATE)


def purged():
    wanted = list((system / "etc/systemd/system").glob("*.wants/playground*"))
    assert {link.name for link in wanted} == set(ENABLED), wanted
    said = run("dpkg", "--purge", "playground")
    assert not [link for link in wanted if link.is_symlink()], "what was enabled still is"
    assert not there("/etc/playground")
    assert there(STATE + "/sandbox/tenants") and there(TOKENS)
    assert "kept: /var/lib/playground-sandbox" in said and "kept: /var/lib/playground-edge" in said, said
    assert len(run("dpkg-query", "--list", "playground", code=1))


def asked():
    """What was kept is found again, and goes when that is asked for."""
    install(second)
    sandbox = Service("playground-sandbox.service").ready()
    assert "hello" in run("playground", "exec", "alice", "--state", STATE, "--", "cat", "kept")
    sandbox.stop()
    run("touch", "/etc/playground/purge-tenants")
    said = run("dpkg", "--purge", "playground")
    left = [place for place in ("/etc/playground", STATE, "/var/lib/playground-edge") if there(place)]
    assert not left and "kept" not in said, (left, said)
    print("purged: nothing is left", flush=True)


main()
