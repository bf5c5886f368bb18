"""An assistant's program in Python, on the official client.

    client.py http MODE      every tool over HTTP, with the key in UNION_KEY, with none, and with one that is not valid
    client.py stdio SERVER   the same through `SERVER mcp`, on the records of the running server
    client.py conversation   from the list of tools to a member more
    client.py negotiator SERVER   a negotiation through `SERVER negotiator`: an assistant proposes, a person publishes

MODE is how the client finds the era: auto, legacy or 2026-07-28. The server is at UNION_URL, its records are in UNION_DATA.
"""

import asyncio
import email
import email.policy
import json
import os
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import asynccontextmanager
from pathlib import Path

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

URL, KEY, DATA = os.environ["UNION_URL"], os.environ["UNION_KEY"], os.environ["UNION_DATA"]
READ = ["listNegotiationCategories", "getReferralProgram", "getMemberStats"]
ACT = ["signUpUser", "createReferralLink"]
PATHS = dict(zip(READ, ["/v1/negotiate-categories", "/v1/referral-program", "/v1/stats"]))
VERSIONS = {"auto": "2026-07-28", "legacy": "2025-11-25", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def over_http(mode, key):
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with create_mcp_http_client(headers=headers) as http:
        async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
            yield client


@asynccontextmanager
async def over_stdio(mode, key, server):
    # Two of these processes share no limit with the server, and none of them is to meet its own.
    environment = {"UNIONHALL_PUBLIC_PER_MINUTE": "1000000"} | ({"UNIONHALL_KEY": key} if key else {})
    # The base address is the running server's, so that links lead there.
    arguments = ["mcp", "--data", DATA, "--base-url", URL]
    parameters = StdioServerParameters(command=server, args=arguments, env=environment)
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


def text_of(result):
    assert [block.type for block in result.content] == ["text"], result
    return json.loads(result.content[0].text)


async def call(client, name, arguments=None):
    """The answer of a call that must succeed: once for programs and once for the model, and the same both times."""
    result = await client.call_tool(name, arguments or {})
    assert result.is_error is False, result
    assert result.structured_content == text_of(result), result
    assert result.structured_content["ok"] is True, result
    return result.structured_content


async def refused(client, name, arguments, code):
    """A call whose error is for the model to read, so it is a result."""
    result = await client.call_tool(name, arguments)
    assert result.is_error is True and result.structured_content is None, result
    body = text_of(result)
    assert body["ok"] is False and body["code"] == code and body["error"], body
    return body["error"]


def rest(path):
    with urllib.request.urlopen(URL + path, timeout=60) as answer:
        return json.load(answer)


async def every_tool(client, mode, valid, who):
    assert client.protocol_version == VERSIONS[mode], client.protocol_version
    if mode != "2026-07-28":  # A client that is told the version asks nothing before its first call.
        assert client.server_info.name == "unionhall", client.server_info
        assert "explicitly" in client.instructions and "inbox" in client.instructions, client.instructions
        assert client.server_capabilities.tools is not None, client.server_capabilities

    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == READ + (ACT if valid else []), tools
    for tool in tools:
        assert tool.title and tool.description and tool.output_schema and tool.annotations, tool
        assert tool.annotations.read_only_hint is (tool.name in READ), tool

    if valid and mode != "2026-07-28":
        # A model reads all of it at the start of every conversation.
        listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        whole = {"instructions": client.instructions, "tools": listed}
        size = len(json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode())
        print(f"instructions and tools are {size} bytes")
        assert size <= 11_500, size

    for name, path in PATHS.items():
        assert await call(client, name) == rest(path), name

    person = {"email": f"ben.{who}@example.com"}
    if valid:
        link = await call(client, "createReferralLink", {"email": f"ana.{who}@example.com"})
        assert link["inviteLink"].endswith("/joinus" + link["code"]), link
        answer = await call(client, "signUpUser", person | {"usState": "DC", "refCode": link["code"]})
        assert answer["refAttributed"] is True and "/joinus" in answer["inviteLink"], answer
        for name in ACT:
            message = await refused(client, name, {"email": "nobody"}, "invalid_submission")
            assert message.startswith("email: "), message
            message = await refused(client, name, person | {"phone": "555-0100"}, "invalid_submission")
            assert message.startswith("phone: "), message
    else:
        for name in ACT:
            await refused(client, name, person, "agent_unauthorized")

    try:
        result = await client.call_tool("deleteUser", {})
    except MCPError as error:
        assert error.code == -32602, error
    else:
        raise AssertionError(f"an unknown tool was called: {result}")


async def http(mode):
    for kind, key in (("partner", KEY), ("anyone", None), ("stranger", "uh_not_a_key")):
        async with over_http(mode, key) as client:
            await every_tool(client, mode, kind == "partner", f"{kind}.py.{mode}")


async def stdio(server):
    for mode in VERSIONS:
        for kind, key in (("partner", KEY), ("anyone", None)):
            async with over_stdio(mode, key, server) as client:
                await every_tool(client, mode, kind == "partner", f"{kind}.stdio.{mode}")
        # The sign-up stands in the running server's records: it is the one that sends the mail.
        letter_to(f"ben.partner.stdio.{mode}@example.com")


def letter_to(address):
    """The one mail to this address. It is sent after the answer, so it may take a moment."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        letters = [
            email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
            for path in Path(DATA, "mailbox").glob("*.eml")
        ]
        found = [letter for letter in letters if address in letter["To"]]
        if found:
            assert len(found) == 1, found
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"waited for a minute for a mail to {address}")


async def conversation():
    address = "carla.conversation@example.com"
    async with over_http("auto", KEY) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        assert {"listNegotiationCategories", "signUpUser", "getMemberStats"} <= tools, tools
        before = (await call(client, "getMemberStats"))["memberCount"]

        category = (await call(client, "listNegotiationCategories"))["categories"][0]
        joined = await call(client, "signUpUser", {"email": address, "categories": {category["slug"]: True}})
        assert joined["selectedSavingsTotal"] == category["annualSavings"], (joined, category)
        assert (await call(client, "getMemberStats"))["memberCount"] == before, "counted before the user confirmed"

        body = letter_to(address).get_body(("plain",)).get_content()
        # The same link leads to the page in another language.
        links = [link for link in re.findall(r"https?://\S+", body) if "/confirm" in link and "?lang=" not in link]
        assert len(links) == 1 and links[0].startswith(URL), body
        # What the button on the page behind the link does.
        request = urllib.request.Request(links[0], data=b"", method="POST")
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert answer.status == 200, answer.status

        assert (await call(client, "getMemberStats"))["memberCount"] == before + 1, "the new member is not counted"


def operate(server, *arguments, file=None):
    """What a command of the operator's prints."""
    command = [server, "campaigns", *arguments, *([] if arguments[0] == "sample" else ["--data", DATA])]
    done = subprocess.run(command, input=file, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


async def negotiator(server):
    for mode in VERSIONS:
        slug = f"internet-{mode}"
        file = operate(server, "sample").replace("internet-sample", slug)
        operate(server, "new", "-", file=file)
        operate(server, "open", slug, "--postal-address", "12 Mill Street, Springfield")
        parameters = StdioServerParameters(command=server, args=["negotiator", "--data", DATA])
        async with Client(stdio_client(parameters), mode=mode) as client:
            assert client.protocol_version == VERSIONS[mode], client.protocol_version
            tools = (await client.list_tools()).tools
            names = ["listCampaigns", "getCampaign", "recordRound", "recordBid", "proposeOffer"]
            assert [tool.name for tool in tools] == names, tools
            for tool in tools:
                hints = tool.annotations
                assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
            assert slug in [campaign["slug"] for campaign in (await call(client, "listCampaigns"))["campaigns"]]
            read = await call(client, "getCampaign", {"slug": slug})
            sheet = json.loads(operate(server, "demand", slug, "--json"))
            assert {name: read[name] for name in sheet} == sheet, read
            assert read["rounds"] == [] and read["mandate"]["targetCents"] == 57600, read
            assert "69600" not in json.dumps(read), read
            for n, answered in enumerate(("$55", "$48, agreed"), 1):
                said = {"slug": slug, "supplier": "Example Fiber", "asked": "$45 a month", "answered": answered}
                assert (await call(client, "recordRound", said))["round"] == n
            bid = {
                "supplier": "Example Fiber", "price": {"cents": 4800, "per": "month"}, "fees": [], "term_months": 12, "exit_fee_cents": 0,
                "commission_cents": 2500, "valid_until": "2099-03-31", "evidence": "We can do $48 a month.",
            }
            recorded = await call(client, "recordBid", {"slug": slug, "bid": bid})
            assert recorded["number"] == 1 and recorded["reckoned"]["within"] is True, recorded
            offer = {
                "slug": slug, "bid": 1, "decideBy": "2099-03-15", "complaints": "help@fiber.example",
                "text": {"en": {"how": "Order on their page."}, "es": {"how": "Haz tu pedido en su página."}},
            }
            message = await refused(client, "proposeOffer", {**offer, "decideBy": "soon"}, "invalid_submission")
            assert message.startswith("decideBy: "), message
            assert (await call(client, "proposeOffer", offer))["draft"] == 1
        assert len(json.loads(operate(server, "rounds", slug, "--json"))) == 2
        assert json.loads(operate(server, "show", slug, "--json"))["state"] == "gathering", "only a person publishes"
        operate(server, "offer", slug, "--draft", "1")
        assert json.loads(operate(server, "show", slug, "--json"))["offer"]["annualSaving"] == 240


way, *arguments = sys.argv[1:]
ways = {"http": http, "stdio": stdio, "conversation": conversation, "negotiator": negotiator}
asyncio.run(ways[way](*arguments))
