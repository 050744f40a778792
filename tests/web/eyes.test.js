// For every eye: large letters, narrow windows, wide spacing, 400 %. No figure is cut, nothing scrolls sideways, and
// nothing jumps while a page loads.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAGES, open, scene, userOf, visit } from './support.js';

/** @type {any} */
let state;
const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' }, async (shared) => { state = await userOf(shared, ['a', 'b']); });

/** @type {[string, { width: number, height: number }, { root?: number, spacing?: boolean }][]} */
const EYES = [
  ['320 px', { width: 320, height: 720 }, {}],
  ['390 px with letters of 24 px', { width: 390, height: 844 }, { root: 24 }],
  ['320 px with wide spacing', { width: 320, height: 720 }, { spacing: true }],
  ['1280 px', { width: 1280, height: 900 }, {}],
  ['400 %', { width: 320, height: 256 }, {}],
];

/** A context whose pages begin with these letters, as a browser's own setting gives them. */
async function eyes(viewport, { root, spacing }) {
  const opened = await open(stage.browser, { storageState: state, viewport });
  await opened.context.addInitScript(([size, wide]) => {
    new MutationObserver((_, watch) => {
      if (!document.documentElement) return;
      watch.disconnect();
      if (size) document.documentElement.style.fontSize = `${size}px`;
      if (wide) Object.assign(document.documentElement.style, { letterSpacing: '.12em', wordSpacing: '.16em', lineHeight: '1.5' });
    }).observe(document, { childList: true });
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (!hadRecentInput) window.shifts.push([value, ...sources.map(({ node, previousRect, currentRect }) => `${node?.nodeName}.${node?.className} ${Math.round(previousRect.y)} > ${Math.round(currentRect.y)}`)]);
      }
    }).observe({ type: 'layout-shift', buffered: true });
  }, [root, spacing]);
  return opened;
}

/** What is cut and has a figure in it; of a company the name alone may be. */
const cut = (page) => page.evaluate(() => [...document.querySelectorAll('main *, #strip *')].filter((node) => {
  if (!node.checkVisibility() || node.closest('.unseen, svg, select, .company, [aria-hidden=true]')) return false;
  const { overflowX } = getComputedStyle(node);
  if (overflowX === 'visible' || node.scrollWidth <= node.clientWidth + 1) return false;
  // A place that a person can scroll cuts nothing.
  if (['auto', 'scroll'].includes(overflowX)) return false;
  // Which part of it is beyond the edge?
  const edge = node.getBoundingClientRect().right + 1;
  const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!/\d/.test(text.data) || text.parentElement.closest('.company, .unseen')) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    if ([...range.getClientRects()].some(({ right }) => right > edge)) return true;
  }
  return false;
}).map((node) => `${node.nodeName}.${node.className}: ${node.textContent.trim().slice(0, 60)}`));

const over = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);

/** ₹16 crore in one share, in every figure that a row has. */
function rich(json) {
  const [first] = json.holdings;
  const figures = { quantity: 123_456, average_price: 9_876.54, last_price: 13_012.35, close_price: 12_900.1, invested: 1_219_318_122.24, current_value: 1_606_452_681.6, pnl: 387_134_559.36, pnl_pct: 31.75, day_pnl: 13_857_936, day_change_pct: 0.87, share_pct: 99.01 };
  Object.assign(first, figures, { name: 'Adani Ports and Special Economic Zone', pledged_quantity: 12_345, t1_quantity: 1_000, discrepancy: true, stale: true, as_of: '2026-11-19T15:30:00+05:30' });
  const merged = json.summary.merged.find(({ isin }) => isin === first.isin);
  if (merged) Object.assign(merged, figures, { name: first.name });
  Object.assign(json.summary, { total_invested: 1_619_318_122.24, total_current_value: 1_606_452_681.6, total_pnl: -387_134_559.36, total_pnl_pct: -23.91, day_pnl: 113_857_936, day_pnl_pct: 7.61, value_without_cost: 160_645_268.16 });
}

/** A derivative with a long name, and figures of crores. */
function derived(json) {
  for (const row of json.positions) {
    Object.assign(row, { tradingsymbol: 'MIDCPNIFTY26NOV12950CE', exchange: 'NFO', quantity: -123_450, average_price: 12_345.65, last_price: 13_456.7, close_price: 13_000.05, pnl: -137_158_042.5, realised: 0, unrealised: -137_158_042.5, multiplier: 1 });
  }
}

async function changed(page, path, change) {
  await page.route(path, async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    change(json);
    await route.fulfill({ response: answer, json });
  });
}

for (const [name, viewport, more] of EYES) {
  test(`₹16 crore and a derivative's long name are whole at ${name}`, async () => {
    const { page, context } = await eyes(viewport, more);
    await changed(page, '**/api/portfolio/holdings?*', rich);
    await changed(page, '**/api/portfolio/positions*', derived);
    await visit(page, `${stage.demo.base}/portfolio`);
    await page.locator('tbody tr').first().waitFor();
    for (const tab of ['Holdings', 'Positions', 'Allocation', 'Returns']) {
      await page.getByRole('button', { name: tab, exact: true }).click();
      if (tab === 'Positions') await page.getByText('MIDCPNIFTY26NOV12950CE').first().waitFor();
      await page.waitForFunction(() => !document.querySelector('.skeleton, .waiting'));
      assert.deepEqual(await cut(page), [], `${tab} at ${name}`);
      assert.ok((await over(page)) <= 0, `${tab} is ${await over(page)} px wider at ${name}`);
    }
    await page.getByRole('button', { name: 'Holdings', exact: true }).click();
    await page.getByLabel('By broker').check();
    assert.deepEqual(await cut(page), [], `by broker at ${name}`);
    assert.ok((await over(page)) <= 0, `by broker at ${name}`);
    await context.close();
  });

  test(`no page cuts a figure or scrolls sideways at ${name}`, async () => {
    const { page, context } = await eyes(viewport, more);
    for (const path of PAGES) {
      await visit(page, stage.demo.base + path);
      await page.locator('#strip').getByText(/^data/).waitFor();
      assert.deepEqual(await cut(page), [], `${path} at ${name}`);
      assert.ok((await over(page)) <= 0, `${path} is ${await over(page)} px wider at ${name}`);
    }
    await context.close();
  });
}

test('nothing jumps while pages load with letters of 24 px', async () => {
  for (const path of [...PAGES.filter((name) => name !== '/login'), '/s/NSE:NIFTY%2050']) {
    const { page, context } = await eyes({ width: 390, height: 844 }, { root: 24 });
    await visit(page, stage.demo.base + path);
    await page.locator('#strip').getByText(/^data/).waitFor();
    await page.waitForTimeout(1_500);
    const shifts = await page.evaluate(() => window.shifts);
    const sum = shifts.reduce((all, [value]) => all + value, 0);
    assert.ok(sum < 0.01, `${path}: ${sum} ${JSON.stringify(shifts)}`);
    await context.close();
  }
});
