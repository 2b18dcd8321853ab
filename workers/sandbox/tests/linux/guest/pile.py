"""Attacks the append-only pile from inside. Each line of output is one attempt; what must not be is FAIL."""
import ctypes, errno, fcntl, mmap, os, struct, subprocess, sys

PILE, HEAD = "/pile/self.pile", b"head\n"
libc = ctypes.CDLL(None, use_errno=True)


def call(*arguments):
    result = libc.syscall(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def attempt(name, what, *allowed):
    """Whatever an attempt says, the head of the pile must be what it was."""
    try:
        outcome = what()
    except OSError as fault:
        outcome = errno.errorcode.get(fault.errno, str(fault.errno))
    except subprocess.CalledProcessError:
        outcome = "refused"
    except ValueError as fault:
        outcome = "refused"
    intact = open(PILE, "rb").read(len(HEAD)) == HEAD
    denied = isinstance(outcome, str) and (outcome.startswith("E") or outcome == "refused")
    print("ok  " if intact and (denied or outcome in allowed) else "FAIL", name, "->", outcome, "" if intact else "HEAD CHANGED")


def appending(more=0):
    return os.open(PILE, os.O_RDWR | os.O_APPEND | more)


def size():
    return os.stat(PILE).st_size


def append():
    before = size()
    os.write(os.open(PILE, os.O_WRONLY | os.O_APPEND), b"line\n")
    return size() - before


def shrunk(what):
    before = size()
    try:
        what()
    finally:
        assert size() >= before, "the pile got shorter"
    return "done"


attempt("append", append, 5)
attempt("open to write", lambda: os.open(PILE, os.O_WRONLY))
attempt("open to read and write", lambda: os.open(PILE, os.O_RDWR))
attempt("open and truncate", lambda: appending(os.O_TRUNC))
attempt("truncate", lambda: os.truncate(PILE, 0))
attempt("ftruncate", lambda: os.ftruncate(appending(), 0))
attempt("ftruncate longer", lambda: os.ftruncate(appending(), 1 << 20))
attempt("stop appending", lambda: fcntl.fcntl(appending(), fcntl.F_SETFL, 0))
attempt("write at 0", lambda: os.pwrite(appending(), b"PWN", 0), 3)
attempt("write without appending", lambda: os.pwritev(appending(), [b"PWN"], 0, 0x20))
attempt("map to write", lambda: mmap.mmap(appending(), 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)[0:1])
for name, mode in (("punch a hole", 3), ("collapse", 8), ("zero", 0x10), ("insert", 0x20)):
    attempt(name, lambda: call(285, appending(), mode, ctypes.c_long(0), ctypes.c_long(4096)))
attempt("unlink", lambda: os.unlink(PILE))
attempt("rename away", lambda: os.rename(PILE, "/pile/x"))
attempt("rename over", lambda: (open("/home/agent/evil", "w").close(), os.rename("/home/agent/evil", PILE)))
attempt("link", lambda: os.link(PILE, "/home/agent/link"))
attempt("rename the folder", lambda: os.rename("/pile", "/home/agent/pile"))
attempt("chmod", lambda: os.chmod(PILE, 0o600))
attempt("chown", lambda: os.chown(PILE, 0, 0))
attempt("set its time", lambda: os.utime(PILE, (1, 1)))
attempt("set an attribute", lambda: os.setxattr(PILE, "user.x", b"1"))
attempt("clear the flag", lambda: fcntl.ioctl(os.open(PILE, os.O_RDONLY), 0x40086602, struct.pack("l", 0)))


def clear_other():
    file = os.open(PILE, os.O_RDONLY)
    state = bytearray(28)
    fcntl.ioctl(file, 0x801C581F, state)
    fields = list(struct.unpack("IIIII8s", bytes(state)))
    fields[0] &= ~0x10
    fcntl.ioctl(file, 0x401C5820, struct.pack("IIIII8s", *fields))
    return "cleared"


attempt("clear the flag by the other call", clear_other)
attempt("reopen by /proc", lambda: os.open("/proc/self/fd/%d" % appending(), os.O_WRONLY))
attempt("copy a range over it", lambda: os.copy_file_range(os.open(sys.argv[0], os.O_RDONLY), appending(), 4, 0, 0))
attempt("send a file into it", lambda: os.sendfile(appending(), os.open(sys.argv[0], os.O_RDONLY), 0, 4))
attempt("clone a file over it", lambda: fcntl.ioctl(appending(), 0x40049409, os.open(sys.argv[0], os.O_RDONLY)))
attempt("swap it with the boot loader", lambda: fcntl.ioctl(appending(), 0x6611))
attempt("make a file beside it", lambda: os.open("/pile/new", os.O_CREAT | os.O_WRONLY))
attempt("link an unnamed file over it", lambda: os.link("/proc/self/fd/%d" % os.open("/home/agent", os.O_TMPFILE | os.O_RDWR), PILE))
attempt("append again", append, 5)
