// W6, W7, W11, W17: from nothing to a portfolio and out again, by mouse and by keyboard.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rupees, signedRupees } from '../../web/data/format.js';
import { PASSWORD, open, register, scene, submitSync, sync, until, userOf, visit } from './support.js';

// At a fixed instant the sums of what was paid are the same to the paisa in every run.
const stage = scene({ BHAV_NOW: '2026-11-20T11:00:00+05:30' });

/** What stands above the holdings. */
const sumsOf = async (page) => (await page.locator('.hero, .totals').allInnerTexts()).join(' ');

/** The API's figures of the portfolio, in the form that the page shows. */
async function shownSums(page) {
  const { summary } = await page.evaluate(async () => (await fetch('/api/portfolio/holdings?live=true')).json());
  return [rupees(summary.total_current_value), rupees(summary.total_invested), signedRupees(summary.total_pnl), signedRupees(summary.day_pnl)];
}

test('a newcomer registers, syncs both brokers, reads the sums, and leaves nothing behind', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  await page.getByRole('link', { name: 'Portfolio' }).click();
  await page.getByRole('button', { name: 'Create an account' }).click();
  await page.getByLabel('E-mail').fill('newcomer@example.com');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('heading', { name: 'Nothing synced yet' }).waitFor();
  for (const which of ['a', 'b']) {
    await page.getByRole('link', { name: `Sync broker ${which.toUpperCase()}` }).first().click();
    await page.getByRole('button', { name: 'Fill them in' }).click();
    const [login] = await Promise.all([context.waitForEvent('page'), page.getByRole('link', { name: /Open the broker/ }).click()]);
    await login.getByText('This page stands in for the broker’s own.').waitFor();
    await login.getByRole('button', { name: 'Log in' }).click();
    // The code comes back to a tab of its own, and to the one where the key was typed.
    const label = which === 'a' ? 'Request token' : 'API session';
    for (const tab of [login, page]) await until('the code', async () => (await tab.getByLabel(label, { exact: true }).inputValue()).length >= 8);
    assert.equal(login.url(), `${stage.demo.base}/portfolio/sync/${which}`);
    await login.close();
    await submitSync(page, which);
  }
  await page.getByRole('link', { name: 'To the portfolio' }).click();
  await page.getByText('Broker A synced').waitFor();
  await until('the demo’s sum', async () => (await sumsOf(page)).includes('₹1,10,83,754.90'));
  // Prices move, so the four figures are compared with an answer of this moment.
  await until('the sums of the API', async () => {
    const shown = await sumsOf(page);
    return (await shownSums(page)).every((sum) => shown.includes(sum));
  });
  assert.match(await sumsOf(page), /₹1,\d\d,\d\d,\d{3}\.\d\d/);
  // The three figures below the value add up to it, to the paisa.
  await until('figures that add up', async () => {
    const paise = async (place) => (await page.locator(place).allInnerTexts()).map((words) => Math.round(Number(words.replace(/[^\d.−]/g, '').replace('−', '-')) * 100));
    const [value] = await paise('.hero .worth');
    const parts = await page.locator('.totals dd').evaluateAll((all) => all.map((one) => one.firstChild.textContent));
    const sum = parts.map((words) => Math.round(Number(words.replace(/[^\d.−]/g, '').replace('−', '-')) * 100)).reduce((a, b) => a + b, 0);
    return parts.length === 3 && value === sum;
  });
  await page.getByRole('button', { name: 'P&L without 2 holdings' }).click();
  await page.locator('#reason').getByText(/P&L excludes 2 holdings whose cost is not known \(₹/).waitFor();
  await page.keyboard.press('Escape');
  // An unknown amount is a dash with its reason, never a zero.
  const unknown = page.getByRole('row', { name: /TRENT/ }).locator('button.why:visible');
  assert.deepEqual([...new Set(await unknown.allInnerTexts())], ['–']);
  await unknown.first().focus();
  await page.keyboard.press('Enter');
  await page.locator('#reason').getByText('The broker does not know what every share cost').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Show them' }).click();
  await page.getByText('2 of 21 holdings').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  // A merged row opens into its parts.
  const row = page.getByRole('row', { name: /RELIANCE/ });
  await row.getByRole('button', { name: 'More of RELIANCE' }).click();
  await page.locator('.parts').getByText('Broker B').waitFor();
  await page.getByRole('radio', { name: 'By broker' }).check();
  assert.equal(await page.getByRole('row', { name: /RELIANCE/ }).count(), 2);
  await page.getByRole('button', { name: 'Positions' }).click();
  await page.getByText(/open positions?, P&L/).waitFor();

  await page.getByRole('button', { name: 'Hide amounts' }).click();
  await page.getByRole('button', { name: 'Holdings', exact: true }).click();
  await until('hidden amounts', async () => !/₹\d/.test(await page.locator('main').innerText()));
  assert.match(await page.locator('main').innerText(), /[+−]\d+\.\d\d %/);
  await page.getByRole('button', { name: 'Hide amounts' }).click();

  await page.reload();
  await page.getByText('Broker A synced').waitFor();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('button', { name: 'Log out', exact: true }).click();
  await page.waitForURL(`${stage.demo.base}/`);
  assert.equal(await page.evaluate(async () => (await fetch('/api/portfolio/holdings')).status), 401);
  await page.goBack();
  await page.getByText('Log in to see this page').waitFor();
  assert.doesNotMatch(await page.locator('main').innerText(), /₹\d/);
  // The refusal that this test itself provoked.
  assert.deepEqual(faults.filter((fault) => !fault.includes('401')), []);
  await context.close();
});

