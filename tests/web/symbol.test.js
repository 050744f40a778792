// A page for each symbol, the ways to it, and the keys.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, scene, until, userOf, visit } from './support.js';

/** @type {any} */
let state;
const stage = scene({}, async (shared) => { state = await userOf(shared, ['a', 'b']); });

test('everything that names a share leads to its page', async () => {
  const { page, context, faults } = await open(stage.browser, { storageState: state });
  await page.goto(`${stage.demo.base}/journal`);
  await page.evaluate(async () => fetch('/api/journal', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ traded_on: '2026-11-20', symbol: 'NSE:RELIANCE', side: 'buy', quantity: 10, price: 1412.5, strategy: 'Pullback', notes: 'Bought too early.' }) }));
  for (const [path, link, heading] of [
    ['/', 'NIFTY 50', 'NIFTY 50'], ['/', 'Nifty Pharma', 'NIFTY PHARMA'], ['/watch', 'TCS', 'TCS'], ['/portfolio', 'RELIANCE', 'RELIANCE'], ['/journal', 'RELIANCE', 'RELIANCE'],
  ]) {
    await visit(page, stage.demo.base + path);
    // A sector opens its shares first.
    if (link.startsWith('Nifty')) await page.getByRole('button', { name: link }).click();
    await page.locator('main').getByRole('link', { name: link }).first().click();
    await page.getByRole('heading', { name: heading, level: 1, exact: true }).waitFor();
    assert.match(page.url(), /\/s\/(NSE|BSE):/);
  }
  await visit(page, `${stage.demo.base}/signals`);
  const first = page.locator('main table a.symbol').first();
  const name = await first.innerText();
  await first.click();
  await page.getByRole('heading', { name, level: 1, exact: true }).waitFor();
  await page.locator('[aria-labelledby=signals] tbody tr').first().waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('the page of a share has its price, its candles, what is held of it and what was written', async () => {
  const { page, context, faults } = await open(stage.browser, { storageState: state });
  await visit(page, `${stage.demo.base}/s/NSE:RELIANCE`);
  assert.equal(await page.title(), 'RELIANCE · bhav');
  await until('the price', async () => /\d,\d{3}\.\d\d/.test(await page.locator('.quote .level').innerText()));
  assert.match(await page.locator('.quote .change').innerText(), /[▲▼=] [+−]?[\d,.]+ \([+−]?[\d.]+ %\)/);
  const day = await page.getByText(/^Day [\d,.]+ – [\d,.]+$/).innerText();
  const [low, high] = day.match(/[\d,.]+/g).map((figure) => Number(figure.replaceAll(',', '')));
  assert.ok(low > 0 && low < high, day);
  await page.getByText(/52 weeks: low [\d,.]+, high [\d,.]+/).waitFor();
  await page.locator('.candles .mark.simulated').waitFor();
  const bars = page.locator('.bars > g');
  const count = await bars.count();
  await page.getByRole('button', { name: '1Y' }).click();
  await until('more candles', async () => (await bars.count()) > count);
  await page.locator('.last-price text').waitFor();
  await page.locator('.volume').first().waitFor({ state: 'attached' });
  const readout = page.locator('.readout');
  await page.getByRole('group', { name: /Candles: the arrow keys/ }).focus();
  const before = await readout.innerText();
  await page.keyboard.press('ArrowLeft');
  assert.notEqual(await readout.innerText(), before);
  // Held at both brokers, each at its own cost.
  const held = page.locator('[aria-labelledby=held]');
  for (const broker of ['Broker A', 'Broker B']) await held.getByRole('row', { name: new RegExp(`${broker} [\\d,]+ [\\d,.]+`) }).waitFor();
  await page.locator('[aria-labelledby=written]').getByText('Buy 10 × 1,412.50').waitFor();
  await page.getByRole('button', { name: 'Hide amounts' }).click();
  await until('hidden amounts', async () => !/₹\d/.test(await held.innerText()));
  await page.getByRole('button', { name: 'Hide amounts' }).click();
  // On and off the watch list.
  await page.getByRole('button', { name: 'Remove RELIANCE from the watch list' }).click();
  await page.getByRole('button', { name: 'Add RELIANCE to the watch list' }).waitFor();
  await page.getByRole('link', { name: 'Watch', exact: true }).click();
  await until('the list without it', async () => (await page.getByRole('row', { name: /RELIANCE/ }).count()) === 0);
  assert.deepEqual(faults, []);
  await context.close();
});

