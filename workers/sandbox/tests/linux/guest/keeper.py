"""Runs on the host: makes what processes share without files, shows that it can be found, says how it is called."""
import ctypes, json, os, sys

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"call {number}")
    return result


name = 0x5047_0000 | (os.getpid() & 0xFFFF)
memory = call(29, name, 4096, 0o1666)
semaphores = call(64, name, 1, 0o1666)
queue = f"playground-test-{os.getpid()}"
call(240, queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, 0)
key = f"playground-test-{os.getpid()}"
try:
    call(248, b"user", key.encode(), b"secret", 6, -3)
    call(250, 10, -3, b"user", key.encode(), 0)
except OSError:
    # A container may allow no keys; then there are none to be found.
    pass
assert call(29, name, 0, 0) == memory and call(64, name, 0, 0) == semaphores
assert call(240, queue.encode(), os.O_RDONLY, 0, 0) > 2
print(json.dumps({"shared memory": name, "queue": queue, "key": key}), flush=True)
sys.stdin.read()
call(31, memory, 0, 0)
call(66, semaphores, 0, 0)
call(241, queue.encode())
