"""Processes of guests: entered into their trees, found by them, and ended."""

import os
import signal
import time

ENTER = """
set -e
root=$1 cwd=$2; shift 2
while [ "$1" != -- ]; do /bin/mount -o "bind,$3" "$1" "$root$2"; shift 3; done
shift
exec /usr/sbin/chroot "$root" /bin/sh -c 'cd "$0" && exec "$@"' "$cwd" "$@"
"""
"""A mount namespace of its own, in which the tree has what is mounted on it. The host's programs are the guest's."""

GUEST_PATH = "/sbin:/bin:/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin"


def entering(tree, binds, cwd, argv):
    """The words that run a command in a tree; `binds` are (source, place in the tree, "rw" or "ro")."""
    unshare = ["/usr/bin/unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        unshare += ["--user", "--map-root-user"]
    places = [word for bind in [("/usr", "/usr", "rw"), *binds] for word in bind]
    return [*unshare, "/bin/sh", "-c", ENTER, "enter", tree, cwd, *places, "--", *argv]


def run(words, environment=None):
    """Runs a program, with the streams of this one, to its exit code as a shell tells it."""
    child = os.posix_spawn(words[0], words, os.environ if environment is None else environment)
    return code_of(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def code_of(status):
    return status if status >= 0 else 128 - status


def inside(tree):
    """Every process whose root is this tree."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/root") == tree:
                found.append(int(name))
        except OSError:
            pass
    return found


def end_inside(tree):
    """Ends a guest's processes, those that they start meanwhile too."""
    while left := inside(tree):
        for process in left:
            end(process, signal.SIGKILL)
        time.sleep(0.002)


def end(process, how):
    try:
        os.kill(process, how)
    except ProcessLookupError:
        pass


def parents():
    """The parent of every process."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] != b"Z":
            found[int(name)] = int(fields[1])
    return found


def below(ancestor):
    """Every living process below one."""
    all_of_them = parents()
    found, open_ = [], [ancestor]
    while open_:
        parent = open_.pop()
        children = [child for child, its in all_of_them.items() if its == parent]
        found += children
        open_ += children
    return found


def playground():
    """The nearest playground above this program."""
    all_of_them, process = parents(), os.getpid()
    while process := all_of_them.get(process, 0):
        with open(f"/proc/{process}/comm") as file:
            if file.read().strip() == "playground":
                return process
    raise SystemExit("no playground above this program")


def become_reaper():
    """What is orphaned below this process becomes its child."""
    import ctypes

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
