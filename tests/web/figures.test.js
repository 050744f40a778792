// Every figure of the portfolio, the market and the trend, against answers whose figures were computed by hand.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../web/data/format.js';
import { open, scene, until, userOf, visit } from './support.js';

/** @type {any} */
let state;
const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' }, async (shared) => { state = await userOf(shared, ['a', 'b']); });

const NOW = '2026-11-20T11:00:00+05:30';
/** In the form of one, since the page asks for lots by it. */
const isinOf = (tradingsymbol) => `INE${tradingsymbol.slice(-8).padEnd(8, '0')}1`;
const row = (tradingsymbol, more) => ({
  broker: 'a', exchange: 'NSE', tradingsymbol, name: null, isin: isinOf(tradingsymbol), quantity: 100, t1_quantity: 0, pledged_quantity: 0, mtf_quantity: 0, disputed_quantity: 0,
  average_price: 700, known_cost: null, last_price: 812, close_price: 800, invested: 70_000, current_value: 81_200, pnl: 11_200, pnl_pct: 16, day_pnl: 1_200, day_change_pct: 1.5, share_pct: 20,
  broker_pnl: null, as_of: NOW, synced_at: NOW, source: 'broker_a', stale: false, unresolved: false, discrepancy: false, corporate_action: false, ...more,
});

// INFY: 100 x 812 and 50 x 812, cost 700 and 600. TCS: 10 x 297 of 300, stale. NOCLOSE: no close. OLD: of the day
// before. PLEDGED: none of it is owned outright. Of the day: 1200 + 600 - 30 + 0 = 1770 of 123,000.
const INFY = [row('INFY', { name: 'Infosys Limited' }), row('INFY', { broker: 'b', name: 'Infosys Limited', quantity: 50, average_price: 600, invested: 30_000, current_value: 40_600, pnl: 10_600, pnl_pct: 35.33, day_pnl: 600, share_pct: 30 })];
const HOLDINGS = [
  ...INFY,
  row('TCS', { name: 'Tata Consultancy Services', quantity: 10, average_price: 250, last_price: 297, close_price: 300, invested: 2_500, current_value: 2_970, pnl: 470, pnl_pct: 18.8, day_pnl: -30, day_change_pct: -1, share_pct: 2.2, as_of: '2026-11-20T10:40:00+05:30', stale: true }),
  row('NOCLOSE', { quantity: 5, last_price: 100, close_price: null, average_price: null, invested: null, current_value: 500, pnl: null, pnl_pct: null, day_pnl: null, day_change_pct: null, share_pct: 0.4 }),
  row('OLD', { quantity: 20, last_price: 50, invested: 14_000, current_value: 1_000, pnl: -13_000, pnl_pct: -92.86, day_pnl: null, day_change_pct: null, share_pct: 0.8, as_of: '2026-11-19T15:35:00+05:30', source: undefined, stale: undefined }),
  row('PLEDGED', { quantity: 0, pledged_quantity: 7, invested: 0, current_value: 0, pnl: 0, pnl_pct: null, day_pnl: 0, day_change_pct: null, share_pct: 0 }),
];
const SUMMARY = {
  total_invested: 116_500, total_current_value: 126_270, total_pnl: 9_270, total_pnl_pct: 7.96, day_pnl: 1_770, day_pnl_pct: 1.44, day: '2026-11-20', without_cost: 1, without_price: 0, without_day_price: 1, without_close: 1,
  value_without_cost: 500, pledged_only: 1, mtf_only: 0, synced_at: NOW, synced: { a: '2026-11-20T10:30:00+05:30', b: '2026-11-20T10:31:00+05:30' }, priced_from: '2026-11-19T15:35:00+05:30', priced_to: NOW,
  merged: [{ isin: isinOf('INFY'), tradingsymbol: 'INFY', name: 'Infosys Limited', quantity: 150, average_price: 666.67, invested: 100_000, current_value: 121_800, pnl: 21_800, pnl_pct: 21.8, day_pnl: 1_800, day_change_pct: 1.5, share_pct: 96.46, parts: INFY.map(({ broker, quantity, current_value }) => ({ broker, exchange: 'NSE', tradingsymbol: 'INFY', quantity, current_value })) }],
  allocation: {
    brokers: [{ of: 'a', current_value: 85_670, share_pct: 67.85 }, { of: 'b', current_value: 40_600, share_pct: 32.15 }],
    sectors: [{ of: 'Information Technology', current_value: 124_770, share_pct: 98.81 }, { of: null, current_value: 1_500, share_pct: 1.19 }],
    sectors_as_of: '2026-09-30', sectors_source: 'NIFTY 50',
  },
};

