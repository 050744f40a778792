// W8, W9, W10, W12: what the page says when the market, the network or the device's clock do not
// behave.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, open, startDemo, until, visit } from './support.js';

let demo;
let browser;

before(async () => {
  // A public provider that is only two minutes behind passes broker A's last prices soon. Pushed
  // prices would go on while broker A refuses calls.
  demo = await startDemo({ BHAV_SIM_PUBLIC_DELAY_S: '120', BHAV_BROKERA_TICKER: 'false' });
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await demo?.stop();
});

const banner = (page) => page.locator('#banner').innerText();
const strip = (page) => page.locator('#strip').innerText();

test('every price of the simulator says so, on every page that shows one', async () => {
  const { page, context } = await open(browser);
  for (const path of ['/', '/watch', '/signals', '/status']) {
    await visit(page, demo.base + path);
    await until('the mark', async () => (await page.locator('.mark.simulated').count()) > 0);
  }
  await visit(page, `${demo.base}/`);
  const list = await (await fetch(`${demo.base}/api/signals`)).json();
  const words = () => page.locator('main').innerText();
  await until('meaning and disclaimer, word by word', async () => (await words()).includes(list.meaning) && (await words()).includes(list.disclaimer));
  assert.doesNotMatch(await words(), /\b(buy|sell)\b/i);
  await context.close();
});

test('a frozen page stands still, and moves on afterwards', async () => {
  const { page, context } = await open(browser, { reducedMotion: 'reduce' });
  await visit(page, `${demo.base}/watch`);
  await until('a price', async () => /\d,\d{3}\.\d\d/.test(await page.locator('main').innerText()));
  assert.equal(await page.evaluate(() => getComputedStyle(document.querySelector('td.flash') ?? document.body).animationName), 'none');
  await page.getByRole('button', { name: 'Freeze' }).click();
  await page.getByText(/Frozen at/).waitFor();
  const before_ = await page.locator('main').innerText();
  await page.waitForTimeout(5_000);
  assert.equal(await page.locator('main').innerText(), before_);
  await page.getByRole('button', { name: 'Freeze' }).click();
  await until('a change', async () => (await page.locator('main').innerText()) !== before_);
  await context.close();
});

test('a device whose clock is a day ahead shows the same ages', async () => {
  const { page, context } = await open(browser);
  await context.addInitScript(() => {
    const real = Date;
    // eslint-disable-next-line no-global-assign
    Date = class extends real {
      constructor(...given) { super(...(given.length ? given : [real.now() + 86_400_000])); }
      static now() { return real.now() + 86_400_000; }
    };
  });
  await visit(page, `${demo.base}/`);
  await until('prices', async () => /data \d\d:\d\d:\d\d IST/.test(await strip(page)));
  assert.doesNotMatch(await strip(page), /Delayed|Stale/);
  await context.close();
});

test('a refused stream is replaced by polling, and comes back', async () => {
  const { page, context } = await open(browser);
  let refused = true;
  await page.route('**/api/index/stream*', (route) => (refused ? route.fulfill({ status: 503, body: '{}', contentType: 'application/problem+json' }) : route.continue()));
  await visit(page, `${demo.base}/`);
  await until('polling', async () => (await strip(page)).includes('Every 15 s'));
  refused = false;
  await until('the stream', async () => (await strip(page)).includes('Live'));
  await context.close();
});

test('a dead line is said within a minute, and the page recovers by itself', async () => {
  const { page, context } = await open(browser);
  await visit(page, `${demo.base}/`);
  await until('prices', async () => (await strip(page)).includes('Live'));
  demo.pause();
  try {
    await until('the banner', async () => /No connection|run behind/.test(await banner(page)), 75_000);
  } finally {
    demo.resume();
  }
  await until('the end of the banner', async () => !(await page.locator('#banner').isVisible()), 90_000);
  assert.match(await strip(page), /Live|Every 15 s/);
  await context.close();
});

test('when broker A refuses, prices are never shown as current', async () => {
  const { page, context } = await open(browser);
  await visit(page, `${demo.base}/`);
  await until('prices', async () => (await strip(page)).includes('data'));
  await demo.fault('broker_a', 'refuse');
  try {
    await until('a word on their age', async () => /Stale, from|Delayed/.test(await strip(page)), 60_000);
    await until('the same beside the price', async () => /Stale, from|Delayed/.test(await page.locator('.card .state').first().innerText()), 10_000);
    await until('the delay of the public provider', async () => /Delayed \d+ min/.test(await strip(page)), 240_000);
  } finally {
    await demo.mend();
  }
  await until('current prices', async () => !/Stale|Delayed/.test(await strip(page)), 180_000);
  await context.close();
});
