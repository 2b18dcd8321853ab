"""The checks of the FreeBSD services, each with a name; what is refused is in refusals.py."""

import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

from host import CONFIG, FACULTIES, HERE, JAIL, MANIFEST, TOKEN, Host
from odd import ATTACHED, NOT_ATTACHED
from refusals import REFUSALS, refused

MCP, SANDBOX = "playground_mcp", "playground_sandbox"
ALL = []
PATH = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"
KEY = "/usr/local/etc/playground-workers/alice.key"


# A step that waits for what the supervisor writes once it has reopened its log, and gives up in the end.
AT_LAST = "n=0; until [ -s /record/reopened ] || [ $n = 300 ]; do sleep 0.1; n=$((n + 1)); done"


def check(name, says=""):
    def kept(test):
        ALL.append((name, test, says))
        return test
    return kept


def on_host(name, says=""):
    """A check that has a host of its own, on which no stand-in may have met what it does not know."""
    def kept(test):
        def whole(deploy):
            host = Host(deploy)
            try:
                test(host)
                assert not host.strict(), host.strict()
                quiet(host)
            finally:
                host.close()
        return check(name, says)(whole)
    return kept


def quiet(host):
    """The token is where it belongs and nowhere else: in no argument, no environment, no output and no other file."""
    for call in host.calls():
        assert TOKEN not in "\0".join(call.argv), f"the token is an argument of {call.argv[0]}"
        assert TOKEN not in "\0".join(call.environ.values()), f"the token is in the environment of {call.argv[0]}"
    for at in host.root.rglob("*"):
        if at.is_symlink() or not at.is_file() or at in (host.path(KEY), host.path(KEY + ".real"), host.jail("/var/run/faculties-mcp/token")):
            continue
        if at.parent.name in ("record", "jail") and at.suffix in (".stdin", ".token"):
            continue
        assert TOKEN.encode() not in at.read_bytes(), f"the token lies in {at}"


for refusal in REFUSALS:
    on_host(f"{refusal.service} refuses: {refusal.name}", refusal.says)(lambda host, refusal=refusal: refused(host, refusal))


def ends(told, code, *, out="", err=""):
    assert told.code == code and out in told.out and err in told.err, told


# --- every service

