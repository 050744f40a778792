// W16: 300 holdings in a page that stays open: memory and long tasks. MINUTES is how long, 1 unless
// given; the figures of record are of 10.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, register, scene, sync, until, visit } from './support.js';

const MINUTES = Number(process.env.MINUTES ?? 1);
const ROWS = 300;
const HEAP_BYTES_MAX = 2 * 2 ** 20;
const TASK_MS_MAX = 200;


const stage = scene();

/** Shares that the simulated exchange lists. */
async function symbols() {
  const list = await (await fetch(`${stage.demo.sim}/a/instruments/NSE`, { headers: { 'X-Kite-Version': '3' } })).text();
  const [head, ...lines] = list.trim().split(/\r?\n/).map((line) => line.split(','));
  const [name, segment] = ['tradingsymbol', 'segment'].map((column) => head.indexOf(column));
  return lines.filter((cells) => cells[segment] === 'NSE').map((cells) => `NSE:${cells[name]}`);
}

/** The tasks of the page's main thread in a period, by CPU time: on a busy machine a task waits. */
async function tasksOf(page, ms) {
  await stage.browser.startTracing(page, { categories: ['-*', 'toplevel', '__metadata'] });
  await page.waitForTimeout(ms);
  const { traceEvents } = JSON.parse((await stage.browser.stopTracing()).toString());
  const main = new Set(traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid} ${tid}`));
  const tasks = traceEvents.filter(({ name, pid, tid }) => name.endsWith('RunTask') && main.has(`${pid} ${tid}`));
  const most = (member) => Math.round(Math.max(...tasks.map((task) => task[member] ?? 0)) / 1000);
  return { tasks: tasks.length, longest_cpu_ms: most('tdur'), longest_ms: most('dur') };
}

test(`${ROWS} holdings for ${MINUTES} min`, { timeout: (MINUTES + 10) * 60_000 }, async (context) => {
  const rows = (await symbols()).slice(0, ROWS).map((symbol, n) => ({ symbol, quantity: 10 + n, average_paise: 100_000 + 37 * n }));
  await stage.demo.control('broker_a/holdings', { user_id: 'SA0001', rows });
  const { page, context: tabs, faults } = await open(stage.browser);
  await register(page, stage.demo.base);
  await sync(page, stage.demo, 'a');
  await visit(page, `${stage.demo.base}/portfolio`);
  await until('every row', async () => (await page.locator('tbody tr').count()) === rows.length);
  const client = await tabs.newCDPSession(page);
  const heap = async () => {
    await client.send('HeapProfiler.collectGarbage');
    return (await client.send('Runtime.getHeapUsage')).usedSize;
  };
  // The first half minute fills caches and draws everything once.
  await page.waitForTimeout(30_000);
  const [before, seen] = [await heap(), await page.locator('.totals').innerText()];
  await page.waitForTimeout((MINUTES - 1) * 60_000);
  const tasks = await tasksOf(page, 60_000);
  const after = await heap();
  const figures = {
    rows: rows.length, minutes: MINUTES, heap_mib: [before, after].map((bytes) => Number((bytes / 2 ** 20).toFixed(2))),
    grown_kib: Math.round((after - before) / 1024), ...tasks,
  };
  context.diagnostic(JSON.stringify(figures));
  assert.notEqual(await page.locator('.totals').innerText(), seen, 'prices moved');
  assert.ok(after - before < HEAP_BYTES_MAX, JSON.stringify(figures));
  assert.ok(figures.longest_cpu_ms <= TASK_MS_MAX, JSON.stringify(figures));
  // A busy machine may answer 503, after which the page asks again.
  assert.deepEqual(faults.filter((fault) => !fault.includes('503')), []);
});