/** A page of the user whose answer at `path` is `json`. */
async function answered(path, json, more = {}) {
  const opened = await open(stage.browser, { storageState: state, viewport: { width: 1280, height: 900 }, ...more });
  await opened.page.route(path, (route) => route.fulfill({ json: typeof json === 'function' ? json(route) : json }));
  return opened;
}

/** The cells of a row by their headings. */
const cellsOf = (page, name) => page.locator('tbody tr:not(.details)').filter({ hasText: name }).first().evaluate((line) => {
  const heads = [...line.closest('table').querySelectorAll('thead th')].map((head) => head.querySelector('.unsorted')?.textContent ?? head.textContent);
  return Object.fromEntries([...line.cells].map((cell, at) => [heads[at], cell.checkVisibility() ? cell.innerText.replace(/\s+/g, ' ').trim() : null]).filter(([, words]) => words !== null));
});

test('a holding has the day’s change in rupees and percent, and what is not known is a dash', async () => {
  const { page, context, faults } = await answered('**/api/portfolio/holdings?live=true', { holdings: HOLDINGS, summary: SUMMARY });
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByText('5 holdings').waitFor();
  assert.equal((await page.locator('.hero').innerText()).replace(/\s+/g, ' '), '₹1,26,270.00 Today ▲ +₹1,770.00 (+1.44 %)');
  const infy = await cellsOf(page, 'INFY');
  assert.match(infy.Instrument, /^▸ INFY A\+B Infosys Limited$/);
  assert.deepEqual([infy.Qty, infy.Value, infy['P&L'], infy['P&L %'], infy.Today, infy['Today %'], infy.Share], ['150', '₹1,21,800.00', '+₹21,800.00', '+21.80 %', '+₹1,800.00', '+1.50 %', '96.46 %']);
  const tcs = await cellsOf(page, 'TCS');
  assert.deepEqual([tcs.Today, tcs['Today %'], tcs.Last], ['−₹30.00', '−1.00 %', '297.00 Stale, from 10:40']);
  for (const name of ['NOCLOSE', 'OLD']) {
    const { Today, 'Today %': percent } = await cellsOf(page, name);
    assert.deepEqual([Today, percent], ['–', '–'], name);
  }
  await until('how old it is', async () => /^50\.00 Delayed 19 h/.test((await cellsOf(page, 'OLD')).Last));
  // Nothing is owned outright, so nothing moved: that is a figure, and of nothing there is no percentage.
  const pledged = await cellsOf(page, 'PLEDGED');
  assert.deepEqual([pledged.Qty, pledged.Value, pledged.Today, pledged['Today %']], ['0 pledged 7', '₹0.00', '₹0.00', '–']);
  await page.getByRole('row', { name: /NOCLOSE/ }).getByRole('button', { name: '–' }).last().click();
  await page.locator('#reason').getByText('There is no price of the day, or no previous close').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'today without 2' }).click();
  await page.locator('#reason').getByText('Today’s change excludes 2 holdings').waitFor();
  await page.keyboard.press('Escape');
  // What it is made of, and by the name of the company.
  await page.getByRole('button', { name: 'More of INFY' }).click();
  const parts = page.locator('.parts li');
  assert.match(await parts.nth(1).innerText(), /Broker B[^]*Today \+₹600\.00 \+1\.50 %/);
  await page.getByPlaceholder('Filter').fill('consultancy');
  await page.getByText('1 of 5 holdings').waitFor();
  await page.getByPlaceholder('Filter').fill('');
  await page.getByRole('button', { name: 'Today', exact: true }).click();
  await until('the order of the day', async () => (await page.locator('tbody tr:not(.details) .symbol').allInnerTexts()).slice(0, 3).join() === 'INFY,PLEDGED,TCS');
  // Rupees can be hidden, percentages stay.
  await page.getByRole('button', { name: 'Hide amounts' }).click();
  await until('no rupee', async () => !/₹\d/.test(await page.locator('main').innerText()));
  assert.equal((await cellsOf(page, 'TCS'))['Today %'], '−1.00 %');
  assert.deepEqual(faults, []);
  await context.close();
});

