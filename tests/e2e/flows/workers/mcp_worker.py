"""mcp_worker.py PORT: a worker of the official Python SDK. It has sessions, and serves both eras."""

import asyncio
import json
import sys
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from pydantic import Field

worker = MCPServer("mcp")


@worker.tool()
def echo(text: str) -> str:
    return text


@worker.tool()
def told(ctx: Context) -> str:
    """What came beside the arguments."""
    return json.dumps({"meta": dict(ctx.request_context.meta or {}), "headers": dict(ctx.headers or {})}, default=str)


@worker.tool()
def regional(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    return region


@worker.tool(name="grüße")
def greetings() -> str:
    return "grüße"


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


worker.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
