// What a page makes of an answer that a proxy in front gives in place of the service's, without a browser.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Problem, call, onSession, session } from '../../../web/data/api.js';
import { text } from '../../../web/text.js';

/** The next answer of the network. */
let next = () => new Response();
const sent = [];
globalThis.fetch = async (path, options) => { sent.push({ path, ...options }); return next(); };

const page = (status, type = 'text/html') => () => new Response('<h1>Log in</h1>', { status, headers: { 'Content-Type': type } });
/** What `redirect: 'manual'` gives a page: nothing of the other site can be read. */
const elsewhere = () => Object.defineProperty(Response.error(), 'type', { value: 'opaqueredirect' });
const json = (status, body) => () => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/problem+json' } });

const LOGINS = {
  'a page with 200': page(200),
  'a redirect to a login': elsewhere,
  'a page with 401': page(401),
  'a word with 401': page(401, 'text/plain'),
  'a page with 403': page(403, 'text/html; charset=utf-8'),
  'a proxy that wants a login itself': page(407),
  'a captive network': page(511),
  'an empty 200': () => new Response(null, { status: 200 }),
};

test('a login page in place of an answer is named, with what to do, and is over with the next answer', async () => {
  const seen = [];
  onSession(() => seen.push(session.in_front));
  for (const [what, answer] of Object.entries(LOGINS)) {
    next = answer;
    await assert.rejects(call('/api/health'), (problem) => {
      assert.ok(problem instanceof Problem, what);
      assert.deepEqual([problem.code, problem.message], ['login_in_front', text.problem.inFront], what);
      return true;
    });
    assert.equal(session.in_front, true, what);
    next = json(200, { status: 'ok' });
    assert.deepEqual(await call('/api/health'), { status: 'ok' }, what);
    assert.equal(session.in_front, false, what);
  }
  assert.equal(seen.length, 2 * Object.keys(LOGINS).length, 'the page is told each time');
  assert.match(text.problem.inFront, /wants a login: load the page again/);
  assert.ok(sent.every((request) => request.redirect === 'manual'), 'no login page is followed');
});

test('a refusal of the service itself, and a proxy that does not reach it, are no login page', async () => {
  for (const [answer, code] of [
    [json(401, { code: 'token_missing', detail: 'Log in first.' }), 'token_missing'],
    [json(403, { code: 'cross_site_request', detail: 'From another site.' }), 'cross_site_request'],
    [page(502), 'unknown'],
    [page(503), 'unknown'],
    [page(404), 'unknown'],
  ]) {
    next = answer;
    await assert.rejects(call('/api/health'), (problem) => problem.code === code);
    assert.equal(session.in_front, false);
  }
  next = () => new Response(null, { status: 204 });
  await call('/api/auth/logout', { method: 'POST' });
  assert.equal(session.in_front, false);
});
