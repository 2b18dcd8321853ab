"""`worker-run` in a mount namespace of its own, with an /etc/playground made for it: what it starts, and what it refuses.

It runs as systemd runs it: as a user that can read neither file, with copies of both in a credentials' folder.
"""

import os
import pathlib
import subprocess
import sys

units, work = map(pathlib.Path, sys.argv[1:3])
ETC = pathlib.Path("/etc/playground")
USER = 61999
SECRET = "s" * 32
SEEN = """#!/bin/sh
for argument; do printf 'argument %s\\n' "$argument"; done
env | sort
pwd
"""
GOOD = """# the worker of alice
address=127.0.0.1:8401
program={program}
argument=--listen
argument={{address}}
argument=--port={{port}}
argument=a b  'c' $HOME *
argument=
argument={{token}}
environment=MODE=quick and good
"""


def main():
    if os.environ.get("INSIDE") != "1":
        made = not ETC.exists()
        ETC.mkdir(exist_ok=True)
        try:
            again = ["unshare", "--mount", sys.executable, __file__, *sys.argv[1:]]
            sys.exit(subprocess.run(again, env=dict(os.environ, INSIDE="1")).returncode)
        finally:
            if made:
                ETC.rmdir()
    work.mkdir(parents=True)
    # Everyone is let through to the program, as to /usr.
    work.chmod(0o755)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "none", ETC], check=True)
    (work / "worker-run").write_bytes((units / "worker-run").read_bytes())
    (work / "seen").write_text(SEEN)
    for program in ("worker-run", "seen"):
        (work / program).chmod(0o755)
    starts()
    refuses()


def lay(conf=None, token=SECRET + "\n"):
    """A configuration that is in order, and the copies that systemd would make."""
    for folder, mode in (("workers", 0o755), ("worker-tokens", 0o700)):
        subprocess.run(["rm", "-rf", ETC / folder], check=True)
        (ETC / folder).mkdir()
        (ETC / folder).chmod(mode)
    conf = GOOD.format(program=work / "seen") if conf is None else conf
    for path, text in ((ETC / "workers/alice.conf", conf), (ETC / "worker-tokens/alice", token)):
        path.write_text(text)
        path.chmod(0o600)
    given = work / "credentials"
    given.mkdir(exist_ok=True)
    for name, text in (("conf", conf), ("token", token)):
        (given / name).unlink(missing_ok=True)
        (given / name).write_text(text)
        (given / name).chmod(0o400)
        os.chown(given / name, USER, USER)
    (work / "state").mkdir(exist_ok=True)
    os.chown(work / "state", USER, USER)


def run(tenant="alice", **more):
    environment = {"PATH": "/usr/bin:/bin", "CREDENTIALS_DIRECTORY": str(work / "credentials"), "FOREIGN": "not to be seen"}
    environment |= {"STATE_DIRECTORY": str(work / "state")} | more
    environment = {name: value for name, value in environment.items() if value is not None}
    command = ["setpriv", "--reuid", str(USER), "--regid", str(USER), "--clear-groups", work / "worker-run", tenant]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20)


def starts():
    lay()
    done = run()
    wanted = f"""argument --listen
argument 127.0.0.1:8401
argument --port=8401
argument a b  'c' $HOME *
argument{" "}
argument {work}/credentials/token
HOME={work}/state
LANG=C.UTF-8
MODE=quick and good
PATH=/usr/local/bin:/usr/bin:/bin
PWD={work}/state
TENANT=alice
{work}/state
"""
    # What a shell sets by itself.
    seen = "".join(line for line in done.stdout.splitlines(True) if not line.startswith(("_=", "SHLVL=", "OLDPWD=")))
    assert (done.returncode, seen) == (0, wanted), (done, wanted)
    for mode in (0o400, 0o600):
        (ETC / "workers/alice.conf").chmod(mode)
        assert run().returncode == 0
    for address in ("[::1]:1", "127.0.0.1:65535"):
        lay(f"address={address}\nprogram=/bin/true\n")
        assert run().returncode == 0, address
    for token in (SECRET, SECRET + "\r\n", "Az09._~+/=-" * 10):
        lay(token=token)
        assert run().returncode == 0, token
    print("worker-run: starts its program with what stands in the configuration and nothing else")


def refused(told, **more):
    done = run(**more)
    assert done.returncode == 78 and told in done.stderr and not done.stdout, (told, done)
    assert SECRET not in done.stderr


def refuses():
    conf = ETC / "workers/alice.conf"
    count = 0

    def case(told, change=lambda: None, conf=None, token=SECRET, **more):
        nonlocal count
        count += 1
        lay(conf, token)
        change()
        refused(told, **more)

    def link():
        conf.rename(ETC / "elsewhere")
        conf.symlink_to(ETC / "elsewhere")

    case("is a link", link)
    case("no regular file", lambda: (conf.unlink(), conf.mkdir()))
    case("cannot be seen", conf.unlink)
    for mode in (0o640, 0o604, 0o660, 0o700, 0o4600):
        case("root's alone", lambda: conf.chmod(mode))
    case("root's alone", lambda: os.chown(conf, USER, 0))
    case("root's alone", lambda: os.link(conf, ETC / "workers/second"))
    for folder in ("workers", "worker-tokens"):
        for mode in (0o775, 0o757):
            case("others can change", lambda: (ETC / folder).chmod(mode))
        case("others can change", lambda: os.chown(ETC / folder, USER, 0))
    for name in ("", "a/b", "..", ".a", "a b", "a;b"):
        case("no tenant's name", tenant=name)
    case("handed nothing in", CREDENTIALS_DIRECTORY=None)
    case("no state directory", STATE_DIRECTORY=None)
    base = "address=127.0.0.1:8401\nprogram=/bin/true\n"
    for address in ("0.0.0.0:1", "127.0.0.2:1", "localhost:1", "8401", "[::]:1"):
        case("must be 127.0.0.1:PORT", conf=f"address={address}\nprogram=/bin/true\n")
    for port in ("0", "08401", "65536", "999999", "x", ""):
        case("is no port", conf=f"address=127.0.0.1:{port}\nprogram=/bin/true\n")
    case("line 3: a second address", conf=base + "address=127.0.0.1:1\n")
    case("line 3: a second program", conf=base + "program=/bin/false\n")
    case("its whole path", conf="address=127.0.0.1:1\nprogram=true\n")
    case("no '='", conf="address=127.0.0.1:1\nprogram=/bin/a=b\n")
    case("cannot be run", conf="address=127.0.0.1:1\nprogram=/etc/passwd\n")
    case("cannot be run", conf="address=127.0.0.1:1\nprogram=/nowhere\n")
    case("has no address=", conf="program=/bin/true\n")
    case("has no program=", conf="address=127.0.0.1:1\n")
    case("line 3: neither", conf=base + "restart=no\n")
    case("line 3: neither", conf=base + "environment=X\n")
    case("control character", conf=base + "argument=a\tb\n")
    for name in ("LD_PRELOAD", "PATH", "HOME", "TENANT"):
        case("is not for the configuration", conf=base + f"environment={name}=x\n")
    case("no variable's name", conf=base + "environment=A-B=x\n")
    case("fewer than 32", token="s" * 31)
    case("more than 1024", token="s" * 1027)
    case("more than one line", token=SECRET + "\n\n")
    case("that none may have", token=SECRET + " s")
    print(f"worker-run: {count} configurations that are wrong are refused, each in its words, with 78")


main()