for service, alive in ((MCP, "playground"), (SANDBOX, "playground"), (FACULTIES, "faculties")):
    @on_host(f"{service} starts, is there, starts again and stops")
    def lifecycle(host, service=service, alive=alive):
        log = f"/var/log/{service}.log"
        start, status, again, restart, stop, gone, twice = host.run(
            service, "start", "status", "start", "restart", "stop", "status", "stop")
        ends(start, 0, out=f"Starting {service}.")
        ends(status, 0, out=f"{service} is running as pid ")
        ends(again, 1, err="already running")
        ends(restart, 0, out=f"Stopping {service}.\nStarting {service}.")
        ends(stop, 0, out=f"Stopping {service}.")
        ends(gone, 1, out="is not running.")
        ends(twice, 1, err="not running?")
        assert len(host.calls("daemon")) == 2
        for call in host.calls("daemon"):
            assert call.argv[1:7] == ["-f", "-H", "-P", f"/var/run/{service}.pid", *(
                ["-R", "10"] if service == FACULTIES else ["-o", log])], call.argv
            assert "-r" not in call.argv[:call.argv.index("--")]
            assert call.beside("private") == "0077 0\n", call.beside("private")
        assert host.path(log).stat().st_mode & 0o777 == 0o600
        assert len([call for call in host.calls(alive) if "attach" not in call.argv]) == 2

    @on_host(f"{service} does nothing while it is not enabled, and is started by onestart and forcestart")
    def disabled(host, service=service):
        host.rc_conf(f"{service}_enable=NO\n")
        start, quick, one, stop, force = host.run(service, "start", "faststart", "onestart", "stop", "forcestart")
        ends(start, 0, out=f"Cannot 'start' {service}.")
        assert (quick.code, quick.out, quick.err) == (0, "", "")
        ends(one, 0, out=f"Starting {service}.")
        ends(stop, 0)
        ends(force, 0, out=f"Starting {service}.")
        assert len(host.calls("daemon")) == 2

    @on_host(f"{service} starts in no service jail, whatever rc.conf says of all")
    def no_service_jail(host, service=service):
        host.rc_conf(f"svcj_all_enable=YES\n{service}_svcj=YES\n")
        start, = host.run(service, "start")
        ends(start, 0, out=f"Starting {service}.")

    @on_host(f"{service} tells its variable and what it is, and knows no other command")
    def told_of(host, service=service):
        rcvar, describe, odd = host.run(service, "rcvar", "describe", "launch")
        ends(rcvar, 0, out=f'{service}_enable="YES"')
        ends(describe, 0, out="Playground: ")
        ends(odd, 1, err="Usage: ")
        assert [call.argv[0] for call in host.calls() if call.argv[0] not in ("sh", "tr", "grep")] == []

    @on_host(f"{service} is not held up by the pid of another program in its pid file")
    def stale(host, service=service):
        host.write(f"/var/run/{service}.pid", "1\n", 0o644)
        start, = host.run(service, "start")
        ends(start, 0, out=f"Starting {service}.")

    @on_host(f"{service} reopens its log when newsyslog asks its supervisor to")
    def reopens(host, service=service):
        start, hup, status = host.run(service, "start", f"!kill -HUP $(cat /var/run/{service}.pid); {AT_LAST}", "status")
        ends(status, 0, out="is running as pid")
        assert host.path("/record/reopened").read_text() == "reopened\n"
        lines = (HERE.parent.parent.parent / "deploy/freebsd/newsyslog.conf").read_text()
        assert re.search(rf"^/var/log/{service}\.log\s+600\s+7\s+10000\s+\*\s+ZCE\s+/var/run/{service}\.pid$", lines, re.M), service

    @on_host(f"{service} hands nothing of its caller's environment on")
    def environment(host, service=service):
        odd = {"SECRET": "of-the-caller", "LD_PRELOAD": "/evil", "worker_tenant": "mallory", "worker_token": "x" * 40,
               "PERSONA": "mallory", "IFS": "a"}
        start, = host.run(service, "start", environ=odd)
        # The stand-ins are sh, whose loader says that there is no such library.
        assert start.code == 0, start
        for call in host.calls():
            if call.place == "jail" or call.argv[0] in ("playground", "daemon", "jexec", "faculties", "jq"):
                extra = call.environ.keys() - {"PATH", "HOME", "PWD", "USER", "SHELL", "LOGNAME", "PILE", "PERSONA", "LC_ALL",
                                               "TRIBLESPACE_KEY"}
                assert not extra, f"{call.argv[0]} got {extra}"
                assert "mallory" not in call.environ.values()

# --- the edge and the sandbox


@on_host("playground_mcp hands its settings to the program, in the words of the original")
def mcp_defaults(host):
    host.run(MCP, "start")
    assert host.one("playground").argv[1:] == [
        "mcp-http", "--backend", "jail", "--jail-local", "--bind", "127.0.0.1:8377",
        "--tokens", "/var/db/playground/tokens.json", "--state", "/var/db/playground"]
    assert host.one("playground").environ.keys() <= {"PATH", "HOME", "PWD"}


