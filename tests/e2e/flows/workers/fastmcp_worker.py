"""fastmcp_worker.py PORT: a worker of FastMCP. It has sessions, and serves both eras."""

import asyncio
import json
import sys

from fastmcp import Context, FastMCP
from fastmcp.server.dependencies import get_http_request

worker = FastMCP("fastmcp")


@worker.tool
def echo(text: str) -> str:
    return text


@worker.tool
def told(ctx: Context) -> str:
    """What came beside the arguments."""
    meta = ctx.request_context.meta
    return json.dumps({"meta": dict(meta or {}), "headers": dict(get_http_request().headers)}, default=str)


@worker.tool
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


worker.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), path="/mcp", show_banner=False)
