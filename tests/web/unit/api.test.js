// What the one module that fetches makes of answers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answers, asked, json } from './browser.js';

// The session is read as a member: what is taken out of the module stays as it was then.
const api = await import('../../../web/data/api.js');
const { Problem, askSession, call, onSession, serverNow, withQuery } = api;

/** The Problem that a call ends in. */
const problemOf = (path, options) => call(path, options).then(assert.fail, (problem) => problem);

test('a query has what is given, encoded', () => {
  assert.equal(withQuery('/api/x', { symbol: 'NSE:M&M', days: 30, cursor: null, tag: '', to: undefined }), '/api/x?symbol=NSE%3AM%26M&days=30');
  assert.equal(withQuery('/api/x', { tag: '' }), '/api/x');
  assert.equal(withQuery('/api/x', { n: 0 }), '/api/x?n=0');
});

test('nothing of a user lies in the cache, and public documents are revalidated', async () => {
  answers(() => json(200, {}));
  for (const path of ['/api/auth/session', '/api/journal/search?limit=1', '/api/watchlists', '/api/portfolio/holdings', '/api/portfolio/live-prices?symbols=A', '/api/signals'])
    await call(path);
  assert.deepEqual(asked.map(({ cache }) => cache), ['no-store', 'no-store', 'no-store', 'no-store', 'no-cache', 'no-cache']);
});

test('what is sent is JSON, with the state that it was made in', async () => {
  answers(() => json(200, { is: 'stored' }));
  assert.deepEqual(await call('/api/x', { method: 'PUT', body: { a: 1 }, ifMatch: 'r7' }), { is: 'stored' });
  const [{ method, headers, body, redirect }] = asked;
  assert.deepEqual([method, headers, body, redirect], ['PUT', { 'Content-Type': 'application/json', 'If-Match': '"r7"' }, { a: 1 }, 'manual']);
});

test('a refusal is a Problem that begins like a sentence', async () => {
  answers(() => json(429, { code: 'rate_limited', detail: 'too many requests', errors: [{ field: 'name', message: 'long' }] }, { 'Retry-After': '47' }));
  const problem = await problemOf('/api/x');
  assert.ok(problem instanceof Problem);
  assert.deepEqual([problem.status, problem.code, problem.message, problem.retryS, problem.passes], [429, 'rate_limited', 'Too many requests', 47, true]);
  assert.deepEqual(problem.errors, [{ field: 'name', message: 'long' }]);
});

test('no answer, and one without words, are told apart', async () => {
  answers(() => { throw new TypeError('failed to fetch'); });
  const none = await problemOf('/api/x');
  assert.deepEqual([none.status, none.code, none.passes], [0, 'offline', true]);
  answers(() => new Response('', { status: 502, headers: { 'Content-Type': 'text/html' } }));
  assert.match((await problemOf('/api/x')).message, /\(502\)/);
  answers(() => json(500, null));
  const unsaid = await problemOf('/api/x');
  assert.match(unsaid.message, /500 without saying why/);
  assert.equal(unsaid.passes, false);
});

test('an answer that is accepted is no problem, whatever its status', async () => {
  answers(() => json(503, { status: 'down' }));
  assert.deepEqual(await call('/api/health', { accept: [503] }), { status: 'down' });
  assert.equal((await problemOf('/api/health')).status, 503);
});

test('who cancels gets what was thrown, and no Problem', async () => {
  const cancel = new AbortController();
  answers(() => { cancel.abort(); throw new DOMException('cancelled', 'AbortError'); });
  const failure = await problemOf('/api/x', { signal: cancel.signal });
  assert.equal(failure.name, 'AbortError');
});

test('a login of a proxy in front is told from an answer, and its end is noticed', async () => {
  answers(() => new Response('<form>', { status: 200, headers: { 'Content-Type': 'text/html' } }));
  assert.equal((await problemOf('/api/x')).code, 'login_in_front');
  assert.equal(api.session.in_front, true);
  answers(() => json(200, {}));
  await call('/api/x');
  assert.equal(api.session.in_front, false);
});

test('the server’s clock is that of the newest answer, and never goes back', async () => {
  const at = (time) => answers(() => json(200, {}, { Date: time }));
  at('Fri, 20 Nov 2026 05:30:00 GMT');
  await call('/api/x');
  const first = Date.parse('2026-11-20T05:30:00Z');
  assert.ok(serverNow() >= first && serverNow() < first + 60_000);
  at('Fri, 20 Nov 2026 04:00:00 GMT');
  await call('/api/x');
  assert.ok(serverNow() >= first, 'an answer out of the cache has an old date');
});

test('the session is told when it changes, and ends where the token has', async () => {
  let told = 0;
  const stop = onSession(() => { told += 1; });
  answers(() => json(200, { user: { id: 7, email: 'a@example.com', name: null }, registration: 'open' }));
  await askSession();
  await askSession();
  assert.equal(told, 1, 'the second answer says the same');
  assert.deepEqual([api.session.user.id, api.session.known, api.session.registration], [7, true, 'open']);
  answers(() => json(401, { code: 'token_invalid', detail: 'log in again' }));
  await problemOf('/api/journal');
  assert.equal(api.session.user, null);
  assert.equal(told, 2);
  stop();
  answers(() => json(200, { user: { id: 8 } }));
  await askSession();
  assert.equal(told, 2, 'who has left is not told');
});