test('the session that runs is the last candle, marked as one and moved by the stream', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/s/NSE:INFY`);
  const running = page.locator('.bars .running');
  await running.waitFor({ state: 'attached' });
  assert.equal(await running.count(), 1);
  assert.equal(await page.locator('.bars > g').last().evaluate((node) => node.classList.contains('running')), true);
  const readout = page.locator('.readout');
  const shown = await readout.innerText();
  assert.match(shown, /today so far\s*Open [\d,.]+\s*High [\d,.]+\s*Low [\d,.]+\s*Last [\d,.]+/);
  const [open_, high, low, last] = shown.match(/(?<=(?:Open|High|Low|Last) )[\d,.]+/g).map((words) => Number(words.replaceAll(',', '')));
  assert.ok(low <= open_ && open_ <= high && low <= last && last <= high, shown);
  const quote = (await (await fetch(`${stage.demo.base}/api/portfolio/live-prices?symbols=NSE:INFY`)).json()).quotes[0];
  assert.equal(open_, quote.day_open);
  assert.match(await page.locator('.candles svg').getAttribute('aria-label'), /today so far: [\d,.]+ – [\d,.]+$/);
  // A move that can be seen moves it.
  await stage.demo.control('trading', { symbol: 'NSE:INFY', price: Math.round(quote.day_high * 1.02) });
  await until('a higher high', async () => Number(/High ([\d,.]+)/.exec(await readout.innerText())?.[1].replaceAll(',', '')) > high * 1.01);
  // The day before is closed, and the table and its file are of closed days alone.
  await page.getByRole('group', { name: /Candles: the arrow keys/ }).focus();
  await page.keyboard.press('ArrowLeft');
  assert.match(await readout.innerText(), /Close [\d,.]+/);
  await page.getByText('Show as table').click();
  await page.locator('.candles tbody tr').first().waitFor();
  const [today] = shown.split(',');
  assert.ok(!(await page.locator('.candles tbody').innerText()).includes(today), today);
  assert.deepEqual(faults, []);
  await context.close();
});

test('an index has candles, which have no volume', async () => {
  await until('candles of the index', async () => (await fetch(`${stage.demo.base}/api/market/candles?symbol=NSE:NIFTY%2050`)).ok);
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/s/NSE:NIFTY%2050`);
  await page.locator('.bars > g').first().waitFor({ state: 'attached' });
  await page.getByText(/52 weeks: low [\d,.]+, high [\d,.]+/).waitFor();
  assert.match(await page.locator('.readout').innerText(), /Last [\d,.]+\s*$/);
  assert.deepEqual(faults, []);
  await context.close();
});

test('the cards of the market show where each index stands between its low and its high', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  for (const name of ['NIFTY 50', 'BANK NIFTY', 'SENSEX']) {
    const card = page.locator('a.card', { has: page.getByRole('heading', { name, exact: true }) });
    const range = card.locator('.range');
    await until('its range', async () => /[\d,.]+ – [\d,.]+/.test(await range.innerText()));
    // One look, since figures move on.
    const [words, place, level] = await card.evaluate((node) =>
      ['.range > span:last-child', '.range circle', '.level'].map((at) => (at.endsWith('circle') ? node.querySelector(at).getAttribute('cx') : node.querySelector(at).textContent)));
    const [low, high] = words.match(/[\d,.]+/g).map((figure) => Number(figure.replaceAll(',', '')));
    const now = Number(level.replaceAll(',', ''));
    assert.ok(low > 0 && low < high, words);
    const share = Number(place.replace('%', ''));
    assert.ok(share >= 0 && share <= 100, place);
    // The price of the snapshot may be a moment younger than the quote's.
    assert.ok(Math.abs((100 * (now - low)) / (high - low) - share) < 25, `${level} in ${words} at ${place}`);
  }
  // Without a range there is neither line nor dot.
  const bare = await open(stage.browser);
  await bare.page.route('**/api/index/stream?*', (route) => route.abort());
  await bare.page.route('**/api/portfolio/live-prices?*', async (route) => {
    const answer = await route.fetch();
    const list = await answer.json();
    for (const quote of list.quotes) quote.day_low = quote.day_high = null;
    await route.fulfill({ response: answer, json: list });
  });
  await visit(bare.page, `${stage.demo.base}/`);
  await bare.page.locator('a.card .level:not(.waiting)').first().waitFor();
  assert.equal(await bare.page.locator('.range circle').first().getAttribute('opacity'), '0');
  assert.equal((await bare.page.locator('.range > span').last().innerText()).trim(), '');
  for (const one of [context, bare.context]) await one.close();
  assert.deepEqual(faults, []);
});

