"""Programs that run others: ssh, sudo and FreeBSD's timeout."""

import os
import signal
import subprocess
import threading
import time

from . import processes
from .freebsd import options
from .world import Failed, Refused

LOST = 255


def sudo(world, argv):
    if argv[1:2] != ["-n"]:
        raise Refused("sudo that may ask for a password")
    with world.model() as model:
        if not model["sudo"]:
            raise Failed("a password is required")
    command = argv[3:] if argv[2:3] == ["--"] else argv[2:]
    if not command or command[0].startswith("-"):
        raise Refused(f"sudo -n {command[:1]}")
    return processes.run(local(world, command), {**os.environ, "FAKEHOST_USER": "root"})


def local(world, command):
    """A command of a program of this host; one that it has not fails the test."""
    name = command[0]
    if os.path.isabs(name) or not os.path.exists(world.path("bin", name)):
        raise Refused(f"program {name!r}")
    return [world.path("bin", name), *command[1:]]


def ssh(world, argv):
    """The remote end lives on when this one is killed, as it does behind a real one."""
    words, wanted = argv[1:], ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
    if words[:4] != wanted:
        raise Refused(f"options {words[:4]}")
    words = words[5:] if words[4:5] in (["--"], ["-tt"]) else words[4:]
    if len(words) != 2:
        raise Refused(f"{len(words)} words in place of a host and one command line")
    with world.model() as model:
        if words[0] not in model["hosts"]:
            raise Failed(f"Could not resolve hostname {words[0]}: Name does not resolve", LOST)
    environment = {"PATH": world.path("bin"), "HOME": world.root, "USER": "operator", "FAKEHOST_USER": "operator"}
    return relay(["/bin/sh", "-c", words[1]], environment)


def relay(command, environment):
    """Runs a command in a session of its own, its streams carried by this process and no longer than it lives."""
    child = subprocess.Popen(command, env=environment, start_new_session=True, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    threading.Thread(target=carry, args=(0, child.stdin.fileno(), child.stdin), daemon=True).start()
    outward = [threading.Thread(target=carry, args=(stream.fileno(), place, None))
               for stream, place in ((child.stdout, 1), (child.stderr, 2))]
    for thread in outward:
        thread.start()
    for thread in outward:
        thread.join()
    return processes.code_of(child.wait())


def carry(source, target, closed):
    try:
        while piece := os.read(source, 65536):
            while piece:
                piece = piece[os.write(target, piece):]
    except OSError:
        pass
    if closed:
        closed.close()


def timeout(world, argv):
    """FreeBSD's: a reaper, which ends when the last descendant has, and signals every one of them."""
    chosen, operands = options(argv, "k:")
    if "-k" not in chosen or len(operands) < 2:
        raise Refused(f"timeout {chosen} {operands[:1]}")
    words = local(world, operands[1:])
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    processes.become_reaper()
    child = subprocess.Popen(words, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, signals))
    until, how, timed_out, code = time.monotonic() + float(operands[0]), signal.SIGTERM, False, 0
    while True:
        code = reap(child.pid, code)
        left = processes.below(os.getpid())
        if not left:
            return 124 if timed_out else code
        got = signal.sigtimedwait(signals, max(0, until - time.monotonic()))
        if got is not None and got.si_signo == signal.SIGCHLD:
            continue
        timed_out |= got is None and how == signal.SIGTERM
        for process in left:
            processes.end(process, how)
        until, how = time.monotonic() + float(chosen["-k"]), signal.SIGKILL


def reap(first, code):
    """Takes every child that has ended; the code is the first one's."""
    try:
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return code
            if process == first:
                code = processes.code_of(os.waitstatus_to_exitcode(status))
    except ChildProcessError:
        return code


PROGRAMS = {"ssh": ssh, "sudo": sudo, "timeout": timeout}
