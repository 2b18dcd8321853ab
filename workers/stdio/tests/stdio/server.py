"""server.py ERA…: a scripted stdio server. ERA: sessions, modern, both; mute says nothing to server/discover, brittle
ends over it. Each method is what a test asks for."""

import json
import os
import signal
import sys

eras = sys.argv[1]
held = {}
waiting = []
cancelled = []
listening = []


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(id, result):
    say({"id": id, "result": {"resultType": "complete", **result}})


def refuse(id, code, **more):
    say({"id": id, "error": {"code": code, "message": "refused", **more}})


def daemon():
    """A process that has left its parent, its session and its group, and holds the pipes."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.write(write, str(os.getpid()).encode() + b"\n")
            os.close(write)
            signal.pause()
        os._exit(0)
    os.close(write)
    os.wait()
    return int(os.read(read, 32))


def handle(message):
    id, method = message.get("id"), message.get("method")
    params = message.get("params") or {}
    token = (params.get("_meta") or {}).get("progressToken")
    if method == "notifications/cancelled":
        cancelled.append(params["requestId"])
        held.pop(params["requestId"], None)
        while waiting:
            answer(waiting.pop(), {"cancelled": cancelled})
    if id is None or method is None:
        return
    if method == "server/discover":
        if "brittle" in eras:
            os._exit(1)
        if "mute" in eras:
            return
        if "modern" in eras or "both" in eras:
            return answer(id, {"supportedVersions": ["2026-07-28"], "capabilities": {}})
        return refuse(id, -32601)
    if method == "initialize":
        if "modern" in eras:
            return refuse(id, -32022, data={"supported": ["2026-07-28"]})
        return answer(id, {"protocolVersion": "2025-11-25"})
    if token is not None:
        say({"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}})
    if method == "told":
        answer(id, {"told": params.get("told"), "pid": os.getpid(), "environment": sorted(os.environ), "argv": sys.argv,
                    "cwd": os.getcwd(), "calls": sorted(held)})
    elif method == "hold":
        held[id] = params.get("told")
    elif method == "release":
        for one, told in sorted(held.items()):
            answer(one, {"told": told})
        held.clear()
        answer(id, {"told": params.get("told")})
    elif method == "cancellation":
        answer(id, {"cancelled": cancelled}) if cancelled else waiting.append(id)
    elif method == "die":
        os._exit(3)
    elif method == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        answer(id, {"pid": os.getpid()})
        sys.stdin = None
        signal.pause()
    elif method == "daemon":
        answer(id, {"pid": os.getpid(), "daemon": daemon()})
    elif method == "line":
        text = json.dumps({"jsonrpc": "2.0", "id": id, "result": ""})
        sys.stdout.write(text[:-2] + "x" * (params["bytes"] - len(text)) + text[-2:] + "\n")
        sys.stdout.flush()
    elif method == "chatter":
        sys.stdout.write("no message\n\n[]\n")
        answer(id, {})
    elif method == "flood":
        for _ in range(params["lines"]):
            say({"method": "notifications/progress", "params": {"progressToken": token, "more": "x" * 1000}})
        answer(id, {})
    elif method == "subscriptions/listen":
        listening.append(id)
        tag = {"io.modelcontextprotocol/subscriptionId": id}
        say({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": tag}})
    elif method == "ask":
        say({"id": "s", "method": "sampling/createMessage"})
        answer(id, {})
    else:
        refuse(id, -32601)


for line in sys.stdin:
    handle(json.loads(line))