@on_host("playground_mcp knows every variable of the original, and leaves a pattern alone")
def mcp_knobs(host):
    host.write("/root/workers.json", "{}", 0o600)
    host.write("/opt.json", '{"tokens":{}}', 0o600)
    copied(host, "/usr/local/bin/playground", "/usr/local/bin/other")
    host.rc_conf('playground_mcp_bind="[::1]:443"\nplayground_mcp_tokens="/opt.json"\nplayground_mcp_logfile="/var/log/other.log"\n'
                 'playground_mcp_binary="/usr/local/bin/other"\nplayground_mcp_flags="--flag one"\n'
                 'playground_mcp_args="--allow-origin * --jail-external-rctl"\nplayground_mcp_state="/var/db/other"\n')
    start, = host.run(MCP, "start")
    ends(start, 0)
    words = host.one("playground").argv[1:]
    assert words == ["mcp-http", "--backend", "jail", "--jail-local", "--bind", "[::1]:443", "--tokens", "/opt.json", "--state",
                     "/var/db/other", "--flag", "one", "--allow-origin", "*", "--jail-external-rctl"], words
    assert host.one("daemon").argv[5:9] == ["-o", "/var/log/other.log", "--", "/usr/local/bin/other"]


def copied(host, source, target):
    host.path(target).write_bytes(host.path(source).read_bytes())
    host.path(target).chmod(0o755)


for code in (1, 2, 10, 11):
    @on_host(f"playground_mcp is not started again after exit code {code}, and its status says where to look")
    def ended(host, code=code):
        host.model("serve.code", str(code))
        start, _, status = host.run(MCP, "start", "!sleep 0.5", "status")
        ends(start, 0)
        ends(status, 1, out="It is not started again by itself. Why it ended is at the end of /var/log/playground_mcp.log")
        assert not host.path("/record/restarts").exists()
        assert len(host.calls("playground")) == 1

    @on_host(f"playground_sandbox is not started again after exit code {code}, and its status says where to look")
    def sandbox_ended(host, code=code):
        host.model("serve.code", str(code))
        start, _, status = host.run(SANDBOX, "start", "!sleep 0.5", "status")
        ends(start, 0)
        ends(status, 1, out="It is not started again by itself. Why it ended is at the end of /var/log/playground_sandbox.log")
        assert not host.path("/record/restarts").exists()
        assert len(host.calls("playground")) == 1


@on_host("playground_mcp reloads through the program, and tests its configuration with the words of start")
def mcp_verbs(host):
    host.rc_conf('playground_mcp_args="--host *"\n')
    _, reload, configtest = host.run(MCP, "start", "reload", "configtest")
    ends(reload, 0)
    ends(configtest, 0)
    start, reloaded, tested = (call.argv[1:] for call in host.calls("playground"))
    assert reloaded == ["reload", "--state", "/var/db/playground"]
    assert tested == ["check-config", *start[1:]]


@on_host("playground_mcp says so when a reload or a test of its configuration fails")
def mcp_verbs_fail(host):
    host.model("verb.code", "5")
    reload, configtest = host.run(MCP, "reload", "configtest")
    assert (reload.code, configtest.code) == (5, 5) or (reload.code, configtest.code) == (1, 1), (reload, configtest)


@on_host("playground_sandbox hands its settings to the program")
def sandbox_defaults(host):
    host.rc_conf('playground_sandbox_args="--quiet *"\n')
    host.run(SANDBOX, "start")
    assert host.one("playground").argv[1:] == [
        "worker", "sandbox", "--backend", "jail", "--jail-local", "--listen", "127.0.0.1:8378",
        "--token-file", "/usr/local/etc/playground/sandbox.token", "--state", "/var/db/playground-sandbox", "--quiet", "*"]


@on_host("playground_sandbox knows its variables")
def sandbox_knobs(host):
    copied(host, "/usr/local/bin/playground", "/usr/local/bin/other")
    host.write("/root/token", "t" * 32, 0o400)
    host.rc_conf('playground_sandbox_listen="[::1]:9"\nplayground_sandbox_token="/root/token"\nplayground_sandbox_state="/s"\n'
                 'playground_sandbox_binary="/usr/local/bin/other"\nplayground_sandbox_logfile="/var/log/o.log"\n')
    host.run(SANDBOX, "start")
    words = host.one("daemon").argv
    assert words[6:8] + words[8:9] == ["/var/log/o.log", "--", "/usr/local/bin/other"], words
    assert words[14:] == ["--listen", "[::1]:9", "--token-file", "/root/token", "--state", "/s"], words

