"""One connection of a Python client that logs in, driven by lines of JSON.

    login.py MODE     connects to E2E_PEER: {"url", "keep": {"tokens", "client"}} or {"url", "token"}

Writes `{"person": address}` when a person is to be asked and reads `["answer", address]`; writes `{"connected", "keep",
"seen"}` when connected, and then answers `["list"]`, `["call", name, arguments]` and `["spoil"]`, which ends its access token's life,
until its standard input ends.
"""

import asyncio
import json
import os
import sys
import time
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

CALLBACK = "http://127.0.0.1:7/callback"


class Keep:
    """What outlives a connection."""

    def __init__(self, kept):
        tokens, client = kept.get("tokens"), kept.get("client")
        self.tokens = tokens and OAuthToken.model_validate(tokens)
        self.client = client and OAuthClientInformationFull.model_validate(client)

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client

    def told(self):
        return {"tokens": plain(self.tokens), "client": plain(self.client)}


class Person:
    async def open(self, address):
        say({"person": address})

    async def answer(self):
        what, address = await heard()
        assert what == "answer"
        said = {name: value for name, [value] in parse_qs(urlsplit(address).query).items()}
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))


def login(url, keep):
    metadata = OAuthClientMetadata(client_name="E2E", redirect_uris=[CALLBACK], token_endpoint_auth_method="none")
    person = Person()
    return OAuthClientProvider(url, metadata, keep, person.open, person.answer)


def http(seen, peer, provider):
    from mcp.shared._httpx_utils import create_mcp_http_client

    async def note(request):
        seen.append(str(request.url))

    if "token" in peer:
        client = create_mcp_http_client(headers={"Authorization": f"Bearer {peer['token']}"})
    else:
        client = create_mcp_http_client(auth=provider)
    client.event_hooks["request"].append(note)
    return client


async def serve(mode):
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    peer, seen = json.loads(os.environ["E2E_PEER"]), []
    keep = Keep(peer.get("keep", {}))
    provider = login(peer["url"], keep)
    async with (
        http(seen, peer, provider) as wire,
        Client(streamable_http_client(peer["url"], http_client=wire), mode=mode) as client,
    ):
        say({"connected": True, "keep": keep.told(), "seen": seen})
        while line := await heard():
            match line:
                case ["list"]:
                    answer = [tool.name for tool in (await client.list_tools()).tools]
                case ["call", name, arguments]:
                    answer = plain(await client.call_tool(name, arguments))
                case ["spoil"]:
                    provider.context.token_expiry_time = time.time() - 1
                    answer = None
            say({"ok": answer, "keep": keep.told()})


async def heard():
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


def plain(model):
    return model and model.model_dump(mode="json", by_alias=True, exclude_none=True)


def sentence(error):
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(sentence(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


def say(message):
    print(json.dumps(message), flush=True)


try:
    asyncio.run(serve(sys.argv[1]))
except BaseException as error:
    say({"error": sentence(error)})
    raise SystemExit(1) from None
