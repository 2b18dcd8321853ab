"""Runs what the units start, as systemd would: their command lines, users, capabilities, credentials, sockets and folders are
read from the unit files. Nothing of a unit is repeated here but what only systemd can do.

Everything is in a mount and a network namespace of its own: an /etc/playground made for it, a read-only root, and the real
ports on a loopback that nobody else has.
"""

import http.client
import json
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time

units, binary, work = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
ETC = pathlib.Path("/etc/playground")
USERS = {"root": 0, "playground": 61990, "playground-sandbox": 61991, "dynamic": 61992}
INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "units", "version": "1"}}
PATIENCE = 60
# A stdio server of one answer, for the native worker.
SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "native of bob", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    elif "id" in asked:
        error = {"code": -32601, "message": "no"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)
"""


def main():
    if os.environ.get("INSIDE") != "1":
        made = not ETC.exists()
        ETC.mkdir(exist_ok=True)
        try:
            again = ["unshare", "--mount", "--net", sys.executable, __file__, *sys.argv[1:]]
            sys.exit(subprocess.run(again, env=dict(os.environ, INSIDE="1")).returncode)
        finally:
            if made:
                ETC.rmdir()
    work.mkdir(parents=True)
    work.chmod(0o755)
    shutil.copy(binary, work / "playground")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", ETC], check=True)
    # As ProtectSystem=strict: what is not the unit's own is read-only.
    subprocess.run(["mount", "--bind", work, work], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", "/"], check=True)
    try:
        for trial in (halves, unprivileged, whole):
            configured()
            trial()
    finally:
        for service in Service.all:
            if service.process.poll() is None:
                os.killpg(service.process.pid, signal.SIGKILL)
        subprocess.run(["chattr", "-R", "-f", "-a", work / "lib"], stderr=subprocess.DEVNULL)


class Unit:
    """A unit file: each key with all of its values."""

    def __init__(self, name, instance="", drop_in=None):
        self.name, self.values = name, {}
        for file in filter(None, (name, drop_in)):
            for line in (units / file).read_text().splitlines():
                if "=" in line and not line.startswith("#"):
                    key, value = line.split("=", 1)
                    value = value.replace("%S", str(work / "lib")).replace("%i", instance)
                    # An empty value takes back those before.
                    self.values[key] = [*self.values.get(key, []), value] if value else [""]

    def one(self, key, default=""):
        return self.values.get(key, [default])[-1]

    def words(self, key):
        return " ".join(self.values.get(key, [])).split()

    def command(self, key):
        programs = {"/usr/bin/playground": work / "playground", "/usr/lib/playground/worker-run": units / "worker-run"}
        program, *rest = self.one(key).split()
        return [str(programs[program]), *rest]

    def user(self):
        return USERS["dynamic" if self.one("DynamicUser") == "yes" else self.one("User", "root")]

    def as_user(self):
        """The start of a command that runs as the unit's user, with the capabilities that the unit leaves it."""
        user = str(self.user())
        setpriv = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
        lower = lambda names: ["+" + name.removeprefix("CAP_").lower() for name in names]
        if "CapabilityBoundingSet" in self.values:
            setpriv.append("--bounding-set=" + ",".join(["-all", *lower(self.words("CapabilityBoundingSet"))]))
        if ambient := lower(self.words("AmbientCapabilities")):
            setpriv += [f"--{kind}-caps=" + ",".join(ambient) for kind in ("inh", "ambient")]
        return setpriv + (["--no-new-privs"] if self.one("NoNewPrivileges") == "yes" else [])