# --- the worker of a tenant


@on_host("the worker gets its fixed arguments and environment, and nothing else")
def worker_exact(host):
    host.run(FACULTIES, "start")
    worker = host.one("faculties")
    assert worker.place == "jail"
    assert worker.argv[1:] == ["mcp", "--pile", "/pile/self.pile", "--key", "/pile/self.key", "--http-listen", "127.0.0.1:8401",
                               "--http-token-file", "/var/run/faculties-mcp/token"]
    assert worker.environ == {
        "PATH": f"/opt/faculties:{PATH}", "HOME": "/root", "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh",
        "PILE": "/pile/self.pile", "TRIBLESPACE_KEY": "/pile/self.key", "PERSONA": "alice assistant"}, worker.environ
    assert host.one("daemon").argv[3:9] == ["-P", f"/var/run/{FACULTIES}.pid", "-R", "10", "-o", f"/var/log/{FACULTIES}.log"]


@on_host("the token crosses into the jail by standard input, and lies there in one file of mode 0400")
def token_crosses(host):
    host.run(FACULTIES, "start")
    crossing, running = host.calls("jexec")
    assert crossing.beside("stdin") == TOKEN
    assert running.beside("stdin") is None, "the worker itself is started with no input"
    assert host.one("faculties").beside("token") == f"0 400 regular file\n{TOKEN}"
    folder = host.jail("/var/run/faculties-mcp")
    assert [at.name for at in folder.iterdir()] == ["token"]
    assert folder.stat().st_mode & 0o7777 == 0o700
    # Under a name that nobody has taken, shown whole by a rename.
    made, = (call for call in host.calls("mktemp"))
    moved, = (call for call in host.calls("mv"))
    assert made.place == moved.place == "jail"
    assert moved.argv[1] == "-f" and re.fullmatch(r"/var/run/faculties-mcp/token\.\w{10}", moved.argv[2])
    assert moved.argv[3] == "/var/run/faculties-mcp/token"


@on_host("what the tenant's folder was before is made private, and an older token is replaced")
def token_replaced(host):
    folder = host.jail("/var/run/faculties-mcp")
    folder.mkdir(mode=0o755)
    (folder / "token").write_text("older")
    (folder / "token").chmod(0o644)
    ends(host.run(FACULTIES, "start")[0], 0)
    assert folder.stat().st_mode & 0o7777 == 0o700
    assert (folder / "token").read_text() == TOKEN
    assert (folder / "token").stat().st_mode & 0o7777 == 0o400


@on_host("a token is changed by a stop, another file, and a start")
def rotated(host):
    other = "another-token-of-at-least-32-chars"
    host.write("/usr/local/etc/playground-workers/other.key", other + "\r\n", 0o600)
    stop = host.run(FACULTIES, "start", "stop", "!mv -f /usr/local/etc/playground-workers/other.key " + KEY, "start")
    assert [told.code for told in stop] == [0, 0, 0, 0], stop
    assert [call.beside("token").split("\n")[1] for call in host.calls("faculties")] == [TOKEN, other]


@on_host("a worker that ends is started again, whatever its exit code")
def worker_restarts(host):
    host.jail("/opt/faculties/faculties").write_text(
        "#!/host/bin/dash\n. /model/record\nrecord faculties \"$@\"\n: >/record/up\nexit 11\n")
    _, _, status = host.run(FACULTIES, "start", "!sleep 0.6", "status")
    ends(status, 0, out="is running as pid")
    assert host.path("/record/restarts").read_text().startswith("10\n10\n")


@on_host("a worker is stopped with neither configuration, list, token, program nor jail")
def stop_needs_nothing(host):
    taken = f"!rm -rf {CONFIG} {MANIFEST} {KEY} /usr/local/bin/playground /usr/local/bin/jq /jails/{JAIL}/opt"
    _, _, stop, status = host.run(FACULTIES, "start", taken + "; echo 0 >/model/sysctl/kern.securelevel", "stop", "status")
    ends(stop, 0, out=f"Stopping {FACULTIES}.")
    ends(status, 1, out="is not running")


