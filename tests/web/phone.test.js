// The pages on a phone and while they load: short rows that open on a tap, nothing that jumps, everything in reach.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAGES, open, register, scene, sync, until, userOf, visit } from './support.js';

const PHONE = { width: 390, height: 844 };
/** @type {any} */
let state;
const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' }, async (shared) => { state = await userOf(shared, ['a', 'b']); });

/** A page of the user at a width, which keeps count of what jumps. */
async function at(viewport, more = {}) {
  const opened = await open(stage.browser, { storageState: state, viewport, ...more });
  await opened.context.addInitScript(() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (!hadRecentInput) window.shifts.push([value, ...sources.map(({ node, previousRect, currentRect }) => `${node?.nodeName}.${node?.className} ${Math.round(previousRect.y)} > ${Math.round(currentRect.y)}`)]);
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
  return opened;
}

const rowsOf = (page) => page.locator('table.lines tbody > tr:not(.details)');

test('a holding is at most 80 px high on a phone, and a tap opens the rest of it', async () => {
  const { page, context } = await at(PHONE, { hasTouch: true });
  await visit(page, `${stage.demo.base}/portfolio`);
  const heights = await rowsOf(page).evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height));
  assert.equal(heights.length, 21);
  assert.ok(Math.max(...heights) <= 80, String(heights));
  // The first of them stands in the first screen.
  assert.ok(await rowsOf(page).first().evaluate((row) => row.getBoundingClientRect().bottom < innerHeight - 56));
  const row = rowsOf(page).filter({ hasText: 'RELIANCE' });
  assert.match(await row.innerText(), /RELIANCE[^]*\d+ × [\d,.]+[^]*₹[\d,.]+[^]*[+−]₹[\d,.]+ [+−][\d.]+ %[^]*Today [+−]?₹[\d,.]+ [+−]?[\d.]+ %/);
  await row.tap({ position: { x: 150, y: 60 } });
  const details = page.locator('tr.details');
  await details.getByText('Invested').waitFor();
  await details.getByText('Broker B').first().waitFor();
  await details.getByText('Share', { exact: true }).waitFor();
  await row.tap({ position: { x: 150, y: 60 } });
  await until('it closed', async () => (await details.count()) === 0);
  // The order is chosen from a list, since there are no headings.
  await page.getByLabel('Sort by').selectOption({ label: 'Instrument' });
  const names = await rowsOf(page).locator('.symbol').allInnerTexts();
  assert.deepEqual(names, [...names].sort((a, b) => a.localeCompare(b, 'en-IN')));
  await context.close();
});

test('from 640 px on holdings are a table of the important columns, and on paper too', async () => {
  for (const width of [641, 820, 1280]) {
    const { page, context } = await at({ width, height: 900 });
    await visit(page, `${stage.demo.base}/portfolio`);
    assert.equal(await rowsOf(page).first().evaluate((row) => getComputedStyle(row).display), 'table-row', String(width));
    const shown = await page.locator('thead th:visible').count();
    assert.ok(width === 1280 ? shown === 11 : shown >= 6 && shown < 11, `${shown} columns at ${width}`);
    await page.emulateMedia({ media: 'print' });
    assert.equal(await rowsOf(page).first().evaluate((row) => getComputedStyle(row).display), 'table-row', 'on paper');
    await context.close();
  }
});

test('the trend’s rows are folded', async () => {
  const { page, context } = await at(PHONE);
  await page.route('**/api/portfolio/pnl?*', async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    const [point] = json.trend;
    const trend = Array.from({ length: 260 }, (_, n) => ({ ...point, source: 'close', date: new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10), total_pnl: point.total_pnl + 10_000 * Math.sin(n / 9) }));
    await route.fulfill({ response: answer, json: { ...json, trend } });
  });
  await visit(page, `${stage.demo.base}/trend`);
  await page.locator('.line.value').waitFor({ state: 'attached' });
  assert.ok(await page.evaluate(() => document.documentElement.scrollHeight) < 1_600);
  assert.equal(await page.locator('tbody tr:visible').count(), 0);
  // One cursor for mouse, touch and keys.
  const chart = page.getByRole('group', { name: /Trend: the arrow keys/ });
  const readout = page.locator('.readout');
  await chart.focus();
  const last = await readout.innerText();
  await page.keyboard.press('ArrowLeft');
  assert.notEqual(await readout.innerText(), last);
  await page.keyboard.press('Home');
  assert.match(await readout.innerText(), /^1 Jan 2026/);
  const box = await chart.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + 40);
  await until('the middle', async () => /(Apr|May|Jun) 2026/.test(await readout.innerText()));
  await page.getByRole('button', { name: 'Value', exact: true }).click();
  await page.locator('.line.cost').waitFor({ state: 'attached' });
  await page.getByText('Show as table').click();
  await page.locator('tbody tr').first().waitFor();
  assert.equal(await page.locator('tbody tr:visible').count(), 260);
  await context.close();
});

