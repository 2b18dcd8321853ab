"""Starts what the Dockerfile and the pod would start, in folders that hold what their images hold, and asks the probes.

    started.py DEPLOY BINARY FOLDER
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

USER = 65532
# The base image has these beside libc.
LIBRARIES = ("libc.so.6", "libm.so.6", "libgcc_s.so.1")


class Container:
    """A root folder, read-only but for its volumes, in which a user without capabilities runs one program."""

    def __init__(self, binary: Path, root: Path):
        self.root, self.volumes = root, []
        (root / "usr/bin").mkdir(parents=True)
        shutil.copy(binary, root / "usr/bin/playground")
        for line in subprocess.run(["ldd", binary], check=True, capture_output=True, text=True).stdout.splitlines():
            found = re.search(r"(/\S+) \(0x", line)
            if found:
                target = root / found[1].lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(found[1], target)
                assert target.name in LIBRARIES or target.name.startswith("ld-linux"), f"the base image has no {target.name}"
        for folder in ("etc/ssl/certs", "proc", "dev", "tmp"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")
        (root / "etc/passwd").write_text(f"root:x:0:0::/root:/sbin/nologin\nnonroot:x:{USER}:{USER}::/home/nonroot:/sbin/nologin\n")

    def volume(self, source: Path, at: str, readonly: bool) -> None:
        (self.root / at.lstrip("/")).mkdir(parents=True, exist_ok=True)
        self.volumes.append((source, at.lstrip("/"), readonly))

    def command(self, argv: list[str]) -> list[str]:
        """Its mounts are its own; the network is the pod's, which here is the host's loopback."""
        root = self.root
        steps = [f"mount --bind {root} {root}", f"mount -t proc proc {root}/proc", f"mount --bind /dev {root}/dev"]
        steps += [f"mount --bind {source} {root}/{at}" for source, at, _ in self.volumes]
        steps += [f"mount -o remount,bind,ro {root}/{at}" for _, at, readonly in self.volumes if readonly]
        steps += [f"mount -o remount,bind,ro {root}", f"cd {root}"]
        # Who is no longer root has no capability, and cannot get one.
        enter = ["setpriv", "--no-new-privs", "chroot", f"--userspec={USER}:{USER}", "--groups=", str(root), *argv]
        quoted = " ".join(f"'{word}'" for word in ["env", "-i", "PATH=/usr/bin:/usr/sbin:/bin:/sbin", *enter])
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", " && ".join(steps) + f" && exec {quoted}"]

    def start(self, argv: list[str], log: Path) -> subprocess.Popen:
        return subprocess.Popen(self.command(argv), stdin=subprocess.DEVNULL, stdout=log.open("w"), stderr=subprocess.STDOUT)

    def run(self, argv: list[str]) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(argv), capture_output=True, text=True, timeout=60, check=False)


def main() -> None:
    deploy, binary, work = (Path(word).resolve() for word in sys.argv[1:])
    work.mkdir()
    certificate(work)
    docker(deploy / "docker/Dockerfile", binary, work)
    kubernetes(deploy / "kubernetes/playground.yaml", binary, work)


def docker(dockerfile: Path, binary: Path, work: Path) -> None:
    """The last stage, with its command and its health check as they stand."""
    stage = dockerfile.read_text().split("\nFROM ")[-1]
    said = {word: json.loads(words) for word, words in re.findall(r"^(ENTRYPOINT|CMD|VOLUME) (\[.*\])$", stage, re.M)}
    health = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.*\])$", stage, re.M)[1])
    copied = re.findall(r"^COPY --from=build (?:--chown=(\S+) )?(\S+) (\S+)$", stage, re.M)
    assert copied == [("", "/src/target/release/playground", "/usr/bin/playground"),
                      (f"{USER}:{USER}", "/empty", said["VOLUME"][0])], copied
    assert re.search(rf"^USER {USER}:{USER}$", stage, re.M)
    container = Container(binary, work / "docker")
    state, etc = mine(work / "docker-state", 0o755), work / "docker-etc"
    container.volume(state, said["VOLUME"][0], readonly=False)
    files(etc, {"playground.toml": 'bind = "127.0.0.1:8443"\nsandbox = false\nworkers = "/etc/playground/workers.json"\n',
                "workers.json": '{"workers":[{"tenant":"alice","address":"127.0.0.1:8401","token_file":"alice.key"}]}',
                "alice.key": "k" * 40}, 0o440)
    container.volume(etc, "/etc/playground", readonly=True)
    assert container.run(health).returncode == 6, "the health check finds a state before there is one"
    process = container.start([*said["ENTRYPOINT"], *said["CMD"]], work / "docker.log")
    beside = None
    try:
        until(lambda: container.run(health).returncode == 5, work / "docker.log")
        assert "8401" in container.run(health).stdout, "nothing says which worker is away"
        worker = serving(Container(binary, work / "docker-worker"))
        worker.volume(etc, "/etc/playground", readonly=True)
        beside = worker.start("/usr/bin/playground worker stdio --listen 127.0.0.1:8401 --token-file /etc/playground/alice.key"
                              " -- your-server".split(), work / "docker-worker.log")
        until(lambda: container.run(health).returncode == 0, work / "docker.log")
        assert owner(process) == USER
    finally:
        code = stop(process)
        beside is None or stop(beside)
    assert code == 0, f"the service left {code}: {(work / 'docker.log').read_text()}"
    print("docker: what the image starts serves, read-only, as its user, and its health check knows")


def kubernetes(file: Path, binary: Path, work: Path) -> None:
    """Both containers of the pod on one loopback, their files where the volumes put them, and the probes as they stand."""
    by_kind = {it["kind"]: it for it in yaml.safe_load_all(file.read_text())}
    spec = by_kind["Deployment"]["spec"]["template"]["spec"]
    folders = {
        "config": files(work / "config", by_kind["ConfigMap"]["data"], 0o644),
        "tls": files(work / "tls", {name: (work / name).read_text() for name in ("tls.crt", "tls.key")}, 0o440),
        "workers": files(work / "workers", {"alice.key": "t0ken-of-alice-" * 3}, 0o440),
        "state": mine(work / "state", 0o2777), "scratch": mine(work / "scratch", 0o2777)}
    edge, worker = (box(spec["containers"][at], folders, binary, work) for at in (0, 1))
    serving(worker)
    edge_args, worker_args = (["/usr/bin/playground", *spec["containers"][at]["args"]] for at in (0, 1))
    running = [worker.start(worker_args, work / "worker.log"), edge.start(edge_args, work / "edge.log")]
    try:
        until(lambda: probe(spec["containers"][0]["readinessProbe"]["httpGet"]) == "200", work / "edge.log")
        alive = spec["containers"][1]["livenessProbe"]["exec"]["command"]
        until(lambda: worker.run(alive).returncode == 0, work / "worker.log")
        minted = edge.run(MINT.split())
        assert minted.returncode == 0, minted.stderr
        assert '"name":"hello"' in tools(minted.stdout.strip()), tools(minted.stdout.strip())
        assert [owner(process) for process in running] == [USER, USER]
        codes = [stop(process) for process in running[:1]]
        until(lambda: worker.run(alive).returncode != 0, work / "worker.log")
    finally:
        codes += [stop(process) for process in reversed(running) if process.poll() is None]
    assert codes == [0, 0], f"{codes}: {(work / 'edge.log').read_text()}"
    print("kubernetes: both containers serve together, and every probe tells living from dead")


# As README.md has it, behind `exec … --`.
MINT = "/usr/bin/playground token mint alice --catalogue native --state /var/lib/playground/edge"
SERVER = """#!/usr/bin/dash
# A stdio MCP server, as small as one can be.
while read -r line; do
	id=${line#*'"id":'} id=${id%%[,\}]*}
	case $line in
	*'"initialize"'*) answer='"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
	*'"tools/list"'*) answer='"result":{"tools":[{"name":"hello","description":"Says hello.","inputSchema":{"type":"object"}}]}' ;;
	*'"notifications/'*) continue ;;
	*) answer='"error":{"code":-32601,"message":"no such method"}' ;;
	esac
	printf '{"jsonrpc":"2.0","id":%s,%s}\\n' "$id" "$answer"
