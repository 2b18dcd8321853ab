"""`offer PORT`: opens every door that a tenant can open, and waits. `look PORT OTHER`: says which of them it finds.

OTHER is one of the offering process's numbers on the host.
"""
import array, ctypes, os, socket, sys, threading, time

PLACES = ["/tmp", "/dev/shm", "/var/tmp", "/home/agent", "/workspace", "/run", "/pile", "/dev", "/"]
KEY, QUEUE, ABSTRACT = 0x5047, b"meet", "\0meet"
MODE, PORT = sys.argv[1], int(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def hand_out(listener):
    """Gives whoever comes a descriptor of the root."""
    while True:
        visitor, _ = listener.accept()
        root = os.open("/", os.O_RDONLY)
        visitor.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [root]))])


def offer():
    listeners = []
    for place in PLACES:
        try:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(place + "/meet.sock")
            listeners.append(listener)
            with open(place + "/meet", "w") as file:
                file.write("secret")
        except OSError:
            pass
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(ABSTRACT)
    tcp = socket.socket()
    tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    tcp.bind(("127.0.0.1", PORT))
    for listener in [*listeners, abstract]:
        listener.listen()
        threading.Thread(target=hand_out, args=[listener], daemon=True).start()
    tcp.listen()
    call(29, KEY, 4096, 0o1666)
    call(240, QUEUE, os.O_CREAT | os.O_RDWR, 0o666, 0)
    print("open", os.getpid(), flush=True)
    sys.stdin.read()


def found(name, look):
    try:
        if look():
            print("found", name)
    except OSError:
        pass


def visit(address):
    door = socket.socket(socket.AF_UNIX)
    door.connect(address)
    return len(socket.recv_fds(door, 1, 1)[1]) == 1


def look():
    for place in PLACES:
        found(f"socket {place}", lambda: visit(place + "/meet.sock"))
        found(f"file {place}", lambda: open(place + "/meet").read() == "secret")
    found("abstract socket", lambda: visit(ABSTRACT))
    found("port", lambda: socket.create_connection(("127.0.0.1", PORT), 2))
    found("shared memory", lambda: call(29, KEY, 0, 0) >= 0)
    found("queue", lambda: call(240, QUEUE, os.O_RDWR, 0, 0) > 2)
    for number in sys.argv[3:]:
        try:
            offers = b"offer" in open(f"/proc/{number}/cmdline", "rb").read()
        except OSError:
            # Whatever has this number is not to be seen; it is not to be reached either.
            offers = True
        if offers:
            found("process", lambda: os.path.exists(f"/proc/{number}"))
            found("signal", lambda: os.kill(int(number), 0) is None)
            found("trace", lambda: call(101, 0x4206, int(number), 0, 0) == 0)
    print("looked")


offer() if MODE == "offer" else look()
