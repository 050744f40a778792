// What the pages say while the service, its prices or the line to it are away: what is known, and no more.
import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { test } from 'node:test';
import { open, scene, until, userOf, visit } from './support.js';

/** @type {any} */
let state;
const stage = scene({}, async (shared) => { state = await userOf(shared, ['a']); });

const strip = (page) => page.locator('#strip').innerText();
const banner = (page) => page.locator('#banner').innerText();
const mainOf = (page) => page.locator('main').innerText();

/** A proxy before the service. `behave` may answer by itself, by returning true. */
async function proxy(behave = () => false) {
  const sockets = new Set();
  const server = createServer((asked, answer) => {
    if (behave(asked, answer)) return;
    const on = request(`${stage.demo.base}${asked.url}`, { method: asked.method, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      if (behave.holds?.(asked)) answer.flushHeaders();
      else got.pipe(answer);
    });
    on.on('error', () => answer.destroy());
    asked.pipe(on);
  });
  server.on('connection', (socket) => { sockets.add(socket); socket.on('close', () => sockets.delete(socket)); });
  const listen = (port) => new Promise((resolve) => { server.listen(port, '127.0.0.1', resolve); });
  await listen(0);
  const { port } = server.address();
  const close = () => new Promise((resolve) => { server.close(resolve); for (const socket of sockets) socket.destroy(); });
  return { base: `http://127.0.0.1:${port}`, close, again: () => listen(port) };
}

/** The cookies of a session, for the proxy's address. */
const sessionAt = (base) => ({ ...state, cookies: state.cookies.map((cookie) => ({ ...cookie, domain: new URL(base).hostname })) });

test('a 503 that is not the service’s own says on every page that the service does not answer', async () => {
  const away = { title: 'Service Unavailable', status: 503 };
  const front = await proxy((asked, answer) => {
    if (!/^\/(api|brokera|brokerb)\//.test(asked.url)) return false;
    answer.writeHead(503, { 'Content-Type': 'application/problem+json' });
    answer.end(JSON.stringify(away));
    return true;
  });
  const { page, context } = await open(stage.browser, { storageState: sessionAt(front.base) });
  await page.goto(`${front.base}/status`);
  await page.getByText('The service does not answer').first().waitFor();
  await until('no connection', async () => (await strip(page)).includes('No connection'));
  await page.waitForTimeout(3_500); // a poll of the snapshot more
  assert.doesNotMatch(await page.locator('body').innerText(), /NaN|undefined|Every 15 s/);
  assert.equal(await page.locator('main .skeleton').count(), 0);
  for (const path of ['/portfolio', '/trend', '/journal', '/account', '/portfolio/sync/a']) {
    await page.goto(front.base + path);
    await page.locator('main').getByText('The service does not answer').waitFor();
    assert.equal(await page.locator('main h1').count(), 1, path);
  }
  await page.goto(`${front.base}/login`);
  await page.getByLabel('E-mail').waitFor();
  assert.doesNotMatch(await mainOf(page), /New accounts are closed/);
  await page.goto(`${front.base}/signals`);
  await page.locator('main').getByText('The service does not answer').waitFor();
  await context.close();
  await front.close();
});

test('a line is live once something has come over it, and polled until then', async () => {
  const behave = () => false;
  behave.holds = (asked) => asked.url.startsWith('/api/index/stream');
  const front = await proxy(behave);
  const { page, context } = await open(stage.browser);
  await page.addInitScript(() => {
    window.lines = [];
    const look = () => { const words = document.querySelector('#strip .line')?.textContent; if (words && words !== window.lines.at(-1)) window.lines.push(words); };
    new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
  });
  await page.goto(front.base);
  // The first poll comes after three seconds, not after the stream has been silent for 45.
  await until('the first price', async () => /data \d\d:/.test(await strip(page)), 20_000);
  assert.ok(!(await page.evaluate(() => window.lines)).includes('Live'));
  await context.close();
  await front.close();
});

test('a refused connection is said within ten seconds, and the words stay while it lasts', async () => {
  const front = await proxy();
  const { page, context } = await open(stage.browser);
  await visit(page, front.base);
  await until('the stream', async () => (await strip(page)).includes('Live'));
  await front.close();
  await until('the words', async () => (await strip(page)).includes('No connection') && (await banner(page)).includes('No connection'), 10_000);
  assert.equal(await page.locator('#strip').getAttribute('data-line'), 'lost');
  const seen = await page.evaluate(() => new Promise((resolve) => {
    const found = new Set();
    const watch = new MutationObserver(() => found.add(document.querySelector('#strip .line').textContent));
    watch.observe(document.querySelector('#strip .line'), { childList: true, characterData: true, subtree: true });
    setTimeout(() => { watch.disconnect(); resolve([...found]); }, 18_000);
  }));
  assert.deepEqual(seen.filter((words) => words !== 'No connection'), [], 'the words while polls fail');
  await front.again();
  await until('the stream again', async () => (await strip(page)).includes('Live'), 150_000);
  await context.close();
  await front.close();
});

test('without any price the pages say since when and why, and lead to the status', async () => {
  const health = await (await fetch(`${stage.demo.base}/api/health`)).json();
  const { page, context } = await open(stage.browser);
  const problem = { type: 'about:blank', title: 'Service Unavailable', status: 503, code: 'snapshot_not_ready', detail: 'There are no prices yet.' };
  await page.route('**/api/index/*', (route) => route.fulfill({ status: 503, contentType: 'application/problem+json', json: problem }));
  await page.route('**/api/health', (route) => route.fulfill({ status: 503, json: {
    ...health, status: 'down', uptime_s: 485, market: { ...health.market, as_of_ist: null },
    feeds: { broker_a: { ...health.feeds.broker_a, state: 'off' }, public: { ...health.feeds.public, state: 'failing' } },
    backup: { failed: false, succeeded_ist: null },
  } }));
  for (const path of ['/', '/watch', '/signals']) {
    await page.goto(stage.demo.base + path);
    await page.locator('#banner').getByText('No prices for 8 min: the public provider does not answer.').waitFor();
  }
  await page.locator('#banner').getByRole('link', { name: 'Status' }).click();
  await page.getByRole('heading', { name: 'Status', level: 1 }).waitFor();
  const row = (name) => page.locator('.rows > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) });
  await row('Snapshot').getByText('no prices yet').waitFor();
  // Grey is what is neither good nor bad.
  for (const name of ['Broker A', 'Backup']) assert.equal(await row(name).getAttribute('class'), 'neutral', name);
  assert.equal(await row('Snapshot').getAttribute('class'), 'bad');
  await context.close();
});

// The last one: it breaks broker A.
test('the lines that the demo prints lead to stale prices on the page', async () => {
  const printed = [...stage.demo.log().matchAll(/curl -s -d '(\{.*\})' (http:\S+)/g)];
  assert.ok(printed.length >= 2, stage.demo.log());
  const { page, context } = await open(stage.browser);
  await visit(page, stage.demo.base);
  await until('prices', async () => (await strip(page)).includes('Live'));
  for (const [, body, url] of printed) assert.equal((await fetch(url, { method: 'POST', body })).ok, true);
  await until('the word', async () => /Stale, from/.test(await strip(page)), 30_000);
  await context.close();
  await stage.demo.mend();
});
