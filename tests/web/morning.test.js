// The morning in one place: which broker is to be synced, what the last close brought, what is stale. An ordinary day,
// on which both were synced, is a line.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, scene, until, userOf, visit } from './support.js';

const NOW = '2026-11-20T11:00:00+05:30';
/** @type {any} */
let state;
const stage = scene({ BHAV_NOW: NOW }, async (shared) => { state = await userOf(shared, ['a', 'b']); });

/** The page as of a morning: both brokers were synced on the day before, and a price stands since its close. */
async function ofMorning(page, change) {
  await page.route('**/api/portfolio/holdings?*', async (route) => {
    const answer = await route.fetch();
    const json = await answer.json();
    change(json);
    await route.fulfill({ response: answer, json });
  });
}

const yesterday = ({ summary, holdings }) => {
  summary.synced = { a: '2026-11-19T15:40:00+05:30', b: '2026-11-18T09:20:00+05:30' };
  Object.assign(holdings[0], { stale: true, as_of: '2026-11-19T15:30:00+05:30' });
  Object.assign(holdings[1], { corporate_action: true });
};

for (const width of [390, 1280]) {
  test(`a morning says what is to be done, at ${width} px, and nothing jumps`, async () => {
    const { page, context, faults } = await open(stage.browser, { storageState: state, viewport: { width, height: 844 } });
    await context.addInitScript(() => {
      window.shifts = [];
      new PerformanceObserver((list) => {
        for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) window.shifts.push(value);
      }).observe({ type: 'layout-shift', buffered: true });
    });
    await ofMorning(page, yesterday);
    await visit(page, `${stage.demo.base}/portfolio`);
    const lines = page.locator('details.synced li');
    await lines.first().waitFor();
    const words = (await lines.allInnerTexts()).join('\n');
    assert.match(words, /Broker A was last synced 19 Nov, 15:40\. Broker B was last synced 18 Nov, 09:20\./);
    assert.match(words, /\d+ new signals? on what you hold, from the close of 19 Nov 2026: [A-Z&-]+/);
    assert.match(words, /1 holding may have been split or given a bonus over night: [A-Z&-]+\./);
    assert.match(words, /The price of 1 holding is stale, the oldest of 19 Nov, 15:30\./);
    const shifts = await page.evaluate(() => window.shifts.reduce((sum, value) => sum + value, 0));
    assert.ok(shifts < 0.01, String(shifts));
    // The first of two logins leads on to the second.
    await page.getByRole('link', { name: 'Sync both (2 logins)' }).click();
    await page.getByRole('heading', { name: /Sync broker A/ }).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
  });
}

test('one broker of before is named alone', async () => {
  const { page, context } = await open(stage.browser, { storageState: state });
  await ofMorning(page, ({ summary }) => { summary.synced.b = '2026-11-19T15:40:00+05:30'; });
  await visit(page, `${stage.demo.base}/portfolio`);
  const line = page.locator('details.synced li').first();
  await line.getByRole('link', { name: 'Sync broker B' }).waitFor();
  assert.ok(!(await line.innerText()).includes('Broker A'));
  await context.close();
});

test('when all is done it is a line that opens', async () => {
  const { page, context, faults } = await open(stage.browser, { storageState: state });
  await visit(page, `${stage.demo.base}/portfolio`);
  const times = page.locator('details.synced');
  await times.getByText('Broker A synced 11:').waitFor();
  assert.equal(await times.evaluate((node) => node.open), false);
  await times.locator('summary').click();
  await times.getByText('Every broker is synced since the last session began.').waitFor();
  const { signals } = await (await fetch(`${stage.demo.base}/api/signals`)).json();
  const held = await page.evaluate(async () => (await (await fetch('/api/portfolio/holdings')).json()).holdings.map((one) => `${one.exchange}:${one.tradingsymbol}`));
  const count = new Set(signals.map(({ symbol }) => symbol).filter((symbol) => held.includes(symbol))).size;
  assert.ok(count > 0);
  await times.getByText(new RegExp(`^${count} new signals? on what you hold`)).waitFor();
  await until('links', async () => (await times.locator('li a').count()) >= 1);
  assert.deepEqual(faults, []);
  await context.close();
});
