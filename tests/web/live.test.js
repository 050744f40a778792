// W8, W9, W10, W12: the page's messages when the market, the network or the device's clock do not
// behave.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PAGES, open, scene, until, visit } from './support.js';

// A public provider that is only two minutes behind passes broker A's last prices soon. Pushed prices
// would go on while broker A refuses calls.
const stage = scene({ BHAV_SIM_PUBLIC_DELAY_S: '120', BHAV_BROKERA_TICKER: 'false' });

const banner = (page) => page.locator('#banner').innerText();
const strip = (page) => page.locator('#strip').innerText();

test('every price of the simulator says so, on every page that shows one', async () => {
  const { page, context } = await open(stage.browser);
  for (const path of PAGES) {
    await visit(page, stage.demo.base + path);
    await page.locator('#strip .mark.simulated').waitFor();
  }
  for (const path of ['/', '/watch', '/signals']) {
    await visit(page, stage.demo.base + path);
    await page.locator('main .mark.simulated').first().waitFor();
  }
  await visit(page, `${stage.demo.base}/`);
  const list = await (await fetch(`${stage.demo.base}/api/signals`)).json();
  const words = () => page.locator('main').innerText();
  await until('meaning and disclaimer, word by word', async () => (await words()).includes(list.meaning) && (await words()).includes(list.disclaimer));
  assert.doesNotMatch(await words(), /\b(buy|sell)\b/i);
  await context.close();
});

test('changed cells flash, but not for who wants no motion', async () => {
  for (const [reducedMotion, expected] of [['reduce', 'none'], ['no-preference', 'flash']]) {
    const { page, context } = await open(stage.browser, { reducedMotion });
    await visit(page, `${stage.demo.base}/watch`);
    await page.locator('td.flash').first().waitFor();
    assert.equal(await page.locator('td.flash').first().evaluate((cell) => getComputedStyle(cell).animationName), expected);
    await context.close();
  }
});

test('a frozen page stands still, and moves on afterwards', async () => {
  const { page, context } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/watch`);
  await until('a price', async () => /\d,\d{3}\.\d\d/.test(await page.locator('main').innerText()));
  await page.getByRole('button', { name: 'Freeze' }).click();
  await page.getByText(/Frozen at/).waitFor();
  const whole = () => page.locator('body').innerText();
  const before = await whole();
  await page.waitForTimeout(5_000);
  assert.equal(await whole(), before);
  await page.getByRole('button', { name: 'Freeze' }).click();
  await until('a change', async () => (await whole()) !== before);
  await context.close();
});

test('a device whose clock is a day ahead shows the same ages', async () => {
  const { page, context } = await open(stage.browser);
  await context.addInitScript(() => {
    const real = Date;
    // eslint-disable-next-line no-global-assign
    Date = class extends real {
      constructor(...given) { super(...(given.length ? given : [real.now() + 86_400_000])); }
      static now() { return real.now() + 86_400_000; }
    };
  });
  await visit(page, `${stage.demo.base}/`);
  await until('prices', async () => /data \d\d:\d\d:\d\d IST/.test(await strip(page)));
  assert.doesNotMatch(await strip(page), /Delayed|Stale/);
  await context.close();
});

test('a refused stream is replaced by polling, and comes back', async () => {
  const { page, context } = await open(stage.browser);
  let refused = true;
  await page.route('**/api/index/stream*', (route) => (refused ? route.fulfill({ status: 503, body: '{}', contentType: 'application/problem+json' }) : route.continue()));
  await visit(page, `${stage.demo.base}/`);
  await until('polling', async () => (await strip(page)).includes('Every 15 s'));
  refused = false;
  await until('the stream', async () => (await strip(page)).includes('Live'));
  await context.close();
});

/** Makes a page believe that its tab is hidden, or shown again. */
const setHidden = (page, hidden) => page.evaluate((state) => {
  Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });
  document.dispatchEvent(new Event('visibilitychange'));
}, hidden ? 'hidden' : 'visible');

test('a hidden tab gives its stream back, and takes one when it is looked at again', async () => {
  await until('no other stream', async () => (await stage.demo.openStreams()) === 0);
  const { page, context } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  await until('a stream', async () => (await stage.demo.openStreams()) === 1);
  await setHidden(page, true);
  await until('its end', async () => (await stage.demo.openStreams()) === 0);
  await setHidden(page, false);
  await until('a stream again', async () => (await stage.demo.openStreams()) === 1);
  await until('prices', async () => (await strip(page)).includes('Live'));
  await context.close();
});

test('eight tabs, opened one after the other, all get their answers', async () => {
  // A browser has six connections to a service for all its tabs together.
  const context = await stage.browser.newContext();
  const tabs = [];
  for (let n = 0; n < 8; n += 1) {
    const page = await context.newPage();
    await visit(page, `${stage.demo.base}/watch`);
    await until(`the stream of tab ${n + 1}`, async () => (await strip(page)).includes('Live'));
    for (const other of tabs) await setHidden(other, true);
    tabs.push(page);
  }
  const answers = await Promise.all(tabs.map((page) => page.evaluate(async () => (await fetch('/api/health', { signal: AbortSignal.timeout(20_000) })).status)));
  assert.deepEqual(answers, Array(8).fill(200));
  await context.close();
});

test('a dead line is said within a minute, and the page recovers by itself', async () => {
  const { page, context } = await open(stage.browser);
  await visit(page, `${stage.demo.base}/`);
  await until('prices', async () => (await strip(page)).includes('Live'));
  stage.demo.pause();
  try {
    await until('the banner', async () => /No connection|run behind/.test(await banner(page)), 75_000);
  } finally {
    stage.demo.resume();
  }
  await until('the end of the banner', async () => !(await page.locator('#banner').isVisible()), 90_000);
  assert.match(await strip(page), /Live|Every 15 s/);
  await context.close();
});

/** Records when something was announced to a screen reader. */
const listen = (page) => page.evaluate(() => {
  window.announced = [];
  new MutationObserver(() => window.announced.push({ at: performance.now(), words: document.querySelector('#announce').textContent }))
    .observe(document.querySelector('#announce'), { childList: true, characterData: true, subtree: true });
});

for (const kind of ['refuse', 'mute_price']) {
  test(`when broker A meets ${kind}, prices are never shown as current`, async () => {
    const { page, context } = await open(stage.browser);
    await visit(page, `${stage.demo.base}/`);
    await until('prices', async () => (await strip(page)).includes('data'));
    await listen(page);
    await stage.demo.fault('broker_a', kind);
    try {
      await until('the banner', async () => /stale|run behind/.test(await banner(page)), 60_000);
      await until('a word on their age', async () => /Stale, from|Delayed/.test(await strip(page)), 10_000);
      await until('the same beside the price', async () => /Stale, from|Delayed/.test(await page.locator('.card .state').first().innerText()), 10_000);
      await until('the delay of the public provider', async () => /Delayed \d+ min/.test(await strip(page)), 240_000);
    } finally {
      await stage.demo.mend();
    }
    await until('current prices', async () => !/Stale|Delayed/.test(await strip(page)), 180_000);
    // A sentence a minute at most, and never a price.
    const announced = await page.evaluate(() => window.announced);
    assert.ok(announced.length > 0);
    announced.forEach(({ at, words }, n) => {
      assert.ok(n === 0 || at - announced[n - 1].at >= 59_000, JSON.stringify(announced));
      assert.doesNotMatch(words, /\d,\d{3}\.\d\d/);
    });
    await context.close();
  });
}