done
"""


def serving(container: Container) -> Container:
    """With the server that the example calls `your-server`, and the sh that it is written in."""
    shutil.copy("/usr/bin/dash", container.root / "usr/bin/dash")
    server = container.root / "usr/bin/your-server"
    server.write_text(SERVER)
    server.chmod(0o755)
    return container


def box(said: dict, folders: dict, binary: Path, work: Path) -> Container:
    container = Container(binary, work / f"pod-{said['name']}")
    for mount in said["volumeMounts"]:
        container.volume(folders[mount["name"]], mount["mountPath"], mount.get("readOnly", False))
    return container


def files(folder: Path, contents: dict[str, str], mode: int) -> Path:
    """As a kubelet lays a volume of files out: root's, for the pod's group to read, each behind two links."""
    data = folder / "..2026_01_01"
    data.mkdir(parents=True)
    (folder / "..data").symlink_to("..2026_01_01")
    for name, text in contents.items():
        (data / name).write_text(text)
        os.chown(data / name, 0, USER)
        (data / name).chmod(mode)
        (folder / name).symlink_to(f"..data/{name}")
    return folder


def mine(folder: Path, mode: int) -> Path:
    folder.mkdir()
    os.chown(folder, USER if mode == 0o755 else 0, USER)
    folder.chmod(mode)
    return folder


def certificate(work: Path) -> None:
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                    "-subj", "/CN=mcp.example.org", "-addext", "subjectAltName=DNS:mcp.example.org", "-keyout", work / "tls.key",
                    "-out", work / "tls.crt"], check=True, capture_output=True)


def probe(get: dict) -> str:
    """As a kubelet asks: by the pod's address, without looking at the certificate."""
    url = f"{get['scheme'].lower()}://127.0.0.1:8443{get['path']}"
    return subprocess.run(["curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}", url], capture_output=True,
                          text=True, check=False).stdout