test('on a day that is not today the change says of which it is', async () => {
  const { page, context } = await answered('**/api/portfolio/holdings?live=true', { holdings: HOLDINGS, summary: { ...SUMMARY, day: '2026-11-19', day_pnl: -0.01, day_pnl_pct: 0 } });
  await visit(page, `${stage.demo.base}/portfolio`);
  assert.equal((await page.locator('.today').innerText()).replace(/\s+/g, ' '), 'On 19 Nov 2026 ▼ −₹0.01 (0.00 %)');
  await context.close();
});

test('allocation by broker and by sector adds up, and what no list has is a part of its own', async () => {
  const { page, context, faults } = await answered('**/api/portfolio/holdings?live=true', { holdings: HOLDINGS, summary: SUMMARY });
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByRole('button', { name: 'Allocation' }).click();
  await page.getByRole('heading', { name: 'By sector' }).waitFor();
  const lines = async () => (await page.locator('.allocation tbody tr').allInnerTexts()).map((words) => words.replace(/\s+/g, ' ').trim());
  assert.deepEqual(await lines(), ['Broker A 67.85 % ₹85,670.00', 'Broker B 32.15 % ₹40,600.00', 'Information Technology 98.81 % ₹1,24,770.00', 'Sector not known 1.19 % ₹1,500.00']);
  assert.deepEqual(await page.locator('.allocation progress').evaluateAll((bars) => bars.map((bar) => bar.value)), [67.85, 32.15, 98.81, 1.19]);
  await page.getByText('the list “NIFTY 50” of 30 Sept 2026').waitFor();
  await page.getByRole('button', { name: 'Hide amounts' }).click();
  await until('hidden', async () => (await lines())[0] === 'Broker A 67.85 % •••');
  await page.getByRole('button', { name: 'Holdings', exact: true }).click();
  await page.getByText('5 holdings').waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('300 holdings have their change and name in at most 80 px each on a phone', async () => {
  const holdings = Array.from({ length: 300 }, (_, n) => row(`SHARE${n}`, { name: `A company with quite a long name, number ${n}`, current_value: 1_00_00_000 + n, day_pnl: -12_34_567.89, day_change_pct: -10.99, pnl: 1_23_45_678.9, pnl_pct: 1_234.56, as_of: '2026-11-20T10:20:00+05:30' }));
  const { page, context } = await answered('**/api/portfolio/holdings?live=true', { holdings, summary: { ...SUMMARY, merged: [] } }, { viewport: { width: 390, height: 844 } });
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByText('300 holdings').waitFor();
  const first = page.locator('tbody tr').first();
  await first.getByText(/Delayed 4\d min/).waitFor();
  assert.match((await first.innerText()).replace(/\s+/g, ' '), /SHARE299 A company.*812\.00 Delayed 4\d min ₹1,00,00,299\.00 \+₹1,23,45,678\.90 \+1,234\.56 % −₹12,34,567\.89 −10\.99 %$/);
  // No figure is cut, however old the price beside it is.
  assert.deepEqual(await first.locator('[data-at=b], [data-at=d], [data-at=f]').evaluateAll((cells) => cells.map((cell) => cell.scrollWidth - cell.clientWidth)), [0, 0, 0]);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/300.png` });
  const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.slice(0, 20).map((one) => one.getBoundingClientRect().height));
  assert.ok(Math.max(...heights) <= 80, String(heights));
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await context.close();
});

test('the market says how many shares rise and fall, of how many, and which most', async () => {
  const mover = (symbol, name, last_price, change, change_pct, more) => ({ name, symbol, last_price, change, change_pct, as_of: NOW, source: 'broker_a', stale: false, ...more });
  const movers = {
    day: '2026-11-20', shares: 50, priced: 48, advances: 30, declines: 17, unchanged: 1,
    gainers: [['TCS', 6], ['SBIN', 5], ['MARUTI', 4], ['RELIANCE', 3], ['ITC', 2]].map(([name, by]) => mover(`NSE:${name}`, `The ${name} company`, 100 + Number(by), by, by)),
    losers: [mover('NSE:NTPC', 'NTPC', 98.5, -1.5, -1.5, { delay_s: 900 })],
  };
  const { page, context, faults } = await answered('**/api/market/movers', movers);
  const closes = Array.from({ length: 22 }, (_, n) => ({ date: `2026-10-${10 + n}`, open: 1, high: 1, low: 1, close: 100 + n, volume: 0 }));
  await page.route('**/api/market/candles?*', (route) => route.fulfill({ json: { symbol: 'NSE:NIFTY 50', source: 'broker_a', count: 22, candles: closes } }));
  await visit(page, `${stage.demo.base}/`);
  const box = page.locator('[aria-labelledby=shares]');
  await box.getByText('30 up, 17 down, 1 unchanged. Of 50 shares, 48 with a fresh price.').waitFor();
  const lines = (await box.locator('tbody tr').allInnerTexts()).map((words) => words.replace(/\s+/g, ' ').trim());
  assert.deepEqual([lines[0], lines[4], lines[5]], ['TCS The TCS company 106.00 +6.00 %', 'ITC The ITC company 102.00 +2.00 %', 'NTPC NTPC 98.50 Delayed 15 min −1.50 %']);
  assert.equal(await box.locator('progress.breadth').evaluate((bar) => bar.value / bar.max), 30.5 / 48);
  // A card has the closes of a month, and the price of now at their end.
  const months = page.locator('.card .spark path');
  await until('three lines', async () => (await months.count()) === 3);
  assert.deepEqual(await months.evaluateAll((paths) => paths.map((path) => path.getAttribute('d').split('L').length)), [23, 23, 23]);
  await box.getByRole('link', { name: 'TCS' }).click();
  await page.getByRole('heading', { name: 'TCS', level: 1 }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
  const none = await answered('**/api/market/movers', { ...movers, priced: 0, advances: 0, declines: 0, unchanged: 0, gainers: [], losers: [] });
  await visit(none.page, `${stage.demo.base}/`);
  await none.page.getByText('No share has a price of this day yet. Of 50 shares, 0 with a fresh price.').waitFor();
  await none.context.close();
});

test('the trend answers what last week brought, and draws the index beside the value', async () => {
  const point = (date, value, more) => ({ date, total_invested: 100_000, total_current_value: value, total_pnl: value - 100_000, value_without_cost: 0, source: 'close', brokers: ['a'], holdings: 3, left_out: 0, carried: 0, suspect: false, discrepancies: 0, ...more });
  const trend = [point('2026-11-12', 110_000), point('2026-11-13', 111_000), point('2026-11-16', 112_000), point('2026-11-20', 123_450.5, { brokers: ['a', 'b'], holdings: 4 })];
  const { page, context, faults } = await answered('**/api/portfolio/pnl?*', { days: 30, summary: SUMMARY, week: { from: '2026-11-13', to: '2026-11-20', pnl_change: 12_450.5, changed: true }, trend });
  await page.route('**/api/market/candles?*', (route) => route.fulfill({ json: { symbol: 'NSE:NIFTY 50', source: 'broker_a', count: 3, candles: ['2026-11-12', '2026-11-13', '2026-11-19'].map((date, n) => ({ date, open: 1, high: 1, low: 1, close: 25_000 + 250 * n, volume: 0 })) } }));
  // A short trend would begin with the value, and with an estimate of the days before.
  await page.addInitScript(() => localStorage.setItem('trend view', 'pnl'));
  await visit(page, `${stage.demo.base}/trend`);
  await page.getByText('P&L in the week to 20 Nov 2026: +₹12,450.50 since 13 Nov.').waitFor();
  await page.getByRole('button', { name: 'not all gain' }).click();
  await page.locator('#reason').getByText(/Shares were bought or sold/).waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('brokers or holdings changed').waitFor();
  assert.equal(await page.locator('line.break').count(), 1);
  assert.equal(await page.locator('.line.index').count(), 0, 'of a profit there is no index');
  await page.getByRole('button', { name: 'Value', exact: true }).click();
  await page.locator('.line.index').waitFor({ state: 'attached' });
  assert.equal((await page.locator('.line.index').getAttribute('d')).match(/[ML]/g).join(''), 'MLLM', 'it begins anew at the break');
  await page.getByRole('button', { name: 'NIFTY 50' }).click();
  await page.locator('#reason').getByText(/as if it had moved like the NIFTY 50 since/).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('days before the first point are estimated when asked for, drawn apart, and in no table', async () => {
  const point = (date, value) => ({ date, total_invested: 100_000, total_current_value: value, total_pnl: value - 100_000, value_without_cost: 0, source: 'close', brokers: ['a'], holdings: 3, left_out: 0, carried: 0, suspect: false, discrepancies: 0 });
  const now = Date.parse((await fetch(`${stage.demo.base}/api/index/snapshot`)).headers.get('date'));
  const dates = Array.from({ length: 12 }, (_, n) => new Date(now - (12 - n) * 86_400_000).toISOString().slice(0, 10));
  const { page, context, faults } = await answered('**/api/portfolio/pnl?*', { days: 30, summary: SUMMARY, week: null, trend: [point(dates[10], 120_000), point(dates[11], 121_000)] });
  const asked = [];
  await page.route('**/api/market/candles?*', (route) => {
    const symbol = new URL(route.request().url()).searchParams.get('symbol');
    asked.push(symbol);
    if (symbol !== 'NSE:NIFTY 50' && asked.length % 5 === 0) return route.fulfill({ status: 404, json: { code: 'candles_not_found', detail: 'No daily candles are stored of this symbol.' } });
    return route.fulfill({ json: { symbol, source: 'broker_a', count: dates.length, candles: dates.map((date, n) => ({ date, open: 1, high: 1, low: 1, close: 100 + n, volume: 0 })) } });
  });
  // A short trend would begin with the value, and with an estimate of the days before.
  await page.addInitScript(() => localStorage.setItem('trend view', 'pnl'));
  await visit(page, `${stage.demo.base}/trend`);
  await page.getByText(/^P&L was/).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Estimate earlier days' }).count(), 0, 'a profit of before cannot be known');
  await page.getByRole('button', { name: 'Value', exact: true }).click();
  assert.deepEqual(asked, ['NSE:NIFTY 50'], 'nothing is read before it is asked for');
  await page.getByRole('button', { name: 'Estimate earlier days' }).click();
  await page.getByText(new RegExp(`Before ${day(dates[10])} an estimate: today’s quantities at the closes of those days, of \\d+ of \\d+ shares \\(\\d+ % of the value\\).`)).waitFor();
  const estimate = page.locator('.line.estimate');
  // Ten days of before and the first point, to which the line leads; 100 on the first is 110 on the eleventh.
  assert.equal((await estimate.getAttribute('d')).match(/[ML]/g).join(''), 'MLLLLLLLLLL');
  await page.locator('.stage').press('Home');
  await page.getByText(`${day(dates[0])}: about ₹1.09L, estimated`).waitFor();
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/estimate.png`, fullPage: true });
  await page.getByText('Show as table').click();
  await page.locator('table tbody tr').first().waitFor();
  assert.equal(await page.locator('table tbody tr').count(), 2);
  await page.getByRole('button', { name: 'Estimate earlier days' }).click();
  await estimate.waitFor({ state: 'detached' });
  assert.deepEqual(faults.filter((fault) => !fault.includes('404 (Not Found)')), [], 'but for shares of which nothing is stored');
  await context.close();
});