test('a page out of the browser’s memory shows nothing of a login that has ended', async () => {
  const storageState = await userOf(stage, ['a']);
  const { page, context } = await open(stage.browser, { storageState });
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByText('Broker A synced').waitFor();
  // The page's own fetches leave nothing in the browser's cache.
  const kept = await page.evaluate(() => fetch('/api/portfolio/holdings?live=true', { cache: 'only-if-cached', mode: 'same-origin' }).then((answer) => answer.ok, () => false));
  assert.equal(kept, false);
  const elsewhere = await context.newPage();
  await visit(elsewhere, `${stage.demo.base}/account`);
  await elsewhere.getByRole('button', { name: 'Log out', exact: true }).click();
  await elsewhere.waitForURL(`${stage.demo.base}/`);
  // The event of a page that the browser restores from its cache.
  const left = await page.evaluate(() => {
    dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }));
    return document.querySelector('main').innerText;
  });
  assert.doesNotMatch(left, /₹\d/);
  await page.getByText('Log in to see this page').waitFor();
  await context.close();
});

test('credentials are nowhere after a sync: not in storage, address, fields or log', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  const code = await stage.demo.requestToken();
  const greeting = stage.demo.log().length; // which names the simulator's secrets
  // The redirect of the broker's login, from another site.
  await page.goto(`${stage.demo.base}/return/a?request_token=${code}&status=success`, { waitUntil: 'commit' });
  const field = page.getByLabel('Request token', { exact: true });
  await field.waitFor();
  assert.equal(await field.inputValue(), code);
  assert.equal(page.url(), `${stage.demo.base}/portfolio/sync/a`);
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
    assert.ok(!stage.demo.log().slice(greeting).includes(secret), `${secret} in the log`);
  }
  await context.close();
});

