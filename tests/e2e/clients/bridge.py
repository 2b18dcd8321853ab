"""One connection of a Python client, driven by lines of JSON.

    bridge.py mcp|fastmcp MODE     connects to E2E_PEER: {"url","token"} or {"argv"}

Writes `{"version"}` when connected, then answers `["list"]` and `["call", name, arguments]`, one line each, until its
standard input ends. An answer is `{"ok": …}` or `{"error": …}`.
"""

import asyncio
import contextlib
import json
import os
import sys


@contextlib.asynccontextmanager
async def with_mcp(peer, mode):
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    async with contextlib.AsyncExitStack() as stack:
        if "url" in peer:
            http = await stack.enter_async_context(
                create_mcp_http_client(headers={"Authorization": f"Bearer {peer['token']}"})
            )
            transport = streamable_http_client(peer["url"], http_client=http)
        else:
            command, *arguments = peer["argv"]
            transport = stdio_client(StdioServerParameters(command=command, args=arguments))
        client = await stack.enter_async_context(Client(transport, mode=mode))

        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        yield client.protocol_version, names, client.call_tool


@contextlib.asynccontextmanager
async def with_fastmcp(peer, mode):
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if "url" in peer:
        transport = StreamableHttpTransport(peer["url"], auth=peer["token"])
    else:
        command, *arguments = peer["argv"]
        transport = StdioTransport(command, arguments, keep_alive=False)
    async with Client(transport, mode=mode) as client:

        async def names():
            return [tool.name for tool in await client.list_tools()]

        yield client.protocol_version, names, client.call_tool_mcp


async def serve(kind, mode):
    peer = json.loads(os.environ["E2E_PEER"])
    opened = {"mcp": with_mcp, "fastmcp": with_fastmcp}[kind](peer, mode)
    try:
        async with opened as (version, names, call):
            say({"version": version})
            while line := await asyncio.to_thread(sys.stdin.readline):
                what, *rest = json.loads(line)
                try:
                    say({"ok": await names() if what == "list" else plain(await call(*rest))})
                except Exception as error:
                    say({"error": sentence(error)})
    except BaseException as error:
        say({"error": sentence(error)})
        raise SystemExit(1) from None


def plain(result):
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


def sentence(error):
    """The innermost errors of a group, since a task group hides what happened behind its own name."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(sentence(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


def say(message):
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
