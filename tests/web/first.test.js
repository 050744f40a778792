// The first minute: what a stranger sees of a demo that has just begun, at any size of letters.
import assert from 'node:assert/strict';
import test, { after, before } from 'node:test';
import { check } from './axe.js';
import { launch, open, PAGES, startDemo, until, visit } from './support.js';

/** @type {any} */
let demo;
/** @type {any} */
let browser;
before(async () => {
  browser = await launch();
  demo = await startDemo({}, { isAwaited: false });
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

const lookAround = async (page, name = 'Asha') => {
  await page.goto(`${demo.base}/login`);
  await page.getByRole('button', { name: `Look around as ${name}` }).click();
  await page.waitForURL('**/portfolio');
};

test('what is being made says so, comes by itself, and is no error in the console', async () => {
  const pages = await Promise.all(['/', '/signals', '/s/NSE:INFY'].map(async (path) => {
    const its = await open(browser);
    await its.page.goto(demo.base + path, { waitUntil: 'commit' });
    return its;
  }));
  for (const { page, context, faults } of pages) {
    // Never the words of what is not there.
    await until('the list', async () => {
      const words = await page.locator('main').innerText();
      assert.doesNotMatch(words, /No signals|No signal of the last date|no signals, and none|No candles are kept|No signal has been judged/);
      return /points|Against usual|usual [0-9]|Nobody|Chance/.test(words);
    });
    // The record was asked for when there was none.
    if (page.url().endsWith('/signals')) await page.getByText(/^Since \d+ \w+ \d{4}, \d+ dates with a list/).waitFor();
    assert.deepEqual(faults, []);
    await context.close();
  }
  const { page, context } = await open(browser);
  await page.goto(`${demo.base}/s/NSE:INFY`);
  await page.locator('.stage svg').first().waitFor();
  await context.close();
});

test('that the market is closed is not said before it is known', async () => {
  const { page, context } = await open(browser);
  await page.route('**/api/index/**', () => {});
  await page.route('**/api/market/movers', (route) => route.fulfill({ json: { day: null, shares: 50, priced: 0, advances: 0, declines: 0, unchanged: 0, gainers: [], losers: [] } }));
  await page.goto(`${demo.base}/`, { waitUntil: 'commit' });
  await page.getByText('No share has a price of this day yet.').waitFor();
  await context.close();
});

test('a service that has only just started is not down, and is asked again soon', async () => {
  const { page, context } = await open(browser);
  let asked = 0;
  await page.route('**/api/health', async (route) => {
    if (++asked > 1) { await route.fallback(); return; }
    const health = await (await route.fetch()).json();
    const nothing = Object.fromEntries(Object.entries(health.day).map(([name, states]) => [name, /_/.test(name) && name !== 'broker_a' ? states : states.replace(/[odx]/g, '-')]));
    const starting = { name: 'starting', severity: 'down', cause: 'The service has only just started', cure: 'ask again in a few seconds', since_ist: health.day.ends_ist };
    await route.fulfill({ status: 503, json: { ...health, status: 'down', troubles: [starting], day: nothing } });
  });
  await visit(page, `${demo.base}/status`);
  assert.match(await page.locator('.state-line').innerText(), /Starting/);
  assert.equal(await page.getByText('not known yet').count(), 5);
  await page.getByText('Everything works').waitFor({ timeout: 8_000 });
  assert.equal(await page.getByText('not known yet').count(), 0);
  await context.close();
});

test('one press leads into a portfolio with a past', async () => {
  const { page, context, faults } = await open(browser);
  await lookAround(page);
  await visit(page, `${demo.base}/trend`);
  await page.getByRole('button', { name: '1Y' }).click();
  await until('a year', async () => /Nov 2025/.test(await page.locator('.sentence').innerText()));
  await visit(page, `${demo.base}/journal`);
  await page.getByText('40 entries').waitFor();
  // A ticker of two letters is wide enough for a finger.
  await page.locator('a.symbol', { hasText: /^LT$/ }).first().waitFor();
  await page.setViewportSize({ width: 390, height: 844 });
  await check(page, 'the journal on a phone');
  await visit(page, `${demo.base}/watch`);
  for (const name of ['Large companies', 'Banks', 'To look at']) await page.getByRole('button', { name }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test('who logs out in one tab is logged out in all of them', async () => {
  const { page, context } = await open(browser);
  await lookAround(page, 'Ravi');
  const other = await context.newPage();
  await visit(other, `${demo.base}/trend`);
  await visit(page, `${demo.base}/account`);
  await page.getByRole('button', { name: 'Log out', exact: true }).click();
  await other.getByLabel('Password', { exact: true }).waitFor();
  assert.doesNotMatch(await other.locator('main').innerText(), /₹/);
  await context.close();
});

test('a symbol that no list has is said to be none', async () => {
  const { page, context } = await open(browser);
  await page.goto(`${demo.base}/s/NSE:NOSUCHSHARE`);
  await page.getByRole('heading', { name: 'There is no such symbol' }).waitFor();
  assert.equal(await page.getByRole('button', { name: /Watch/ }).count(), 0);
  await context.close();
});

/** Text spacing of WCAG 1.4.12, set as a user's own sheet would. */
const SPACED = '* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important; }';
const SIZES = [
  { name: '320 px', viewport: { width: 320, height: 700 } },
  { name: '390 px with letters of 24 px', viewport: { width: 390, height: 844 }, root: 24 },
  { name: '390 px with wide spacing', viewport: { width: 390, height: 844 }, sheet: SPACED },
  { name: '400 % zoom', viewport: { width: 320, height: 256 } },
];
for (const { name, viewport, root, sheet } of SIZES)
  test(`no figure is cut and nothing scrolls sideways: ${name}`, async () => {
    const { page, context } = await open(browser, { viewport });
    await page.addInitScript(({ root, sheet }) => {
      const set = () => {
        if (root) document.documentElement.style.fontSize = `${root}px`;
        if (!sheet) return;
        const own = new CSSStyleSheet();
        own.replaceSync(sheet);
        document.adoptedStyleSheets = [own];
      };
      new MutationObserver((_, watch) => {
        if (!document.documentElement) return;
        watch.disconnect();
        set();
      }).observe(document, { childList: true });
    }, { root, sheet });
    await lookAround(page);
    const bad = [];
    for (const path of PAGES.filter((path) => path !== '/login')) {
      await visit(page, demo.base + path);
      await page.waitForTimeout(300);
      const found = await page.evaluate(() => {
        const cut = [...document.querySelectorAll('main *')].filter((node) =>
          /\d/.test(node.textContent ?? '') && node.clientWidth > 2 && node.scrollWidth > node.clientWidth + 1 &&
          getComputedStyle(node).overflowX !== 'visible' && !node.matches('.company, [data-at=a], .sub'));
        return { wide: document.documentElement.scrollWidth - innerWidth, cut: cut.map((node) => node.textContent?.slice(0, 30)) };
      });
      if (found.wide > 0 || found.cut.length) bad.push(`${path}: ${JSON.stringify(found)}`);
    }
    assert.deepEqual(bad, []);
    await context.close();
  });