test('a waiting sync page takes a code for ten minutes after its own login, and the last one stays', async () => {
  const { page, context } = await open(stage.browser);
  await context.clock.install();
  await register(page, stage.demo.base);
  await visit(page, `${stage.demo.base}/portfolio/sync/a`);
  const field = page.getByLabel('Request token', { exact: true });
  // Messages reach this list after the page.
  await page.evaluate(() => {
    window.came = [];
    new BroadcastChannel('code a').onmessage = ({ data }) => window.came.push(data);
  });
  const other = await context.newPage();
  const bring = async (code) => {
    await other.goto(`${stage.demo.base}/return/a?request_token=${code}`, { waitUntil: 'commit' });
    await until(`${code} in the waiting page`, () => page.evaluate((sought) => window.came.includes(sought), code));
    return field.inputValue();
  };
  assert.equal(await bring('foreign-code'), '', 'nobody has opened a login here');
  await page.getByLabel('API key', { exact: true }).fill('simkeya-1');
  const [login] = await Promise.all([context.waitForEvent('page'), page.getByRole('link', { name: /Open the broker/ }).click()]);
  await login.close();
  assert.equal(await bring('first-code'), 'first-code');
  assert.equal(await bring('second-code'), 'second-code', 'the last one');
  await context.clock.fastForward(601_000);
  assert.equal(await bring('late-code'), 'second-code', 'ten minutes are over');
  await context.close();
});

test('a code of somebody else at the broker asks before it replaces a portfolio', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  await sync(page, stage.demo, 'a', 8);
  const others = async () => (await stage.demo.control('broker_a/request_token', { user_id: 'ZX9998' })).request_token;
  const fill = async (code) => {
    await page.getByLabel('API key', { exact: true }).fill('simkeya-8');
    await page.getByLabel('API secret', { exact: true }).fill('simsecreta');
    await page.getByLabel('Request token', { exact: true }).fill(code);
  };
  await visit(page, `${stage.demo.base}/portfolio/sync/a`);
  const meant = page.getByRole('checkbox', { name: /replaced by that of the other user/ });
  assert.equal(await meant.count(), 0);
  await fill(await others());
  await page.getByRole('button', { name: 'Sync broker A' }).click();
  await page.getByText(/The code is of the user Z\*\*\*8/).waitFor();
  await meant.check();
  // What was typed is gone, since the broker has said whose code it is.
  assert.equal(await page.getByLabel('API secret', { exact: true }).inputValue(), '');
  await until('the sync', async () => {
    await fill(await others());
    await page.getByRole('button', { name: 'Sync broker A' }).click();
    // The broker takes a call a second of a key.
    await page.getByRole('heading', { name: 'Broker A is synced' }).waitFor({ timeout: 3_000 });
    return true;
  });
  await page.getByText('The portfolio of the user ZX9998 at the broker.').waitFor();
  await context.close();
});

test('the trend breaks where a broker came, and positions of an earlier day say so', async () => {
  const storageState = await userOf(stage, ['a']);
  const { page, context, faults } = await open(stage.browser, { storageState });
  const changed = (path, change) => page.route(path, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: change(await answer.json()) });
  });
  await changed('**/api/portfolio/pnl?*', (answer) => {
    const [point] = answer.trend;
    const on = (day, more) => ({ ...point, date: `2026-11-${day}`, source: 'close', ...more });
    const both = { brokers: ['a', 'b'], holdings: 24, total_invested: point.total_invested * 2, total_current_value: point.total_current_value * 2.1 };
    return { ...answer, trend: [on('12', { brokers: null, holdings: null, discrepancies: null }), on('13'), on('16'), on('17', both), on('18', both), on('19', { ...both, suspect: true }), { ...on('20', both), source: 'sync' }] };
  });
  await visit(page, `${stage.demo.base}/trend`);
  const line = page.locator('.line.value');
  await line.waitFor({ state: 'attached' });
  assert.equal((await line.getAttribute('d')).match(/M/g).length, 2);
  await page.getByText('What is in it').click();
  await page.getByText(/unrealised profit of what is held/).waitFor();
  await page.getByText('Show as table').click();
  await page.getByRole('row', { name: /A\+B, 24 holdings/ }).first().waitFor();
  assert.ok(await page.getByText('1 with a doubtful cost').count() > 1);
  assert.equal(await page.getByText('⚠ in doubt').count(), 1, 'of one point alone');
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/trend.png`, fullPage: true });

  await changed('**/api/portfolio/positions?*', (answer) => ({
    positions: answer.positions.map((row) => ({ ...row, date: '2026-11-18', earlier: true })),
    summary: { ...answer.summary, net: { ...answer.summary.net, date: '2026-11-18', synced_at: '2026-11-18T10:30:00+05:30', earlier: answer.summary.net.count } },
  }));
  await visit(page, `${stage.demo.base}/portfolio`);
  await page.getByRole('button', { name: 'Positions' }).click();
  await page.getByText(/As of .*18 Nov/).waitFor();
  await page.getByText('Not of today: sync again.').waitFor();
  assert.ok(await page.locator('.mark', { hasText: /^Of .*18 Nov/ }).count() > 0);
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/positions.png`, fullPage: true });
  assert.deepEqual(faults, []);
  await context.close();
});

