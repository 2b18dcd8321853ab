"""clients.py mcp|fastmcp: one conversation for each of FLOWS_ASKED, and a line of JSON on each in that order."""

import asyncio
import importlib.util
import json
import os
import sys

PATIENCE_SECONDS = 20


async def converse(connected, asked):
    async with connected({"url": asked["url"], "token": asked["token"]}, asked["mode"]) as (version, names, call):
        listed = asked["tool"] in await names()
        result = await call(asked["tool"], asked["args"])
        return {"version": version, "listed": listed, "text": result.content[0].text}


async def main(kind):
    spec = importlib.util.spec_from_file_location("bridge", os.path.join(os.environ["E2E_CLIENTS"], "bridge.py"))
    bridge = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bridge)
    connected = {"mcp": bridge.with_mcp, "fastmcp": bridge.with_fastmcp}[kind]
    for asked in json.loads(os.environ["FLOWS_ASKED"]):
        try:
            told = await asyncio.wait_for(converse(connected, asked), PATIENCE_SECONDS)
        except BaseException as error:
            told = {"error": bridge.sentence(error)}
        print(json.dumps(told), flush=True)


asyncio.run(main(*sys.argv[1:]))