test('a guest sees the share, and that a login shows more', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/s/NSE:INFY`);
  await page.getByText('Log in to see what you hold of it').waitFor();
  assert.deepEqual(faults, []);
  await visit(page, `${stage.demo.base}/s/INFY`);
  await page.getByRole('heading', { name: 'There is no such symbol' }).waitFor();
  await context.close();
});

test('a slash finds a share from every page, and a question mark lists the keys', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/status`);
  await page.keyboard.press('/');
  const field = page.getByRole('combobox', { name: 'Find a share or an index' });
  await field.waitFor();
  assert.equal(await field.evaluate((input) => input === document.activeElement), true);
  await page.keyboard.type('infy');
  await page.getByRole('option', { name: /INFY/ }).first().waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'INFY', level: 1 }).waitFor();
  await page.keyboard.press('?');
  await page.getByRole('heading', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await page.getByRole('heading', { name: 'Keys' }).isVisible(), false);
  await page.getByRole('button', { name: 'Find a share or an index' }).click();
  await field.waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('the watch list is put in order by dragging and by keys', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/watch`);
  const names = () => page.locator('tbody a.symbol').allInnerTexts();
  const [first, second, third, ...rest] = await names();
  await until('prices', async () => /\d,\d{3}\.\d\d/.test(await page.locator('main').innerText()));
  const grips = page.locator('td.acts .grip');
  const [from, to] = [await grips.nth(0).boundingBox(), await grips.nth(2).boundingBox()];
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + to.width / 2, to.y + to.height / 2, { steps: 5 });
  assert.equal(await page.locator('tr.drop').count(), 1);
  await page.mouse.up();
  assert.deepEqual(await names(), [second, third, first, ...rest]);
  assert.equal(await page.locator('tr.drop').count(), 0);
  const up = page.getByRole('button', { name: `Move ${first} up` });
  await up.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  assert.deepEqual(await names(), [first, second, third, ...rest]);
  await page.reload();
  await until('the same list', async () => (await names()).join() === [first, second, third, ...rest].join());
  assert.deepEqual(faults, []);
  await context.close();
});

test('who goes back comes to the place where the page was left', async () => {
  const { page, context } = await open(stage.browser, { viewport: { width: 390, height: 700 } });
  await visit(page, `${stage.demo.base}/signals`);
  await page.evaluate(() => scrollTo(0, 900));
  await until('the place', async () => (await page.evaluate(() => scrollY)) === 900);
  await page.getByRole('link', { name: 'Watch', exact: true }).click();
  await page.getByRole('heading', { name: 'Watch', level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0);
  await page.goBack();
  await page.getByRole('heading', { name: 'Signals', level: 1 }).waitFor();
  await until('the same place', async () => Math.abs((await page.evaluate(() => scrollY)) - 900) < 3);
  await page.goForward();
  await page.getByRole('heading', { name: 'Watch', level: 1 }).waitFor();
  await context.close();
});

test('a mistyped address shows a page, and one with a slash too many the page that was meant', async () => {
  const { page, context } = await open(stage.browser);
  const answer = await page.goto(`${stage.demo.base}/portfolios`);
  assert.equal(answer.status(), 404);
  await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
  await page.getByRole('link', { name: 'To the market' }).click();
  await page.getByText('NIFTY 50').first().waitFor();
  await page.goto(`${stage.demo.base}/watch/`);
  await page.getByRole('heading', { name: 'Watch', level: 1 }).waitFor();
  assert.equal(page.url(), `${stage.demo.base}/watch`);
  await context.close();
});