def tools(token: str) -> str:
    """What a client finds, at the name and with the certificate that it expects."""
    def post(body: dict, *headers: str) -> str:
        said = [word for header in headers for word in ("-H", header)]
        return subprocess.run(["curl", "-sk", "-m", "20", "-i", "--connect-to", "mcp.example.org:443:127.0.0.1:8443", "-H",
                               f"Authorization: Bearer {token}", "-H", "Content-Type: application/json", "-H",
                               "Accept: application/json, text/event-stream", *said, "-d", json.dumps({"jsonrpc": "2.0"} | body),
                               "https://mcp.example.org/mcp"], check=True, capture_output=True, text=True).stdout
    hello = post({"id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "pod", "version": "1"}}})
    found = re.search(r"(?i)^mcp-session-id: (\S+)", hello, re.M)
    assert found, hello
    session = f"Mcp-Session-Id: {found[1]}"
    post({"method": "notifications/initialized"}, session)
    return post({"id": 2, "method": "tools/list"}, session)


def until(holds, log: Path) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.2)


def inner(process: subprocess.Popen) -> int:
    """The first process inside, whom an engine signals."""
    return int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])


def owner(process: subprocess.Popen) -> int:
    return os.stat(f"/proc/{inner(process)}").st_uid


def stop(process: subprocess.Popen) -> int:
    if process.poll() is None:
        os.kill(inner(process), signal.SIGTERM)
    return process.wait(60)


if __name__ == "__main__":
    if "--alone" not in sys.argv:
        # A loopback of their own: the ports are those that stand in the files.
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B",
                              *sys.argv, "--alone"])
    sys.argv.remove("--alone")
    main()
