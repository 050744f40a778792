// What an open portfolio of 300 holdings costs on the wire: at most 5 MB an hour, of what the browser itself counts over
// a stretch of ordinary polling and streaming. SECONDS is how long, 90 unless given.
import assert from 'node:assert/strict';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { open, register, scene, sync, until, visit } from './support.js';

const SECONDS = Number(process.env.SECONDS ?? 90);
const ROWS = 300;
const HOUR_BYTES_MAX = 5e6;

const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' });

/** Shares that the simulated exchange lists. */
async function symbols() {
  const list = await (await fetch(`${stage.demo.sim}/a/instruments/NSE`, { headers: { 'X-Kite-Version': '3' } })).text();
  const [head, ...lines] = list.trim().split(/\r?\n/).map((line) => line.split(','));
  const [name, segment] = ['tradingsymbol', 'segment'].map((column) => head.indexOf(column));
  return lines.filter((cells) => cells[segment] === 'NSE').map((cells) => `NSE:${cells[name]}`);
}

/** Passes connections on to the demo, and counts what it answers: whole answers and streams, as compressed, with heads. */
async function countedWay() {
  const { port, hostname } = new URL(stage.demo.base);
  let bytes = 0;
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    far.on('data', (chunk) => { bytes += chunk.length; });
    for (const [one, other] of [[near, far], [far, near]]) {
      one.pipe(other);
      one.on('error', () => other.destroy());
    }
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', () => resolve(undefined)); });
  return { base: `http://127.0.0.1:${/** @type {any} */ (server.address()).port}`, bytes: () => bytes, close: () => server.close() };
}

test(`an open portfolio of ${ROWS} holdings takes at most 5 MB an hour`, { timeout: (SECONDS + 300) * 1_000 }, async (told) => {
  const rows = (await symbols()).slice(0, ROWS).map((symbol, n) => ({ symbol, quantity: 10 + n, average_paise: 100_000 + 37 * n }));
  assert.equal(rows.length, ROWS);
  await stage.demo.control('broker_a/holdings', { user_id: 'SA0001', rows });
  const { page, context, faults } = await open(stage.browser);
  const way = await countedWay();
  await register(page, way.base);
  await sync(page, { ...stage.demo, base: way.base }, 'a');
  await visit(page, `${way.base}/portfolio`);
  await until('every row', async () => (await page.locator('tbody tr').count()) === ROWS);
  // At first every row moves, as its price of the day comes.
  await page.waitForTimeout(30_000);
  let answers = 0;
  page.on('response', (answer) => { answers += answer.url().includes('/api/portfolio/holdings?live=true&since=') ? 1 : 0; });
  const [before, seen] = [way.bytes(), await page.locator('.totals').innerText()];
  await page.waitForTimeout(SECONDS * 1_000);
  const hour = Math.round(((way.bytes() - before) * 3_600) / SECONDS);
  told.diagnostic(JSON.stringify({ rows: ROWS, seconds: SECONDS, answers, bytes_an_hour: hour }));
  assert.notEqual(await page.locator('.totals').innerText(), seen, 'prices moved');
  assert.ok(answers >= 2, `${answers} answers`);
  assert.equal(await page.locator('#strip .line').innerText(), 'Live');
  assert.ok(hour > 0 && hour <= HOUR_BYTES_MAX, String(hour));
  assert.deepEqual(faults.filter((fault) => !fault.includes('503')), []);
  await context.close();
  way.close();
});