class Service:
    """What a unit starts, and what it says to its manager."""

    all = []

    def __init__(self, unit, sockets=(), traced=False):
        self.unit, self.traced = unit, work / f"{unit.name}.trace" if traced else None
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        path = work / f"{unit.name}.notify"
        path.unlink(missing_ok=True)
        self.notify.bind(str(path))
        path.chmod(0o777)
        # Read all the time, as a manager does: a new network namespace has room for ten messages, and then a service waits.
        self.messages = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
        if unit.one("Type") == "notify":
            self.environment["NOTIFY_SOCKET"] = str(path)
        if unit.one("WatchdogSec"):
            # Sooner than the unit has it, so that the test need not be as long.
            self.environment["WATCHDOG_USEC"] = "900000"
        self.folders()
        self.credentials()
        command = [*unit.as_user(), *unit.command("ExecStart")]
        if sockets:
            self.environment |= {"LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join([unit.name[:-8] + ".socket"] * len(sockets))}
        # Only the process itself knows its number.
        command = ["sh", "-c", 'export LISTEN_PID=$$ WATCHDOG_PID=$$; exec "$@"', "sh", *command]
        if self.traced:
            command = ["strace", "-f", "-qq", "-e", "signal=none", "-o", str(self.traced), *command]
        self.log = open(work / f"{unit.name}.log", "w")
        self.process = subprocess.Popen(
            command, env=self.environment, cwd="/", stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            start_new_session=True, umask=int(unit.one("UMask", "0022"), 8), close_fds=False, preexec_fn=lambda: handed(sockets),
        )
        Service.all.append(self)

    def folders(self):
        for name in self.unit.words("StateDirectory"):
            folder = work / "lib" / name
            folder.mkdir(parents=True, exist_ok=True)
            folder.parent.chmod(0o755)
            folder.chmod(int(self.unit.one("StateDirectoryMode", "0755"), 8))
            os.chown(folder, self.unit.user(), self.unit.user())
            self.environment["STATE_DIRECTORY"] = str(folder)

    def credentials(self):
        """Copies for the unit's user alone; of a folder each file, named after both."""
        folder = work / f"{self.unit.name}.credentials"
        subprocess.run(["rm", "-rf", folder], check=True)
        folder.mkdir()
        for pair in self.unit.values.get("LoadCredential", []):
            name, source = pair.split(":", 1)
            source = pathlib.Path(source)
            files = {f"{name}_{file.name}": file for file in source.iterdir()} if source.is_dir() else {name: source}
            for name, file in files.items():
                shutil.copyfile(file, folder / name)
                (folder / name).chmod(0o400)
                os.chown(folder / name, self.unit.user(), self.unit.user())
        os.chown(folder, self.unit.user(), self.unit.user())
        folder.chmod(0o500)
        self.environment["CREDENTIALS_DIRECTORY"] = str(folder)

    def listen(self):
        while True:
            message = self.notify.recv(65536).decode()
            self.messages.put(dict(line.split("=", 1) for line in message.splitlines()))

    def hears(self, name):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                message = self.messages.get(timeout=0.5)
            except queue.Empty:
                # What it said before it ended has been heard by then.
                if self.process.poll() is None:
                    continue
                break
            if name in message:
                return message
        raise AssertionError(f"{self.unit.name} did not say {name}: {self.said()}")

    def logs(self, text):
        end = time.monotonic() + PATIENCE
        while text not in self.said():
            assert time.monotonic() < end and self.process.poll() is None, self.said()
            time.sleep(0.02)

    def said(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text()

    def reload(self):
        command = [*self.unit.as_user(), *self.unit.command("ExecReload")]
        subprocess.run(command, env=self.environment, check=True, timeout=PATIENCE)
        self.hears("RELOADING")
        self.hears("READY")

    def stop(self, code=0):
        main = self.process.pid
        if self.traced:
            main = int(pathlib.Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])
        os.kill(main, signal.SIGTERM)
        if self.unit.one("Type") == "notify":
            self.hears("STOPPING")
        assert self.process.wait(PATIENCE) == code, self.said()


def handed(sockets):
    """In the child: the sockets from descriptor 3 on, and nothing behind them."""
    for number, listener in enumerate(sockets):
        os.dup2(listener.fileno(), 200 + number)
    for number in range(len(sockets)):
        os.dup2(200 + number, 3 + number)
    os.closerange(3 + len(sockets), 1024)


def sockets_of(unit):
    """What a socket unit listens on; a bare port is every address of both families."""
    listeners = []
    for stream in unit.words("ListenStream"):
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("::", int(stream)))
        listener.listen(int(unit.one("Backlog")))
        listeners.append(listener)
    return listeners


def configured():
    """As after an installation: what tmpfiles makes, and the secret between both halves."""
    subprocess.run(["chattr", "-R", "-f", "-a", work / "lib"], stderr=subprocess.DEVNULL)
    for place in (*ETC.iterdir(), work / "lib"):
        subprocess.run(["rm", "-rf", place], check=True)
    for line in (units / "playground.tmpfiles").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, path, mode, user, _, _, *text = line.split(None, 6)
        path = work / "lib" / pathlib.Path(path).relative_to("/var/lib") if path.startswith("/var") else pathlib.Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if kind == "d" else path.write_text("".join(text))
        path.chmod(int(mode, 8))
        os.chown(path, USERS[user], USERS[user])
    (work / "lib").chmod(0o755)
    secret(ETC / "sandbox.token")
    (ETC / "playground.toml").write_text("")