test('what can pass leaves key and secret in the form, and what cannot takes them away', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  await visit(page, `${stage.demo.base}/portfolio/sync/a`);
  assert.equal(await page.title(), 'Sync broker A · bhav');
  const fields = ['API key', 'API secret', 'Request token'].map((name) => page.getByLabel(name, { exact: true }));
  const fill = async () => { for (const field of fields) await field.fill('some-value'); };
  const values = () => Promise.all(fields.map((field) => field.inputValue()));
  let status = 0;
  await page.route('**/api/portfolio/sync', (route) => route.fulfill({
    status, contentType: 'application/problem+json',
    json: { type: 'about:blank', title: 'No', status, code: 'upstream', detail: 'broker A wants fewer calls; nothing was changed.' },
  }));
  const press = async () => {
    await page.getByRole('button', { name: 'Sync broker A' }).click();
    // A sentence begins like one.
    await page.getByRole('alert').getByText('Broker A wants fewer calls; nothing was changed.').waitFor();
    await until('the end of it', async () => (await page.locator('form[aria-busy]').count()) === 0);
  };
  for (status of [429, 502, 503, 504]) {
    await fill();
    await press();
    assert.deepEqual(await values(), Array(3).fill('some-value'), String(status));
  }
  for (status of [400, 401, 422]) {
    await fill();
    await press();
    assert.deepEqual(await values(), ['', '', ''], String(status));
  }
  await fill();
  await page.getByRole('link', { name: '← Portfolio' }).click();
  await page.getByRole('heading', { name: 'Nothing synced yet' }).waitFor();
  await visit(page, `${stage.demo.base}/portfolio/sync/b`);
  assert.equal(await page.title(), 'Sync broker B · bhav');
  await context.close();
});

test('a report keeps costs in doubt apart from splits, and the price of an unknown code is of the sync', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  await page.route('**/api/portfolio/sync', async (route) => {
    const answer = await route.fetch();
    const report = await answer.json();
    const row = { exchange: 'NSE', tradingsymbol: 'SPLITTED' };
    await route.fulfill({ response: answer, json: { ...report, suspected_corporate_actions: [{ ...row, reason: 'price_leap' }, { ...row, tradingsymbol: 'DOUBTED', reason: 'broker_discrepancy' }] } });
  });
  await sync(page, stage.demo, 'a');
  await page.getByRole('listitem').filter({ hasText: 'SPLITTED' }).getByText('the price leapt').waitFor();
  await page.getByRole('heading', { name: 'Costs that the broker calls unreliable' }).waitFor();
  assert.equal(await page.getByRole('listitem').filter({ hasText: 'DOUBTED' }).count(), 0);
  // The words on who broker A is have done their work.
  assert.equal(await page.getByText(/any broker that speaks Kite/).count(), 0);
  await sync(page, stage.demo, 'b');
  await visit(page, `${stage.demo.base}/portfolio`);
  const unknown = page.getByRole('row').filter({ has: page.getByRole('button', { name: 'Unknown code' }) }).first();
  await unknown.getByText(/Synced \d\d:\d\d/).waitFor();
  assert.equal(await unknown.getByText('Delayed').count(), 0);
  await context.close();
});

