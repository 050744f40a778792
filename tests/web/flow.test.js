// W6, W7, W11, W17: from nothing to a portfolio and out again, by mouse and by keyboard.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { rupees } from '../../web/format.js';
import { PASSWORD, launch, open, register, startDemo, sync, until, visit } from './support.js';

let demo;
let browser;

before(async () => {
  demo = await startDemo();
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

test('a newcomer registers, syncs both brokers, reads the sums, and leaves nothing behind', async () => {
  const { page, context, faults } = await open(browser);
  await register(page, demo.base);
  await sync(page, demo, 'a');
  await sync(page, demo, 'b');
  await page.getByRole('link', { name: 'To the portfolio' }).click();
  await page.getByText('Broker A synced').waitFor();
  const summary = await page.evaluate(async () => (await (await fetch('/api/portfolio/holdings')).json()).summary);
  // Invested does not move with prices, so it is the same to the paisa a moment later.
  await until('the sum of what was invested', async () => (await page.locator('.totals').innerText()).includes(rupees(summary.total_invested)));
  assert.match(await page.locator('.totals').innerText(), /₹\d{1,2},\d\d,\d\d,\d{3}\.\d\d/);
  await page.getByText(/Of the value, ₹.* is in 2 holdings without a cost/).waitFor();
  // A merged row opens into its parts.
  const row = page.getByRole('row', { name: /RELIANCE/ });
  await row.getByRole('button', { name: 'Parts of RELIANCE' }).click();
  await page.locator('.parts').getByText('Broker B').waitFor();
  await page.getByRole('radio', { name: 'By broker' }).check();
  assert.equal(await page.getByRole('row', { name: /RELIANCE/ }).count(), 2);
  await page.getByRole('button', { name: 'Positions' }).click();
  await page.getByText(/open positions?, P&L/).waitFor();

  await page.getByRole('button', { name: 'Hide amounts' }).click();
  await page.getByRole('button', { name: 'Holdings' }).click();
  await until('hidden amounts', async () => !/₹\d/.test(await page.locator('main').innerText()));
  assert.match(await page.locator('main').innerText(), /[+-]\d+\.\d\d %/);
  await page.getByRole('button', { name: 'Hide amounts' }).click();

  await page.reload();
  await page.getByText('Broker A synced').waitFor();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL(`${demo.base}/`);
  assert.equal(await page.evaluate(async () => (await fetch('/api/portfolio/holdings')).status), 401);
  await page.goBack();
  await page.getByText('Log in to see this page').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /₹\d/);
  // The refusal that this test itself provoked.
  assert.deepEqual(faults.filter((fault) => !fault.includes('401')), []);
  await context.close();
});

test('credentials are nowhere after a sync: not in storage, address, fields or log', async () => {
  const { page, context } = await open(browser);
  await register(page, demo.base);
  const code = await demo.requestToken();
  const greeting = demo.log().length; // which names the simulator's secrets
  // As the broker's login sends the browser back, from another site.
  await page.goto(`${demo.base}/return/a?request_token=${code}&status=success`, { waitUntil: 'commit' });
  const field = page.getByLabel('Request token', { exact: true });
  await field.waitFor();
  assert.equal(await field.inputValue(), code);
  assert.equal(page.url(), `${demo.base}/portfolio/sync/a`);
  assert.equal(await page.getByRole('heading', { name: 'Broker A is synced' }).count(), 0, 'nothing is sent by itself');
  await page.getByLabel('API key', { exact: true }).fill('simkeya-7');
  assert.match(await page.getByRole('link', { name: /Open the broker/ }).getAttribute('href') ?? '', /api_key=simkeya-7$/);
  await page.getByLabel('API secret', { exact: true }).fill('simsecreta');
  await page.getByRole('button', { name: 'Sync broker A' }).click();
  await page.getByRole('heading', { name: 'Broker A is synced' }).waitFor();
  const kept = await page.evaluate(() => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, history.state, location.href, document.documentElement.outerHTML,
    [...document.querySelectorAll('input')].map((input) => input.value),
  ]));
  for (const secret of ['simsecreta', 'simkeya-7', code]) {
    assert.ok(!kept.includes(secret), secret);
    assert.ok(!demo.log().slice(greeting).includes(secret), `${secret} in the log`);
  }
  await context.close();
});

