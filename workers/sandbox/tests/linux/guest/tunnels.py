"""Clients of the proxy that do odd things. Reads one line of input where it waits for the test."""
import socket, sys


def client(greeting):
    s = socket.create_connection(("127.0.0.1", 3128), timeout=50)
    s.sendall(greeting)
    return s


def tunnel(port):
    return client(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())


def status(s):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            return "ended"
        head += byte
    return head.split(b" ")[1].decode()


def say(*words):
    print(*words, flush=True)


what, *arguments = sys.argv[1:]
if what == "hold":
    port, count = map(int, arguments)
    held = [tunnel(port) for _ in range(count)]
    say(*{status(s) for s in held})
    one_more = tunnel(port)
    say("asked")
    sys.stdin.readline()
    held.pop().close()
    say(status(one_more))
elif what == "stall":
    stalled = {
        "silence": client(b""),
        "half a head": client(b"GET http://127.0.0.1/ HTTP/1.1\r\nHost:"),
        "half a greeting": client(b"\x05\x02\x00"),
        "half a request": client(b"\x05\x01\x00\x05\x01"),
    }
    for name, s in stalled.items():
        while s.recv(1024):
            pass
        say(name)
elif what == "pause":
    s = tunnel(int(arguments[0]))
    say(status(s))
    sys.stdin.readline()
    count = 0
    while piece := s.recv(1 << 20):
        count += len(piece)
    say(count)
elif what == "half-close":
    s = client(f"GET http://127.0.0.1:{arguments[0]}/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n".encode())
    say(status(s))
    s.sendall(b"there and back")
    s.shutdown(socket.SHUT_WR)
    back = b""
    while piece := s.recv(1024):
        back += piece
    say(back.decode())
