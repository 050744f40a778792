// Without a connection: the frame of the pages says so and shows no figure; an upgrade replaces it; nothing of a user
// is in it.
import assert from 'node:assert/strict';
import { createServer, request as ask } from 'node:http';
import { after, test } from 'node:test';
import { open, register, scene, until, visit } from './support.js';

/** A price, a percentage, an amount or a time; a scale's `1.5 %` and a name's 50 are none. */
const FIGURE = /\d[.,]\d\d|₹\d|\d:\d\d/;
const NEXT = '0123456789ab';
/** @type {any} */
let front;
const stage = scene({}, async ({ demo }) => { front = await startFront(demo.base); });

/** A proxy before the demo, which can be away, and can show the service as one of another version. */
async function startFront(base) {
  const state = { isAway: false, version: '' };
  const own = /data-version="([0-9a-f]+)"/.exec(await (await fetch(base)).text())[1];
  const server = createServer((from, to) => {
    if (state.isAway) { from.socket.destroy(); return; }
    const path = state.version ? from.url.replace(state.version, own) : from.url;
    const isNamed = state.version && !path.startsWith('/assets/') && !path.includes('/stream');
    const headers = { ...from.headers, ...(isNamed && { 'accept-encoding': 'identity' }) };
    const asked = ask(base + path, { method: from.method, headers }, (answer) => {
      if (!isNamed) { to.writeHead(answer.statusCode, answer.headers); answer.pipe(to); return; }
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => {
        const { 'content-length': _, etag: _tag, ...rest } = answer.headers;
        to.writeHead(answer.statusCode, rest);
        to.end(Buffer.concat(parts).toString().replaceAll(own, state.version));
      });
    });
    asked.on('error', () => to.destroy());
    to.on('close', () => asked.destroy());
    from.pipe(asked);
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', () => resolve(undefined)); });
  const { port } = /** @type {any} */ (server.address());
  return {
    url: `http://127.0.0.1:${port}`,
    own,
    away: (is) => { state.isAway = is; if (is) server.closeAllConnections(); },
    upgrade: (version) => { state.version = version; server.closeAllConnections(); },
    stop: () => { server.closeAllConnections(); server.close(); },
  };
}

after(() => front?.stop());

const opened = () => open(stage.browser, { serviceWorkers: 'allow' });
const shells = (page) => page.evaluate(() => caches.keys());
/** Address and text of all that is kept. */
const kept = (page) => page.evaluate(async () => {
  const found = [];
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) found.push([new URL(request.url).pathname, await (await cache.match(request)).text()]);
  }
  return found;
});
const isKept = (page, version) => until('the kept shell', async () => (await shells(page)).join() === `shell ${version}` && (await kept(page)).some(([path]) => path === '/') && page.evaluate(() => Boolean(navigator.serviceWorker.controller)));

test('without a connection every page says so, shows no figure, and comes back by itself', async () => {
  const { page, context, violations } = await opened();
  await visit(page, `${front.url}/`);
  await until('prices', async () => /\d,\d{3}\.\d\d/.test(await page.locator('main').innerText()));
  await isKept(page, front.own);
  front.away(true);
  try {
    for (const path of ['/', '/watch', '/portfolio', '/s/NSE:INFY', '/status', '/signals']) {
      await page.goto(front.url + path);
      await page.locator('#strip').getByText('No connection').waitFor();
      await page.locator('#banner').getByText('The service does not answer.').waitFor();
      assert.doesNotMatch(await page.locator('body').innerText(), FIGURE, path);
      assert.deepEqual(await violations(), [], path);
    }
    // What is no page is not replaced by one.
    await assert.rejects(page.goto(`${front.url}/api/openapi.json`));
    await assert.rejects(page.goto(`${front.url}/return/a?request_token=x`));
    // The browser's own page about the failure may still be on its way.
    await until('the frame', async () => Boolean(await page.goto(`${front.url}/`)));
  } finally {
    front.away(false);
  }
  await until('prices again', async () => /\d,\d{3}\.\d\d/.test(await page.locator('main').innerText()));
  await context.close();
});

test('an upgrade replaces the kept frame at once', async () => {
  const { page, context } = await opened();
  await visit(page, `${front.url}/`);
  await isKept(page, front.own);
  front.upgrade(NEXT);
  try {
    await visit(page, `${front.url}/`);
    const version = () => page.evaluate(() => document.documentElement.dataset.version);
    assert.equal(await version(), NEXT, 'with a connection it is the new one at the first visit');
    await isKept(page, NEXT);
    front.away(true);
    await page.goto(`${front.url}/`);
    await page.locator('#strip').getByText('No connection').waitFor();
    assert.equal(await version(), NEXT);
  } finally {
    front.away(false);
    front.upgrade('');
  }
  await context.close();
});

test('nothing of a user and no answer of the API is kept, before a logout and after it', async () => {
  const { page, context } = await opened();
  const email = await register(page, front.url);
  await isKept(page, front.own);
  for (const path of ['/', '/watch', '/portfolio', '/account']) await visit(page, front.url + path);
  const expectBare = async () => {
    const found = await kept(page);
    assert.ok(found.length > 10 && found.every(([path]) => path === '/' || path.startsWith(`/assets/${front.own}/`)), String(found.map(([path]) => path)));
    assert.ok(found.every(([, text]) => !text.includes(email)));
  };
  await expectBare();
  await page.getByRole('button', { name: 'Log out', exact: true }).click();
  await page.getByText('You are logged out.').waitFor({ state: 'attached' });
  await expectBare();
  front.away(true);
  try {
    await page.goto(`${front.url}/portfolio`);
    await page.locator('#strip').getByText('No connection').waitFor();
    const words = await page.locator('body').innerText();
    assert.doesNotMatch(words, FIGURE);
    assert.ok(!words.includes('@'));
  } finally {
    front.away(false);
  }
  await context.close();
});