for (const width of [390, 1280]) {
  test(`nothing jumps while pages load, at ${width} px`, async () => {
    for (const path of [...PAGES.filter((name) => name !== '/login'), '/s/NSE:NIFTY%2050']) {
      const { page, context } = await at({ width, height: 900 });
      await visit(page, stage.demo.base + path);
      // Prices and lists that come after the first drawing.
      await page.locator('#strip').getByText(/^data/).waitFor();
      await page.waitForTimeout(1_500);
      const shifts = await page.evaluate(() => window.shifts);
      const sum = shifts.reduce((all, [value]) => all + value, 0);
      assert.ok(sum < 0.01, `${path}: ${sum} ${JSON.stringify(shifts)}`);
      await context.close();
    }
  });
}

test('five places at the bottom, the others behind the last', async () => {
  const { page, context } = await at(PHONE);
  await visit(page, `${stage.demo.base}/`);
  const bar = page.getByRole('navigation', { name: 'Pages' });
  assert.deepEqual((await bar.locator('a:visible, button:visible').allInnerTexts()).map((words) => words.trim()), ['Market', 'Watch', 'Portfolio', 'Trend', 'More']);
  const { y, height } = await bar.boundingBox();
  assert.ok(Math.round(y + height) === PHONE.height && height <= 60, `${y} ${height}`);
  await bar.getByRole('button', { name: 'More' }).click();
  const behind = await page.locator('#more a').allInnerTexts();
  for (const name of ['Journal', 'Trades', 'Gains', 'Integrity']) assert.ok(behind.includes(name), String(behind));
  await page.getByRole('link', { name: 'Signals', exact: true }).click();
  await page.getByRole('heading', { name: 'Signals', level: 1 }).waitFor();
  assert.equal(await page.locator('#more').isVisible(), false);
  // Nothing that has the focus lies behind the bar.
  await page.evaluate(() => scrollTo(0, 0));
  for (let step = 0; step < 25; step += 1) {
    await page.keyboard.press('Tab');
    const covered = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node.closest('nav') || node === document.body) return null;
      return node.getBoundingClientRect().top > innerHeight - 56 ? node.outerHTML.slice(0, 120) : null;
    });
    assert.equal(covered, null);
  }
  await context.close();
});

test('a long e-mail address fits on a phone', async () => {
  const { page, context } = await open(stage.browser, { viewport: { width: 320, height: 720 } });
  await visit(page, `${stage.demo.base}/`);
  const email = 'a.very.long.name.of.a.person.with.titles@subdomain.example-company.co.in';
  const status = await page.evaluate(async (mail) => (await fetch('/api/auth/register', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ email: mail, password: 'nine green parrots', cookie: true }) })).status, email);
  assert.equal(status, 201);
  await visit(page, `${stage.demo.base}/account`);
  await page.getByText(email).waitFor();
  for (const spacing of ['normal', '.12em']) {
    await page.evaluate((value) => { document.body.style.letterSpacing = value; }, spacing);
    for (const width of [320, 390]) {
      await page.setViewportSize({ width, height: 720 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} ${spacing}`);
    }
  }
  await context.close();
});

test('tiles are made for the dark, and as many in a row as have room', async () => {
  const { page, context } = await at({ width: 820, height: 900 }, { colorScheme: 'dark' });
  await visit(page, `${stage.demo.base}/`);
  const colours = await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => getComputedStyle(tile).backgroundColor.match(/\d+/g).slice(0, 3).map(Number)));
  assert.ok(colours.length >= 12);
  for (const [red, green, blue] of colours) assert.ok(0.2126 * red + 0.7152 * green + 0.0722 * blue < 110, `${red} ${green} ${blue}`);
  const tops = await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => tile.getBoundingClientRect().top));
  assert.ok(tops.filter((top) => top === tops[0]).length >= 4);
  // They keep their places while prices move: what wanders cannot be read.
  const names = () => page.locator('.tile .name').allInnerTexts();
  const before = await names();
  await page.waitForTimeout(3_000);
  assert.deepEqual(await names(), before);
  await context.close();
});

test('an account whose broker holds nothing is told so', async () => {
  await stage.demo.control('broker_a/holdings', { user_id: 'SA0001', rows: [] });
  const { page, context } = await open(stage.browser, { viewport: PHONE });
  await register(page, stage.demo.base);
  await sync(page, stage.demo, 'a');
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByText('Broker A holds no shares for you; see Positions.').waitFor();
  assert.equal(await page.getByText('Nothing synced yet').count(), 0);
  await context.close();
});