@on_host("a supervisor that runs already is told, also at boot, before a token is touched", "supervisor runs already check_pidfile running")
def already_running(host):
    start, again, force = host.run(FACULTIES, "start", "faststart", "forcestart")
    ends(start, 0)
    ends(again, 1, err="its supervisor runs already as pid")
    ends(force, 1, err="already running")
    assert len(host.calls("mv")) == 1
    assert [call.argv for call in host.calls("cat") if KEY in call.argv] == [["cat", KEY]]


for service in (MCP, SANDBOX):
    @on_host(f"{service} is not started twice, also at boot", "supervisor runs already check_pidfile running")
    def not_twice(host, service=service):
        _, again = host.run(service, "start", "faststart")
        ends(again, 1, err="its supervisor runs already as pid")
        assert len(host.calls("daemon")) == 1


@on_host("the name of a service is found at boot, where its file is read by /etc/rc")
def at_boot(host):
    host.write("/boot", f". /etc/rc.subr\nrc_service=/usr/local/etc/rc.d/{FACULTIES}\nset faststart\n. $rc_service\n", 0o644)
    told, = host.run(FACULTIES, "!/host/bin/env -i PATH=/sbin:/bin:/usr/sbin:/usr/bin /bin/sh /boot")
    assert (told.code, told.out, told.err) == (0, "", ""), told
    assert host.one("daemon").argv[4] == f"/var/run/{FACULTIES}.pid"


@on_host("a worker is asked whether it is there, with the list and the tenant")
def worker_asked(host):
    told, = host.run(FACULTIES, "check")
    ends(told, 0)
    assert host.one("playground").argv[1:] == ["worker", "check", "--workers", MANIFEST, "--", "alice"]
    assert not host.calls("jexec")


@on_host("playground_faculties_alice asks its worker for root alone", "only root may start it or ask for it")
def asked_by_root(host):
    told, = host.run(FACULTIES, "onecheck", uid=65534)
    assert told.code == 1 and "only root may start it or ask for it" in told.err, told
    assert not host.calls("playground")


@on_host("a worker that does not answer is told by the exit code of check")
def worker_not_there(host):
    host.model("verb.code", "4")
    told, = host.run(FACULTIES, "check")
    assert told.code != 0, told


@on_host("another instance has its own variables, log and pid file")
def variables(host):
    copied(host, "/usr/local/bin/playground", "/usr/local/bin/other")
    host.rc_conf(f'{FACULTIES}_binary="/usr/local/bin/other"\n{FACULTIES}_logfile="/var/log/w.log"\n')
    ends(host.run(FACULTIES, "start")[0], 0)
    assert host.one("daemon").argv[7:9] == ["-o", "/var/log/w.log"]
    assert [call.argv[5] for call in host.calls("env") if "attach" in call.argv] != []


@on_host("the state directory of the tenant can be another one")
def other_state(host):
    host.write(CONFIG, host.path(CONFIG).read_text() + "worker_state=/var/db/other\n", 0o400)
    host.model("attach.words", host.path("/model/attach.words").read_text().replace("/var/db/playground", "/var/db/other"))
    ends(host.run(FACULTIES, "start")[0], 0)


for name, line in (("trace what they do", "set -x"), ("export all that they set", "set -a")):
    @on_host(f"the token is not told by services that {name}", "set +x +a token")
    def told_nowhere(host, line=line):
        host.write(CONFIG, host.path(CONFIG).read_text() + line + "\n", 0o600)
        ends(host.run(FACULTIES, "start")[0], 0)


for name, text in ATTACHED:
    @on_host(f"what `user attach` prints is understood: {name}")
    def attached(host, text=text):
        host.model("attach", text)
        ends(host.run(FACULTIES, "start")[0], 0)
        assert host.one("faculties").environ["PERSONA"] == json.loads(text)["persona"]

