"""mcp1_worker.py PORT: a worker of the official Python SDK before version 2. It has sessions, and knows no other era."""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.lowlevel import NotificationOptions
from pydantic import AnyUrl

NOTE = AnyUrl("note://one")

worker = FastMCP("mcp1", host="127.0.0.1", port=int(sys.argv[1]))
watched = set()


@worker.tool()
def echo(text: str) -> str:
    return text


@worker.resource(str(NOTE))
def note() -> str:
    return "a note"


@worker.prompt()
def greet() -> str:
    return "Greet me."


@worker.tool()
async def change(ctx: Context) -> str:
    """Says on the session's stream that everything that can be listened to has changed."""
    await ctx.session.send_tool_list_changed()
    for uri in watched:
        await ctx.session.send_resource_updated(uri)
    return "changed"


@worker.tool()
async def sleep(ms: int, mark: str, ctx: Context) -> str:
    """Waits, and says on standard output how that ended."""
    print(f"sleep {mark} started", flush=True)
    try:
        await ctx.report_progress(1, 2)
        await asyncio.sleep(ms / 1000)
    except asyncio.CancelledError:
        print(f"sleep {mark} cancelled", flush=True)
        raise
    print(f"sleep {mark} done", flush=True)
    return f"slept {mark}"


server = worker._mcp_server


@server.subscribe_resource()
async def subscribe(uri: AnyUrl) -> None:
    watched.add(uri)
    print(f"watches {uri}", flush=True)


@server.unsubscribe_resource()
async def unsubscribe(uri: AnyUrl) -> None:
    watched.discard(uri)
    print(f"stops watching {uri}", flush=True)


def options(made=server.create_initialization_options):
    """What it offers to tell of; this version leaves no other place to say so."""
    options = made(NotificationOptions(tools_changed=True, resources_changed=True))
    options.capabilities.resources.subscribe = True
    return options


server.create_initialization_options = options
worker.run(transport="streamable-http")