test('broker B may come back by a form from its own site', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  await page.route('http://broker.test/*', (route) => route.fulfill({
    contentType: 'text/html',
    body: `<form method="post" action="${stage.demo.base}/return/b"><input name="API_Session" value="12345678"><button>Go</button></form>`,
  }));
  await page.goto('http://broker.test/login');
  await page.getByRole('button', { name: 'Go' }).click();
  const field = page.getByLabel('API session', { exact: true });
  await field.waitFor();
  assert.equal(await field.inputValue(), '12345678');
  assert.equal(page.url(), `${stage.demo.base}/portfolio/sync/b`);
  await context.close();
});

test('the journal shows what was written as text, and what was deleted comes back by Undo', async () => {
  const { page, context, faults } = await open(stage.browser);
  await register(page, stage.demo.base);
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
  const removes = page.getByRole('button', { name: /Delete INFY/ });
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

test('an empty journal form names every field that it needs, and asks before it throws text away', async () => {
  const { page, context } = await open(stage.browser);
  await register(page, stage.demo.base);
  await page.getByRole('link', { name: 'Journal' }).click();
  await page.getByRole('button', { name: 'New entry' }).click();
  const form = page.locator('form.entry');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('This field is required.').first().waitFor();
  assert.equal(await form.getByText('This field is required.').count(), 3);
  assert.equal(await page.getByText('This is not a number.').count(), 0);
  await form.getByLabel('Notes').fill('A thought.');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Go on writing' }).click();
  assert.equal(await form.getByLabel('Notes').inputValue(), 'A thought.');
  await form.getByLabel('Notes').focus();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Discard it' }).click();
  await until('the form is gone', async () => (await form.count()) === 0);
  // Nothing typed, nothing asked.
  await page.getByRole('button', { name: 'New entry' }).click();
  await form.waitFor();
  await page.keyboard.press('Escape');
  await until('the form is gone again', async () => (await form.count()) === 0);
  await context.close();
});

test('signals are a row for each share, and those below the usual chance are folded', async () => {
  const { page, context, faults } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/signals`);
  const { signals } = await (await fetch(`${stage.demo.base}/api/signals`)).json();
  const above = signals.filter((row) => row.confidence > row.base_rate);
  const shares = new Set(above.map(({ symbol }) => symbol));
  const rows = page.locator('main > div table').first().locator('tbody > tr:not(.details)');
  assert.equal(await rows.count(), shares.size);
  const best = Math.max(...above.map((row) => row.confidence - row.base_rate));
  await rows.first().getByText(`+${(100 * best).toFixed(1)} points`).waitFor();
  const below = page.getByText(`${signals.length - above.length} signals at or below the usual chance`);
  assert.equal(await page.locator('details.below tbody tr:visible').count(), 0);
  await below.click();
  assert.equal(await page.locator('details.below tbody tr:visible').count(), signals.length - above.length);
  // No word of a developer.
  assert.doesNotMatch(await page.locator('main').innerText(), /base_rate|samples\/|`/);
  assert.deepEqual(faults, []);
  await context.close();
});

test('unsaved text survives a login that ended meanwhile', async () => {
  const { page, context } = await open(stage.browser);
  const email = await register(page, stage.demo.base);
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
  const { page, context } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/watch`);
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
  for (const name of ['Move RELIANCE up', 'Remove TCS', 'INFY']) assert.ok(seen.has(name), `${name} of ${[...seen].join(', ')}`);
  await page.getByRole('link', { name: 'Signals' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Signals', level: 1 }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'main');
  assert.equal(await page.title(), 'Signals · bhav');
  await until('signals', async () => (await page.getByRole('row').count()) > 5);
  await page.getByRole('button', { name: 'Chance' }).first().focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.getByRole('columnheader', { name: 'Chance' }).first().getAttribute('aria-sort'), 'descending');
  await context.close();
});
