"""Lists and calls every tool with the official Python client, in both eras: `.ci/mcp`."""

import asyncio
import importlib.metadata
import json
import sys
import urllib.request
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

# Each tool with arguments, and the route that it answers with where its answer stands still.
CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("market_snapshot", {}, ""),
    ("quotes", {"symbols": ["NSE:INFY", "NSE:M&M", "NSE:NOSUCH"]}, ""),
    ("search_instruments", {"q": "inf"}, "/api/market/search?q=inf"),
    ("candles", {"symbol": "NSE:INFY", "days": 600}, "/api/market/candles?symbol=NSE:INFY&days=600"),
    ("holdings", {}, "/api/portfolio/holdings"),
    ("positions", {}, "/api/portfolio/positions"),
    ("portfolio_summary", {"days": 7}, "/api/portfolio/pnl?days=7"),
    ("journal", {"limit": 30}, "/api/journal/search?limit=200"),
    ("signals", {}, ""),
    ("trades", {}, "/api/trades"),
    ("open_lots", {}, "/api/trades/lots"),
    ("realised_gains", {"fy": "2025-26"}, "/api/trades/gains?fy=2025-26"),
    ("returns", {}, "/api/trades/returns"),
    ("ledger_gaps", {}, "/api/trades/reconciliation"),
]

# Arguments that the schemas forbid, each with its name.
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("portfolio_summary", {"days": 7.5}, "days"),
    ("portfolio_summary", {"days": "7"}, "days"),
    ("holdings", {"live": "true"}, "live"),
    ("quotes", {"symbols": [1]}, "symbols"),
    ("quotes", {}, "symbols"),
    ("market_snapshot", {"user_id": 1}, "user_id"),
]


def read(base: str, key: str, path: str) -> Any:
    headers = {"Authorization": f"Bearer {key}"}
    with urllib.request.urlopen(urllib.request.Request(base + path, None, headers)) as answer:
        return json.load(answer)


def merged(pages: list[Any]) -> Any:
    """One document of all pages: lists are joined, other members are those of the first."""
    first, *rest = pages
    if isinstance(first, list):
        return [row for page in pages for row in page]
    if not isinstance(first, dict):
        return first
    return {
        name: merged([first[name], *(page[name] for page in rest)])
        for name in first
        if name != "next_cursor"
    }


async def called(client: Client, name: str, arguments: dict[str, Any]) -> list[Any]:
    """The pages of a tool's answer. The client holds each against the tool's schema."""
    pages: list[Any] = []
    arguments = dict(arguments)
    while True:
        result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        assert len(result.content) == 1 and result.content[0].type == "text"
        pages.append(result.structured_content)
        cursor = pages[-1].get("next_cursor")
        if not cursor:
            return pages
        arguments["cursor"] = cursor


async def converse(base: str, key: str, mode: str) -> str:
    """All tools in one mode: its result for the transcript."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{base}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = (await client.list_tools()).tools
            assert [tool.name for tool in tools if tool.annotations.read_only_hint]
            assert {tool.name for tool in tools} == {name for name, _, _ in CALLS}, tools
            count = 0
            for name, arguments, path in CALLS:
                pages = await called(client, name, arguments)
                count += len(pages)
                if path:
                    whole = read(base, key, path)
                    whole.pop("next_cursor", None)
                    assert merged(pages) == whole, name
            # 7.0 is what this language sends for a float; one assistant sends lists as text.
            days = [await called(client, "portfolio_summary", {"days": n}) for n in (7, 7.0)]
            assert days[0] == days[1]
            symbols = ["NSE:INFY", "NSE:M&M"]
            text = await called(client, "quotes", {"symbols": json.dumps(symbols)})
            assert [quote["symbol"] for quote in text[0]["quotes"]] == symbols, text
            for name, wrong, argument in WRONG:
                answer = await client.call_tool(name, wrong)
                assert answer.is_error and f'"{argument}"' in answer.content[0].text, (name, wrong)
            refused = await client.call_tool("candles", {"symbol": "NSE:NOSUCH"})
            assert refused.is_error and "candles_not_found" in refused.content[0].text
            try:
                await client.call_tool("place_order", {})
                raise AssertionError("there is no such tool")
            except MCPError as error:
                assert error.code == -32602, error
            version = client.protocol_version
    return f"{mode}: version {version}, {len(tools)} tools, {count} pages of answers"


async def main(base: str, key: str) -> None:
    sdk = importlib.metadata.version("mcp")
    for mode in ["legacy", "2026-07-28", "auto"]:
        print(f"mcp {sdk} (Python), {await converse(base, key, mode)}")


asyncio.run(main(sys.argv[1], sys.argv[2]))