def secret(path):
    path.write_text(os.urandom(32).hex() + "\n")
    path.chmod(0o600)


def playground(*words, user="root"):
    """A verb as an operator types it."""
    as_user = ["setpriv", "--reuid", str(USERS[user]), "--regid", str(USERS[user]), "--clear-groups"]
    done = subprocess.run([*as_user, work / "playground", *map(str, words)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, (words, done.stderr)
    return done


def ask(url, token, method, params, session=None):
    tls = ssl.create_default_context(cafile=work / "cert/dev-ca.pem") if url.startswith("https") else None
    host, port = re.fullmatch(r"https?://([a-z0-9.]+):(\d+)", url).groups()
    connection = http.client.HTTPSConnection(host, int(port), context=tls, timeout=PATIENCE) if tls else http.client.HTTPConnection(
        host, int(port), timeout=PATIENCE)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    assert answer.status == 200, (answer.status, text)
    data = [line[5:] for line in text.splitlines() if line.startswith("data:") and "{" in line]
    return json.loads(data[-1] if data else text)["result"], answer.getheader("mcp-session-id")


def shell(url, token, command):
    """The text of a command in the tenant's sandbox, by the tools of the protocol."""
    _, session = ask(url, token, "initialize", INITIALIZE)
    opened, _ = ask(url, token, "tools/call", {"name": "open_session", "arguments": {}}, session)
    handle = re.search(r"[A-Za-z0-9_-]{20,}", json.dumps(opened["structuredContent"])).group()
    done, _ = ask(url, token, "tools/call", {"name": "exec", "arguments": {"session": handle, "command": command}}, session)
    return done["content"][0]["text"]


def halves():
    edge, sandbox, worker = Unit("playground-edge.service"), Unit("playground-sandbox.service"), Unit("playground-worker@.service", "bob")
    playground("cert", "dev", "--out", work / "cert")
    for made, part in (("dev.pem", "cert.pem"), ("dev.key", "key.pem")):
        shutil.copy(work / "cert" / made, ETC / "tls" / part)
        (ETC / "tls" / part).chmod(0o600)
    secret(ETC / "worker-tokens/bob")
    (work / "server.py").write_text(SERVER)
    arguments = ["worker", "stdio", "--listen", "{address}", "--token-file", "{token}", "--", "/usr/bin/python3", work / "server.py"]
    conf = ["address=127.0.0.1:8401", f"program={work}/playground", *(f"argument={it}" for it in arguments)]
    (ETC / "workers/bob.conf").write_text("\n".join(map(str, conf)) + "\n")
    (ETC / "workers/bob.conf").chmod(0o600)
    (ETC / "playground.toml").write_text("""hosts = ["localhost"]
[tls]
cert = "credential:tls_cert.pem"
key = "credential:tls_key.pem"
[[worker]]
tenant = "bob"
address = "127.0.0.1:8401"
token_file = "credential:worker_bob"
""")
    state, tokens = work / "lib/playground-sandbox", work / "lib/playground-edge/tokens.json"
    native = Service(worker)
    native.logs("ready http://127.0.0.1:8401")
    inner = Service(sandbox)
    print("playground-sandbox.service:", inner.hears("READY")["STATUS"])
    listeners = sockets_of(Unit("playground-edge.socket"))
    outer = Service(edge, listeners, traced=True)
    print("playground-edge.service:", outer.hears("READY")["STATUS"])
    playground("user", "create", "alice", "--state", state, "--tokens", tokens, "--out", work / "alice.token")
    playground("invite", "create", "alice", "--state", tokens.parent, user="playground")
    playground("token", "mint", "bob", "--catalogue", "native", "--tokens", tokens, "--out", work / "bob.token")
    said = shell("https://localhost:443", (work / "alice.token").read_text().strip(), "echo up; cat /proc/1/environ | tr '\\0' '\\n'")
    assert said.startswith("up\n") and not re.search("NOTIFY|LISTEN|CREDENTIALS|WATCHDOG", said), said
    result, _ = ask("https://localhost:443", (work / "bob.token").read_text().strip(), "initialize", INITIALIZE)
    assert result["serverInfo"]["name"] == "native of bob", result
    plain = http.client.HTTPConnection("localhost", 80, timeout=PATIENCE)
    plain.request("GET", "/mcp", headers={"Host": "localhost"})
    moved = plain.getresponse()
    assert (moved.status, moved.getheader("location")) == (308, "https://localhost/mcp"), (moved.status, moved.headers)
    outer.reload()
    for service in (outer, inner):
        for _ in range(3):
            service.hears("WATCHDOG")
    trace = outer.traced
    assert ask_health(443) == 200
    outer.stop()
    # The sockets are still there: who comes now waits, and the next edge answers.
    answered = []
    waiting = threading.Thread(target=lambda: answered.append(ask_health(443)))
    waiting.start()
    outer = Service(edge, listeners)
    waiting.join(PATIENCE)
    assert answered == [200], outer.said()
    outer.stop()
    inner.stop()
    native.process.terminate()
    native.process.wait(PATIENCE)
    filtered(edge, trace)
    playground("user", "destroy", "alice", "--yes", "--delete-pile", "--state", state, "--tokens", tokens)
    print("the two halves and a native worker: served through the sockets, as three users")


def unprivileged():
    """The sandbox worker as a user of its own, and the edge without a socket unit: no part is root."""
    sandbox = Unit("playground-sandbox.service", drop_in="playground-sandbox-user.conf")
    inner = Service(sandbox)
    print("playground-sandbox.service with its drop-in:", inner.hears("READY")["STATUS"])
    outer = Service(Unit("playground-edge.service"))
    outer.hears("READY")
    state, edge = work / "lib/playground-sandbox", work / "lib/playground-edge"
    playground("user", "create", "dave", "--state", state, user="playground-sandbox")
    minted = playground("token", "mint", "dave", "--state", edge, user="playground")
    said = shell("http://127.0.0.1:8377", minted.stdout.strip(), "echo up")
    assert said.startswith("up\n"), said
    outer.stop()
    inner.stop()
    playground("user", "destroy", "dave", "--yes", "--state", state, user="playground-sandbox")
    print("the two halves without root: served")


def ask_health(port):
    connection = http.client.HTTPSConnection(
        "localhost", port, context=ssl.create_default_context(cafile=work / "cert/dev-ca.pem"), timeout=PATIENCE)
    connection.request("GET", "/healthz")
    return connection.getresponse().status


def filtered(unit, trace):
    """Everything that the service asked of the kernel is in its SystemCallFilter."""
    allowed = set()
    for line in unit.values["SystemCallFilter"]:
        names = {name for word in line.removeprefix("~").split() for name in group(word)}
        allowed = allowed - names if line.startswith("~") else allowed | names
    # The shell and setpriv come before the service itself, and have a filter of nobody.
    lines = trace.read_text(errors="replace").splitlines()
    first = next(number for number, line in enumerate(lines) if f'execve("{work}/playground"' in line and line.endswith("= 0"))
    called = {found.group(1) for line in lines[first:] if (found := re.match(r"\d+ +([a-z_0-9]+)\(", line))}
    # Whatever is allowed in any case: see `@default`.
    missing = called - allowed - set(group("@default"))
    # Of the half that faces clients as well, which gives up what it holds.
    assert "capset" in called and not missing, (sorted(missing), len(called))
    print(f"{unit.name}: its {len(called)} system calls are in its filter")


def group(word):
    if not word.startswith("@"):
        return [word]
    listed = subprocess.run(["systemd-analyze", "syscall-filter", word], check=True, capture_output=True, text=True).stdout
    words = [line.strip() for line in listed.splitlines()[1:]]
    return [name for word in words if word and not word.startswith("#") for name in group(word)]


def whole():
    service = Service(Unit("playground.service"))
    print("playground.service:", service.hears("READY")["STATUS"])
    state = work / "lib/playground"
    playground("user", "create", "carol", "--state", state, "--out", work / "carol.token")
    said = shell("http://127.0.0.1:8377", (work / "carol.token").read_text().strip(), "echo up")
    assert said.startswith("up\n"), said
    service.reload()
    service.hears("WATCHDOG")
    service.stop()
    playground("user", "destroy", "carol", "--yes", "--delete-pile", "--state", state)
    print("the single unit: served")


main()
