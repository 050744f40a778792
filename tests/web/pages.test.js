// W3 to W5: every page, logged in and out: nothing refused, nothing foreign, accessible, and no
// wider than a phone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { check } from './axe.js';
import { PAGES, open, scene, userOf, visit } from './support.js';

const SIZES = { phone: { width: 320, height: 720 }, desk: { width: 1280, height: 900 } };

/** @type {any} */
let state;
// Without the public provider and pushed prices, those of broker A are stale as soon as it refuses.
const stage = scene({ BHAV_PUBLIC_ENABLED: 'false', BHAV_BROKERA_TICKER: 'false' }, async (shared) => { state = await userOf(shared, ['a', 'b']); });

/** Opens every page once and checks it in every size and scheme. */
async function everyPage(name, { storageState, arrive = visit, prepare = async () => {}, ready = async () => {}, expected = () => false } = {}) {
  const { page, context, faults, hosts, violations } = await open(stage.browser, { storageState });
  await prepare(page);
  for (const path of PAGES) {
    await arrive(page, stage.demo.base + path);
    await ready(page, path);
    for (const [size, viewport] of Object.entries(SIZES)) {
      await page.setViewportSize(viewport);
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await check(page, `${path} ${name} ${size} ${colorScheme}`);
      }
      await expectNarrow(page, path);
    }
    assert.deepEqual(await violations(), [], path);
  }
  assert.deepEqual(faults.filter((fault) => !expected(fault)), []);
  assert.deepEqual([...hosts], [stage.demo.base]);
  await context.close();
}

async function expectNarrow(page, path) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  assert.ok(over <= 0, `${path} is ${over} px wider than the window`);
}

test('pages of a guest', () => everyPage('guest'));

test('pages of a user with both brokers', () => everyPage('user', { storageState: state }));

test('pages of a user without anything', async () => everyPage('empty', { storageState: await userOf(stage) }));

test('pages while the service has nothing to say', () => everyPage('503', {
  storageState: state,
  // Parts without data keep waiting: the page is ready once its requests have ended.
  arrive: async (page, url) => {
    await page.goto(url, { waitUntil: 'commit' });
    await page.locator('main h1').first().waitFor({ state: 'attached' });
    await page.locator('#banner').getByText('No prices yet.').waitFor();
  },
  prepare: (page) => page.route(/\/api\/(?!auth\/session)/, (route) => route.fulfill({
    status: 503, contentType: 'application/problem+json', headers: { 'Retry-After': '5' },
    json: { type: 'about:blank', title: 'Service Unavailable', status: 503, code: 'snapshot_not_ready', detail: 'There are no prices yet.' },
  })),
  expected: (fault) => fault.includes('503'),
}));

test('no page is wider than its window, whether tables are tables or cards', async () => {
  const { page, context } = await open(stage.browser, { storageState: state });
  await page.goto(`${stage.demo.base}/journal`);
  const entry = { traded_on: '2026-11-20', symbol: 'NSE:ULTRACEMCO', side: 'sell', quantity: 100000, price: 123456.5, pnl: -1234567.5, strategy: 'Breakout on volume', tags: ['earnings', 'overnight'], notes: 'Sold too early.' };
  const stored = await page.evaluate(async (body) => (await fetch('/api/journal', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).status, entry);
  assert.equal(stored, 201);
  for (const path of PAGES) {
    await visit(page, stage.demo.base + path);
    // On both sides of each width at which something is laid out anew.
    for (const width of [360, 390, 640, 641, 768, 769, 800, 801, 820, 832, 833, 960, 961, 1088, 1089, 1248, 1249]) {
      await page.setViewportSize({ width, height: 900 });
      await expectNarrow(page, `${path} at ${width} px`);
    }
  }
  await context.close();
});

test('every page works at 400 % zoom', async () => {
  // 1280 px at 400 % is 320 px wide and short.
  const { page, context } = await open(stage.browser, { viewport: { width: 320, height: 256 }, deviceScaleFactor: 4, storageState: state });
  for (const path of PAGES) {
    await visit(page, stage.demo.base + path);
    await expectNarrow(page, path);
    // The fixed header leaves room for the page.
    const room = await page.evaluate(() => {
      scrollTo(0, document.documentElement.scrollHeight);
      const bar = document.querySelector('header.top').getBoundingClientRect();
      return innerHeight - Math.max(0, bar.bottom);
    });
    assert.ok(room >= 200, `${path} has ${room} px beside the header`);
  }
  await context.close();
});

// The last one: it breaks broker A for good.
test('pages with stale prices', async () => {
  await stage.demo.fault('broker_a', 'refuse');
  await everyPage('stale', {
    storageState: state,
    ready: (page) => page.locator('#strip .mark.stale').waitFor(),
  });
});
