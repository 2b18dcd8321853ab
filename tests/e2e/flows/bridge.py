"""bridge.py: one conversation of the Python client for FLOWS_ASKED, held to the stateless revision; one line of JSON on it."""

import asyncio
import json
import os

from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

PATIENCE_SECONDS = 15


async def converse(client, asked):
    told = {"version": client.protocol_version, "progress": 0, "heard": []}
    name, arguments = asked["changes"]
    told["listed"] = name in [tool.name for tool in (await client.list_tools()).tools]
    told["messages"] = len((await client.get_prompt(asked["prompt"])).messages)
    told["read"] = str((await client.read_resource(asked["resource"])).contents[0].uri)

    async def progressed(*_):
        told["progress"] += 1

    await client.call_tool(*asked["sleep"], progress_callback=progressed)
    async with client.listen(resource_subscriptions=[asked["resource"]]) as subscription:
        told["honoured"] = ",".join(subscription.honored.resource_subscriptions or [])
        await client.call_tool(name, arguments)
        told["heard"].append(str((await anext(subscription)).uri))
        if "calms" in asked:
            await client.call_tool(*asked["calms"])
    if asked.get("long"):
        started = asyncio.Event()

        async def begun(*_):
            started.set()

        left = asyncio.create_task(client.call_tool(*asked["long"], progress_callback=begun))
        await started.wait()
        left.cancel()
        await asyncio.gather(left, return_exceptions=True)
    return told


async def main():
    asked = json.loads(os.environ["FLOWS_ASKED"])
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {asked['token']}"}) as http:
        async with Client(streamable_http_client(asked["url"], http_client=http), mode=asked["mode"]) as client:
            print(json.dumps(await asyncio.wait_for(converse(client, asked), PATIENCE_SECONDS)))


asyncio.run(main())
