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

test('the status says what is wrong, since when and what to do, the worst first, and shows the last day', async () => {
  const health = await (await fetch(`${stage.demo.base}/api/health`)).json();
  const { page, context, faults } = await open(stage.browser);
  const at = (minutes) => new Date(Date.parse(health.market.as_of_ist) - minutes * 60_000).toISOString();
  await page.route('**/api/health', (route) => route.fulfill({ json: {
    ...health, status: 'degraded',
    troubles: [
      { name: 'broker_a_token_dead', severity: 'degraded', cause: 'Broker A\u2019s token is dead', cure: 'log in, then run: bhav token a (each day)', command: 'bhav token a', since_ist: at(30), until_ist: at(-15) },
      { name: 'clock_set', severity: 'note', cause: 'The clock was set', cure: 'fine for a demo', since_ist: at(60) },
    ],
    day: { piece_s: 300, ends_ist: at(0), service: 'ooodd', prices: 'ooooo', broker_a: 'oooxx', public: '-----', database: 'ooooo' },
  } }));
  await page.goto(`${stage.demo.base}/status`);
  const wrong = page.locator('.wrong').first();
  await wrong.getByText('Broker A\u2019s token is dead').waitFor();
  assert.match(await wrong.innerText(), /since .* · probably until .*\s+log in, then run: bhav token a \(each day\)/);
  await wrong.getByRole('button', { name: 'Copy: bhav token a' }).waitFor();
  assert.match(await page.locator('.wrong').nth(1).innerText(), /Worth knowing[^]*The clock was set/);
  await page.getByText('Works with restrictions').waitFor();
  const bars = page.locator('.day-rows > div');
  assert.deepEqual(await bars.locator('dd').allInnerTexts(), [
    '10 min with restrictions', 'good for 25 min', '10 min down', 'not in use', 'good for 25 min',
  ]);
  assert.deepEqual(await bars.nth(2).locator('rect').evaluateAll((all) => all.map((one) => one.getAttribute('x'))), ['283', '286']);
  assert.deepEqual(faults, []);
  await context.close();
});

// The last one: it breaks broker A.
test('the lines that the demo prints lead to stale prices on the page', async () => {
  const printed = [...stage.demo.log().matchAll(/curl -s -d '(\{.*\})' (http:\S+)/g)];
  assert.ok(printed.length >= 2, stage.demo.log());
  const { page, context } = await open(stage.browser);
  await visit(page, stage.demo.base);
  await until('prices', async () => (await strip(page)).includes('Live'));
  // As curl sends it.
  const headers = { 'Content-Type': 'application/x-www-form-urlencoded' };
  for (const [, body, url] of printed) assert.equal((await fetch(url, { method: 'POST', headers, body })).ok, true);
  await until('the word', async () => /Stale, from/.test(await strip(page)), 30_000);
  for (const width of [320, 390]) {
    await page.setViewportSize({ width, height: 844 });
    const [marks, end] = await Promise.all(['#strip .marks b:last-child', '#strip .end'].map((part) => page.locator(part).boundingBox()));
    const apart = marks.x + marks.width <= end.x || marks.y + marks.height <= end.y;
    assert.ok(apart, `the marks are over what stands beside them at ${width} px: ${JSON.stringify([marks, end])}`);
  }
  await context.close();
  await stage.demo.mend();
});

/** Answers of a proxy in front that wants a login of its own, in place of the API's. */
const LOGIN_PAGES = {
  'a page instead of the answer': (_asked, answer) => answer.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Sign in</h1>'),
  'sent to its own path': (_asked, answer) => answer.writeHead(302, { Location: '/oauth2/start' }).end(),
  'sent to another site': (_asked, answer) => answer.writeHead(302, { Location: 'http://login.home.localhost:9/' }).end(),
  'sent on with 307': (_asked, answer) => answer.writeHead(307, { Location: 'https://login.example/' }).end(),
  'a page with 401': (_asked, answer) => answer.writeHead(401, { 'Content-Type': 'text/html' }).end('<h1>401</h1>'),
  'a word with 401': (_asked, answer) => answer.writeHead(401, { 'Content-Type': 'text/plain' }).end('Unauthorized'),
  'an empty 401': (_asked, answer) => answer.writeHead(401).end(),
  'a page with 403': (_asked, answer) => answer.writeHead(403, { 'Content-Type': 'text/html; charset=utf-8' }).end('<h1>Access</h1>'),
  'an empty 200': (_asked, answer) => answer.writeHead(200).end(),
  'a 511': (_asked, answer) => answer.writeHead(511, { 'Content-Type': 'text/html' }).end('<h1>Wi-Fi</h1>'),
};

