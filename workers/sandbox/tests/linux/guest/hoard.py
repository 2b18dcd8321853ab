"""Takes all it can get of what the kernel has one table for, and holds it until its standard input ends.

With an argument it takes that many of each only, and says how many it got.
"""
import ctypes, os, signal, socket, struct, sys

MOST = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
libc = ctypes.CDLL(None, use_errno=True)
held = []


def must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def send_descriptors():
    ours, theirs = socket.socketpair()
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("100i", *[0] * 100))
    ours.sendmsg([b"x"], [rights])
    held.append((ours, theirs))


signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
names = iter(range(1 << 30))
mq_open = libc.mq_open if hasattr(libc, "mq_open") else ctypes.CDLL("librt.so.1", use_errno=True).mq_open
ways = {
    "watchers": lambda: must(libc.inotify_init()),
    "signals": lambda: must(libc.sigqueue(os.getpid(), signal.SIGRTMIN, 0)),
    "queues": lambda: must(mq_open(b"/hoard-%d-%d" % (os.getpid(), next(names)), os.O_CREAT | os.O_RDWR, 0o600, None)),
    "terminals": lambda: held.append(os.openpty()),
    "descriptors on the way": send_descriptors,
}
for name, take in ways.items():
    count = 0
    try:
        while count < MOST:
            take()
            count += 1
    except OSError:
        pass
    print(name, count, flush=True)
print("holding", flush=True)
sys.stdin.read()