for name, text in NOT_ATTACHED:
    @on_host(f"what `user attach` prints is refused: {name}")
    def not_attached(host, text=text):
        host.model("attach", text)
        for told in host.run(FACULTIES, "start", "forcestart"):
            ends(told, 1, err="was not started: playground user attach")
            assert "jq cannot read" not in told.err, told
        assert not host.calls("jexec") and not host.calls("daemon")


def worker_token(host, token):
    host.write(KEY, token, 0o400)
    ends(host.run(FACULTIES, "start")[0], 0)
    return host.jail("/var/run/faculties-mcp/token").read_bytes()


for name, token, end in (("32 characters", "a" * 32, ""), ("1024 characters", "Z" * 1024, ""), ("1024 and a line end", "9" * 1024, "\n"),
                         ("1024 and a line end of two bytes", "=" * 1024, "\r\n"), ("every character", "-._~+/=" + "aZ09" * 7, "\n")):
    @on_host(f"a token is taken: {name}")
    def token_taken(host, token=token, end=end):
        assert worker_token(host, token + end) == token.encode()


def worker_at(host, entry):
    host.write(MANIFEST, json.dumps({"workers": [{"tenant": "alice", "address": "127.0.0.1:8401", "token_file": "alice.key"} | entry]}),
               0o400)
    ends(host.run(FACULTIES, "start")[0], 0)
    return host.one("faculties").argv[7]


for address in ("127.0.0.1:1", "127.0.0.1:65535", "[::1]:8401"):
    @on_host(f"a worker listens at {address}")
    def address_taken(host, address=address):
        assert worker_at(host, {"address": address}) == address


@on_host("a list of workers may say what only the edge asks for, and name a token file by its path")
def known_members(host):
    worker_at(host, {"token_file": KEY, "name": "faculties", "path": "/", "bridge": "modern", "shared_catalogue": True,
                     "limits": {"connect_seconds": 1e1}})


@on_host("a list of workers may be as long as the edge takes it")
def long_list(host):
    others = [{"tenant": f"t{at}", "address": f"127.0.{at // 250}.{at % 250 + 1}:9", "token_file": "x"} for at in range(1023)]
    mine = json.loads(host.path(MANIFEST).read_text())["workers"][:1]
    host.write(MANIFEST, json.dumps({"workers": others + mine}), 0o400)
    ends(host.run(FACULTIES, "start")[0], 0)

# --- the files beside them


@check("every variable of rc.conf.example is one that a service reads")
def example(deploy):
    beside = HERE.parent.parent.parent / "deploy" / "freebsd"
    known = "".join((beside / name).read_text() for name in ("playground_mcp", "playground_sandbox"))
    seen = re.findall(r"^#?\s*(\w+)=", (beside / "rc.conf.example").read_text(), re.M)
    assert len(seen) > 8
    for name in seen:
        if name.startswith("playground_faculties_"):
            assert re.fullmatch(r"playground_faculties_alice_(enable|binary|logfile)", name), name
        else:
            assert re.search(rf"\b{name}\b", known), name
    subprocess.run(["dash", "-n", beside / "rc.conf.example"], check=True)


@check("every check that README.md names is one")
def named(_):
    rows = re.findall(r"^\| .* \| (`.*`) \|$", (HERE / "README.md").read_text(), re.M)
    assert len(rows) > 30
    names = [name for name, *_ in ALL]
    for words in (words for row in rows for words in re.findall(r"`([^`]+)`", row)):
        assert any(words in name for name in names), words


@check("the services start in their order")
def order(deploy):
    lines = {name: (deploy / name).read_text().split("\n\n")[1].splitlines() for name in (MCP, SANDBOX, "playground_faculties")}
    for name, said in lines.items():
        provided = "playground_faculties_INSTANCE" if name == "playground_faculties" else name
        assert said[0] == f"# PROVIDE: {provided}", said
        assert said[1] == "# REQUIRE: LOGIN FILESYSTEMS zfs"
        assert said[-1] == "# KEYWORD: shutdown"
        assert ("# BEFORE: playground_mcp" in said) == (name != MCP)