test('a login page that comes in place of an answer is named, and the page goes on once it is gone', async () => {
  let login = null;
  const front = await proxy((asked, answer) => {
    if (!login || !asked.url.startsWith('/api/')) return false;
    login(asked, answer);
    return true;
  });
  for (const [what, answer] of Object.entries(LOGIN_PAGES)) {
    login = answer;
    const { page, context } = await open(stage.browser, { storageState: sessionAt(front.base) });
    await page.goto(`${front.base}/portfolio`);
    await page.locator('main').getByText('A proxy in front of this site wants a login').waitFor();
    await page.locator('#update').getByText('A proxy in front of this site wants a login').waitFor();
    assert.doesNotMatch(await page.locator('body').innerText(), /NaN|undefined/, what);
    login = null;
    await page.locator('#update').getByRole('button', { name: 'Reload' }).click();
    await page.getByText('Holdings').first().waitFor();
    assert.equal(await page.locator('#update').isVisible(), false, what);
    await context.close();
  }
  await front.close();
});

/** The demo under a name below which other services may stand. */
const named = () => stage.demo.base.replace('127.0.0.1', 'bhav.home.localhost');
const cookie = (value, domain = '.home.localhost') => ({ name: 'access_token_cookie', value, domain, path: '/' });

/** A token that a program gets. */
async function tokenOf(action, email) {
  const headers = { 'Content-Type': 'application/json' };
  const body = JSON.stringify({ email, password: 'nine green parrots' });
  const answer = await fetch(`${stage.demo.base}/api/auth/${action}`, { method: 'POST', headers, body });
  return (await answer.json()).access_token;
}

test('a cookie that another service of the domain has set locks nobody out', async () => {
  const { page, context } = await open(stage.browser);
  await context.addCookies([cookie('other.apps.jwt'), { ...cookie('another'), path: '/api' }]);
  await page.goto(`${named()}/portfolio`);
  await tokenOf('register', 'beside@example.com');
  await page.getByLabel('E-mail').fill('beside@example.com');
  await page.getByRole('textbox', { name: 'Password' }).fill('nine green parrots');
  await page.locator('main').getByRole('button', { name: 'Log in' }).click();
  await page.locator('main h1').getByText('Portfolio').waitFor();
  await page.reload();
  await page.locator('main h1').getByText('Portfolio').waitFor();
  assert.equal((await context.cookies(`${named()}/api/journal`)).length, 2 + 1);
  await context.close();
});

test('a login of another account beside it is refused, and the login page says why', async () => {
  const { page, context } = await open(stage.browser);
  await tokenOf('register', 'one@example.com');
  await context.addCookies([cookie(await tokenOf('register', 'two@example.com'))]);
  await page.goto(`${named()}/login`);
  await page.getByText('You are logged in as two@example.com').waitFor();
  await context.addCookies([cookie(await tokenOf('login', 'one@example.com'), 'bhav.home.localhost')]);
  await page.goto(`${named()}/portfolio`);
  await page.getByText('logins of different accounts').waitFor();
  await page.getByLabel('E-mail').fill('one@example.com');
  await page.getByRole('textbox', { name: 'Password' }).fill('nine green parrots');
  await page.locator('main').getByRole('button', { name: 'Log in' }).click();
  await page.locator('form .problem').getByText('access_token_cookie').waitFor();
  await context.close();
});
