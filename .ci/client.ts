// Calls a running demo through the types that were made of its document: `.ci/clients`.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

declare const process: { argv: string[] };

const password = "nine green parrots";
const [, , base, sim] = process.argv;

function expect(holds: boolean, what: string): asserts holds {
    if (!holds) throw new Error(what);
}

/** The data of an answer that was a success. */
function data<T>(answer: { data?: T; error?: unknown; response: Response }): T {
    expect(answer.data !== undefined, `${answer.response.status} ${JSON.stringify(answer.error)}`);
    return answer.data;
}

/** A one-time code of a broker's login page. */
async function code(broker: string, name: string): Promise<string> {
    const answer = await fetch(`${sim}/sim/control/${broker}/${name}`, { method: "POST" });
    return ((await answer.json()) as Record<string, string>)[name] ?? "";
}

const client = createClient<paths>({ baseUrl: base });

async function market(): Promise<void> {
    const snapshot: components["schemas"]["Snapshot"] = data(await client.GET("/api/index/snapshot"));
    const marked: true | undefined = snapshot.market.simulated;
    expect(snapshot.index1_price > 0 && marked === true, "a simulated price");
    const symbols = ["NSE:M&M", "NSE:NOSUCH"];
    const quotes = data(await client.GET("/api/portfolio/live-prices", { params: { query: { symbols } } }));
    expect(quotes.quotes[0]?.symbol === "NSE:M&M", "a quote");
    expect(quotes.unavailable[0] === "NSE:NOSUCH", "a symbol without one");
    const refused = await client.GET("/api/portfolio/live-prices", {
        params: { query: { symbols: ["nonsense"] } },
    });
    expect(refused.error?.code === "symbol_malformed" && refused.error.status === 400, "a refusal");
}

async function portfolio(): Promise<void> {
    const a = data(await client.POST("/api/portfolio/sync", {
        body: {
            api_key: "simkeya-2",
            api_secret: "simsecreta",
            request_token: await code("broker_a", "request_token"),
        },
    }));
    const b = data(await client.POST("/api/portfolio/brokerb-sync", {
        body: {
            api_key: "sim+key=b&1-2",
            api_secret: "simsecretb",
            api_session: await code("broker_b", "api_session"),
        },
    }));
    const open: number = a.net_positions_count + b.positions_count;
    expect(open > 0 && a.reconciliation.our_pnl !== null, "positions and a profit");
    const query = { live: true };
    const holdings = data(await client.GET("/api/portfolio/holdings", { params: { query } }));
    expect(holdings.holdings.length === a.holdings_count + b.holdings_count, "holdings of both");
}

async function journal(): Promise<void> {
    const body = {
        traded_on: "2026-11-20",
        symbol: "NSE:INFY",
        side: "buy" as const,
        quantity: 10,
        price: 1764.9,
    };
    const { id } = data(await client.POST("/api/journal", { body }));
    const path = { id };
    const read = await client.GET("/api/journal/{id}", { params: { path } });
    const header = { "If-Match": read.response.headers.get("ETag") ?? "" };
    const changed = await client.PUT("/api/journal/{id}", {
        params: { path, header },
        body: { ...body, quantity: 11 },
    });
    expect(data(changed).quantity === 11, "a changed entry");
    const late = await client.DELETE("/api/journal/{id}", { params: { path, header } });
    expect(late.error?.code === "precondition_failed", "a change that came too late");
}

await market();
const session = data(await client.POST("/api/auth/register", {
    body: { email: "typescript@example.com", password },
}));
client.use({
    onRequest({ request }) {
        request.headers.set("Authorization", `Bearer ${session.access_token}`);
    },
});
await portfolio();
await journal();
const erased = data(await client.DELETE("/api/auth/account", { body: { password } }));
expect(erased.deleted.journal_entries === 1, "everything erased");