@check("the words that the services hand over are known to the program")
def real_words(deploy):
    binary = program()
    if not binary:
        return
    host = Host(deploy)
    try:
        for service in (MCP, SANDBOX, FACULTIES):
            host.run(service, "start")
        calls = host.calls("playground")
        assert len(calls) == 3
        for call in calls:
            words = call.argv[1:]
            # Nothing is served, since no token file is there: what is asked is whether the words are understood.
            words = ["check-config", *words[1:]] if words[0] == "mcp-http" else words
            state = host.path("/tmp/state")
            words = [word.replace("/var/db/playground", str(state)) for word in words]
            done = subprocess.run([binary, *words], capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode != 2, (words, done.stderr)
    finally:
        host.close()


@check("smoke.sh finds a service well, and says what is wrong with one that is not")
def smoke(deploy):
    binary = program()
    if not binary:
        return
    with tempfile.TemporaryDirectory(prefix="playground-smoke.") as folder, Served(binary, folder) as served:
        good = {"PLAYGROUND_TOKEN": served.token, "PLAYGROUND_BASE_URL": served.url, "PLAYGROUND_PRIVATE_HTTP": "YES",
                "PLAYGROUND_FREEBSD_JOB_SMOKE": "YES", "PATH": os.environ["PATH"]}
        for changed, code, says in (
                ({}, 0, "smoke: all is well"),
                ({"PLAYGROUND_TOKEN": ""}, 1, "PLAYGROUND_TOKEN is not set"),
                ({"PLAYGROUND_TOKEN": 'a" -o /evil'}, 1, "PLAYGROUND_TOKEN is no token"),
                ({"PLAYGROUND_TOKEN": "x" * 43}, 1, "initialize is answered with 401"),
                ({"PLAYGROUND_PRIVATE_HTTP": "NO"}, 1, "is not encrypted"),
                ({"PLAYGROUND_BASE_URL": "http://mcp.example.org"}, 1, "must be https://NAME"),
                ({"PLAYGROUND_BASE_URL": "http://127.0.0.1:9"}, 1, "nothing answers at")):
            done = subprocess.run(["dash", deploy / "smoke.sh"], env=good | changed, capture_output=True, text=True, timeout=120,
                                  check=False)
            assert done.returncode == code and says in done.stdout + done.stderr, (changed, done)
            assert served.token not in done.stdout + done.stderr


class Served:
    """The program on Linux, with a tenant."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def __enter__(self):
        log = open(f"{self.folder}/log", "w+")
        self.process = subprocess.Popen([self.binary, "serve", "--state", f"{self.folder}/state", "--bind", "127.0.0.1:0"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        deadline = time.monotonic() + 30
        while not (ready := re.search(r"^ready (\S+)", Path(log.name).read_text(), re.M)):
            assert self.process.poll() is None and time.monotonic() < deadline, Path(log.name).read_text()
            time.sleep(0.05)
        self.url = ready[1]
        self.token = self._user("create", "alice").strip()
        return self

    def __exit__(self, *_):
        try:
            self._user("destroy", "alice", "--yes", "--delete-pile")
        finally:
            self.process.terminate()
            self.process.wait(60)

    def _user(self, *words):
        done = subprocess.run([self.binary, "user", *words, "--state", f"{self.folder}/state"], capture_output=True, text=True,
                              timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


def program():
    """The binary to ask; without one, nothing is asked, and where nothing may be left out that is a fault."""
    binary = os.environ.get("PLAYGROUND_BIN")
    assert binary or "PLAYGROUND_FAIL_ON_SKIP" not in os.environ, "PLAYGROUND_BIN is not set"
    return binary