test('broker B may come back by a form from its own site', async () => {
  const { page, context } = await open(browser);
  await register(page, demo.base);
  await page.route('http://broker.test/*', (route) => route.fulfill({
    contentType: 'text/html',
    body: `<form method="post" action="${demo.base}/return/b"><input name="API_Session" value="12345678"><button>Go</button></form>`,
  }));
  await page.goto('http://broker.test/login');
  await page.getByRole('button', { name: 'Go' }).click();
  const field = page.getByLabel('API session', { exact: true });
  await field.waitFor();
  assert.equal(await field.inputValue(), '12345678');
  assert.equal(page.url(), `${demo.base}/portfolio/sync/b`);
  await context.close();
});

test('the journal shows what was written as text, and what was deleted comes back by Undo', async () => {
  const { page, context, faults } = await open(browser);
  await register(page, demo.base);
  await page.getByRole('link', { name: 'Journal' }).click();
  const hostile = '<img src=x onerror="window.broken=1"></script><b>bold</b>';
  await page.getByRole('button', { name: 'New entry' }).click();
  const form = page.locator('form.entry');
  await form.getByLabel('Symbol').fill('inf');
  await page.locator('.options li').first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await form.getByLabel('Symbol').inputValue(), 'NSE:INFY');
  await form.getByLabel('Qty').fill('1,000');
  await form.getByLabel('Price').fill('abc');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('This is not a number.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'price');
  await form.getByLabel('Price').fill('1764.90');
  await form.getByLabel('Notes').fill(hostile);
  await form.getByLabel('Strategy').fill(hostile);
  await form.getByLabel('Tags').fill('<i>tag</i>');
  await form.getByRole('button', { name: 'Save' }).click();
  const removes = page.getByRole('button', { name: /Delete NSE:INFY/ });
  await removes.waitFor();
  assert.ok((await page.locator('main').innerText()).includes(hostile));
  assert.equal(await page.evaluate(() => window.broken), undefined);
  assert.equal(await page.locator('main img').count(), 0);
  await removes.click();
  await page.getByRole('button', { name: 'Undo' }).click();
  await removes.waitFor();
  // A filter is computed by the API, and its words are text too.
  await page.getByLabel('Strategy').first().fill('nothing such');
  await page.keyboard.press('Enter');
  await page.getByText('No entry fits the filters.').waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('unsaved text survives a login that ended meanwhile', async () => {
  const { page, context } = await open(browser);
  const email = await register(page, demo.base);
  await page.getByRole('link', { name: 'Journal' }).click();
  await page.getByRole('button', { name: 'New entry' }).click();
  const form = page.locator('form.entry');
  await form.getByLabel('Symbol').fill('NIFTY 26NOV 25000 CE');
  await form.getByLabel('Qty').fill('75');
  await form.getByLabel('Price').fill('120.5');
  await context.clearCookies();
  await form.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Log in to see this page').waitFor();
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await form.waitFor();
  assert.equal(await form.getByLabel('Symbol').inputValue(), 'NIFTY 26NOV 25000 CE');
  assert.equal(await form.getByLabel('Qty').inputValue(), '75');
  await context.close();
});

test('everything is reached by keyboard, with a focus that can be seen', async () => {
  const { page, context } = await open(browser);
  await visit(page, `${demo.base}/watch`);
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  const seen = new Set();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const node = document.activeElement;
      if (!node || node === document.body) return null;
      const box = node.getBoundingClientRect();
      const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      const bar = document.querySelector('header.top').getBoundingClientRect();
      return {
        name: node.getAttribute('aria-label') ?? node.textContent?.trim() ?? node.id,
        outline: getComputedStyle(node).outlineStyle,
        covered: box.top < bar.bottom && !node.closest('header.top') && getComputedStyle(document.querySelector('header.top')).position === 'sticky',
        there: Boolean(top),
      };
    });
    if (!at) break;
    assert.equal(at.outline, 'solid', `focus on ${at.name} cannot be seen`);
    assert.ok(!at.covered, `${at.name} is covered by the header`);
    seen.add(at.name);
  }
  for (const name of ['Move NSE:RELIANCE up', 'Remove NSE:TCS', '3m']) assert.ok(seen.has(name), `${name} of ${[...seen].join(', ')}`);
  await page.getByRole('link', { name: 'Signals' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Signals', level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  assert.equal(await page.title(), 'Signals · bhav');
  await until('signals', async () => (await page.getByRole('row').count()) > 5);
  await page.getByRole('button', { name: 'Confidence' }).first().focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.getByRole('columnheader', { name: 'Confidence' }).first().getAttribute('aria-sort'), 'descending');
  await context.close();
});
