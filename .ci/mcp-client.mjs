// Lists and calls every tool with the official JavaScript clients, in both eras: `.ci/mcp`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as both from '@modelcontextprotocol/client';
import { Client as OlderClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OlderTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [, , base, key] = process.argv;
const headers = { Authorization: `Bearer ${key}` };
const me = { name: 'ci', version: '1' };

// Each tool with arguments, and the route that it answers with where its answer stands still.
const calls = [
    ['market_snapshot', {}],
    ['quotes', { symbols: ['NSE:INFY', 'NSE:M&M', 'NSE:NOSUCH'] }],
    ['search_instruments', { q: 'inf' }, '/api/market/search?q=inf'],
    ['candles', { symbol: 'NSE:INFY', days: 600 }, '/api/market/candles?symbol=NSE:INFY&days=600'],
    ['holdings', {}, '/api/portfolio/holdings'],
    ['positions', {}, '/api/portfolio/positions'],
    ['portfolio_summary', { days: 7 }, '/api/portfolio/pnl?days=7'],
    ['journal', { limit: 30 }, '/api/journal/search?limit=200'],
    ['signals', {}],
    ['trades', {}, '/api/trades'],
    ['open_lots', {}, '/api/trades/lots'],
    ['realised_gains', { fy: '2025-26' }, '/api/trades/gains?fy=2025-26'],
    ['returns', {}, '/api/trades/returns'],
    ['ledger_gaps', {}, '/api/trades/reconciliation'],
];

/** One document of all pages: lists are joined, other members are those of the first. */
function merged([first, ...rest]) {
    if (Array.isArray(first)) return [first, ...rest].flat();
    if (first === null || typeof first !== 'object') return first;
    const names = Object.keys(first).filter((name) => name !== 'next_cursor');
    return Object.fromEntries(
        names.map((name) => [name, merged([first[name], ...rest.map((page) => page[name])])]),
    );
}

/** The pages of a tool's answer. The client holds each against the tool's schema. */
async function called(client, name, given) {
    const pages = [];
    const args = { ...given };
    for (;;) {
        const result = await client.callTool({ name, arguments: args });
        assert.ok(!result.isError, JSON.stringify(result.content));
        pages.push(result.structuredContent);
        const cursor = result.structuredContent.next_cursor;
        if (!cursor) return pages;
        args.cursor = cursor;
    }
}

/** All tools with a connected client. */
async function converse(client, what) {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map(({ name }) => name).sort(), calls.map(([name]) => name).sort());
    assert.ok(tools.every(({ annotations }) => annotations.readOnlyHint === true));
    let count = 0;
    for (const [name, args, path] of calls) {
        const pages = await called(client, name, args);
        count += pages.length;
        if (path) {
            const whole = await (await fetch(base + path, { headers })).json();
            delete whole.next_cursor;
            assert.deepEqual(merged(pages), whole, name);
        }
    }
    // Clients of languages with one type of number send 7.0; one assistant sends lists as text.
    const same = async (name, one, other) => {
        const answers = [];
        for (const args of [one, other]) answers.push(await called(client, name, args));
        assert.deepEqual(answers[0], answers[1], name);
    };
    await same('portfolio_summary', { days: 7 }, { days: 7.0 });
    const symbols = ['NSE:INFY', 'NSE:M&M'];
    const text = await called(client, 'quotes', { symbols: JSON.stringify(symbols) });
    assert.deepEqual(text[0].quotes.map(({ symbol }) => symbol), symbols);
    for (const [name, args, argument] of [
        ['portfolio_summary', { days: 7.5 }, 'days'],
        ['portfolio_summary', { days: '7' }, 'days'],
        ['holdings', { live: 'true' }, 'live'],
        ['quotes', { symbols: [1] }, 'symbols'],
        ['quotes', {}, 'symbols'],
        ['market_snapshot', { user_id: 1 }, 'user_id'],
    ]) {
        const wrong = await client.callTool({ name, arguments: args });
        assert.ok(wrong.isError && wrong.content[0].text.includes(`"${argument}"`), name);
    }
    const refused = await client.callTool({ name: 'candles', arguments: { symbol: 'NSE:NOSUCH' } });
    assert.ok(refused.isError && refused.content[0].text.includes('candles_not_found'));
    await assert.rejects(client.callTool({ name: 'place_order', arguments: {} }), { code: -32602 });
    console.log(`${what}: ${tools.length} tools, ${count} pages of answers`);
    await client.close();
}

function version(name) {
    return JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version;
}

const at = new URL(`${base}/mcp`);
const older = new OlderClient(me);
await older.connect(new OlderTransport(at, { requestInit: { headers } }));
await converse(older, `sdk ${version('@modelcontextprotocol/sdk')} (JavaScript)`);

for (const mode of ['legacy', 'auto', { pin: '2026-07-28' }]) {
    const client = new both.Client(me, { versionNegotiation: { mode } });
    await client.connect(new both.StreamableHTTPClientTransport(at, { requestInit: { headers } }));
    const era = client.getProtocolEra();
    assert.equal(era, mode === 'legacy' ? 'legacy' : 'modern');
    await converse(client, `client ${version('@modelcontextprotocol/client')} (JavaScript), ${era}`);
}
