// Watch lists: each change is a function of lists, made anew in what another tab or device left.
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { answers, asked, json, storage } from './browser.js';

const { askSession } = await import('../../../web/data/api.js');
const watched = await import('../../../web/data/watchlists.js');

const list = (id, name, ...symbols) => ({ id, name, symbols });
const ALL = [list(1, 'Own', 'A', 'B', 'C'), list(2, 'Other', 'D')];
const symbolsOf = (lists) => lists?.map(({ symbols }) => symbols.join('')).join(' ') ?? null;
const many = (n) => Array.from({ length: n }, (_, at) => `S${at}`);

/** The service of a user: it has `stored` at a revision, and refuses what was made in another one. */
function service(stored, { id = 7 } = {}) {
  const state = { lists: stored, revision: 1, refusals: 0 };
  const found = () => json(200, { watchlists: state.lists, revision: `r${state.revision}` });
  answers(({ path, method, body, headers }) => {
    if (path === '/api/auth/session') return json(200, { user: id === null ? null : { id }, registration: 'open' });
    if (method === 'GET') return found();
    if (headers['If-Match'] !== `"r${state.revision}"`) {
      state.refusals += 1;
      return json(412, { code: 'precondition_failed', detail: 'changed meanwhile' });
    }
    state.lists = body.watchlists;
    state.revision += 1;
    return found();
  });
  return state;
}

/** Logs in at such a service and reads the lists. */
async function opened(stored, who) {
  const state = service(stored, who);
  await askSession();
  await watched.read();
  return state;
}

beforeEach(() => storage.clear());

test('symbols are added, moved and taken away; what changes nothing is no change', () => {
  assert.equal(symbolsOf(watched.withSymbol(1, 'X')(ALL)), 'ABCX D');
  assert.equal(watched.withSymbol(1, 'A')(ALL), null);
  assert.equal(watched.withSymbol(9, 'X')(ALL), null, 'a list that is gone');
  assert.equal(symbolsOf(watched.withoutSymbol('Other', 'D')(ALL)), 'ABC ');
  assert.equal(watched.withoutSymbol(2, 'A')(ALL), null);
  assert.equal(symbolsOf(watched.withMoved(1, 'A', 'C')(ALL)), 'BCA D');
  assert.equal(symbolsOf(watched.withMoved(1, 'C', 'A')(ALL)), 'CAB D');
  assert.equal(watched.withMoved(1, 'A', 'A')(ALL), null);
  assert.equal(watched.withMoved(1, 'A', 'Z')(ALL), null);
  assert.equal(symbolsOf(ALL), 'ABC D', 'what was given stays as it was');
});

test('lists are made, named, moved and deleted, and the last one stays', () => {
  assert.deepEqual(watched.withList('New')(ALL).at(-1), { name: 'New', symbols: [] });
  assert.equal(watched.withName(1, 'Mine')(ALL)[0].name, 'Mine');
  assert.equal(watched.withName(1, 'Own')(ALL), null);
  assert.equal(symbolsOf(watched.withListMoved(1, 1)(ALL)), 'D ABC');
  assert.equal(watched.withListMoved(1, -1)(ALL), null);
  assert.equal(symbolsOf(watched.withoutList(1)(ALL)), 'D');
  assert.equal(watched.withoutList(2)(ALL.slice(1)), null);
});

test('no list and no number of lists grows beyond what the service takes', () => {
  const full = [list(1, 'Own', ...many(watched.MAX.symbols))];
  assert.ok(watched.isFull(full[0]));
  assert.equal(watched.withSymbol(1, 'X')(full), null);
  const lists = Array.from({ length: watched.MAX.lists }, (_, at) => list(at, `L${at}`));
  assert.equal(watched.withList('One more')(lists), null);
});

test('the browser’s list goes behind the first one, and what has no room into one of its own', () => {
  assert.equal(symbolsOf(watched.withSymbols(['C', 'E'])(ALL)), 'ABCE D');
  const almost = [list(1, 'Own', ...many(watched.MAX.symbols - 1)), list(2, 'This browser’s')];
  const next = watched.withSymbols(['X', 'Y', 'Z'])(almost);
  assert.deepEqual(next.map(({ symbols }) => symbols.length), [watched.MAX.symbols, 0, 2]);
  assert.equal(new Set(next.map(({ name }) => name.toLowerCase())).size, 3, 'of another name');
  // A list that is not stored yet is nobody's choice.
  assert.equal(symbolsOf(watched.withSymbols(['X'])([{ name: 'Own', symbols: ['A'] }])), 'X');
});

test('without a login the list is that of the browser, if that can be read', async () => {
  await opened([], { id: null });
  assert.ok(watched.lists()[0].symbols.includes('NSE:RELIANCE'), 'until it is changed it has a few to begin with');
  const key = watched.keyOf(watched.lists()[0]);
  assert.equal(await watched.change(watched.withSymbol(key, 'NSE:ITC')), true);
  assert.ok(JSON.parse(storage.get('watch')).includes('NSE:ITC'));
  storage.set('watch', '{"somebody": "else"}');
  watched.readOwn();
  assert.ok(watched.lists()[0].symbols.includes('NSE:RELIANCE'));
  storage.set('watch', JSON.stringify(['A', 7, 'B']));
  watched.readOwn();
  assert.equal(symbolsOf(watched.lists()), 'AB');
  assert.equal(asked.filter(({ path }) => path === '/api/watchlists').length, 0);
});

test('a change shows at once, and is stored in the state that it was made in', async () => {
  const state = await opened(ALL);
  const doing = watched.change(watched.withSymbol(1, 'X'));
  assert.equal(symbolsOf(watched.lists()), 'ABCX D', 'before the service has answered');
  assert.equal(symbolsOf(state.lists), 'ABC D');
  assert.equal(await doing, true);
  assert.equal(symbolsOf(state.lists), 'ABCX D');
  assert.equal(await watched.change(watched.withSymbol(1, 'X')), false, 'it is there');
});

test('where another device came first the change is made anew in what that one left', async () => {
  const state = await opened(ALL);
  state.lists = [list(1, 'Own', 'A', 'B', 'C', 'Z'), list(2, 'Other', 'D')];
  state.revision = 5;
  assert.equal(await watched.change(watched.withSymbol(1, 'X')), true);
  assert.equal(symbolsOf(state.lists), 'ABCZX D', 'neither undoes the other');
  assert.equal(state.refusals, 1);
  state.lists = [list(2, 'Other', 'D')];
  state.revision = 9;
  assert.equal(await watched.change(watched.withoutSymbol(1, 'X')), false, 'the list is gone');
  assert.equal(symbolsOf(watched.lists()), 'D');
});

test('two changes are stored one after the other', async () => {
  const state = await opened(ALL);
  await Promise.all([watched.change(watched.withSymbol(1, 'X')), watched.change(watched.withSymbol(1, 'Y'))]);
  assert.equal(symbolsOf(state.lists), 'ABCXY D');
  assert.equal(state.refusals, 0);
});

test('a change that is not stored is taken back, and says why', async () => {
  await opened(ALL);
  answers(() => json(503, { code: 'read_only', detail: 'the database takes no changes' }));
  const doing = watched.change(watched.withSymbol(1, 'X'));
  await assert.rejects(doing, { message: 'The database takes no changes' });
  assert.equal(symbolsOf(watched.lists()), 'ABC D');
});

test('a change is tried again some times, and not for ever', async () => {
  const state = await opened(ALL);
  const { lists } = state;
  answers(({ method }) => (method === 'GET' ? json(200, { watchlists: lists, revision: 'old' }) : json(412, { code: 'precondition_failed', detail: 'changed meanwhile' })));
  await assert.rejects(watched.change(watched.withSymbol(1, 'X')), { code: 'precondition_failed' });
  assert.equal(asked.filter(({ method }) => method === 'PUT').length, 5);
});

test('the browser’s list is offered once to an account that lacks it', async () => {
  storage.set('watch', JSON.stringify(['A', 'Q']));
  await opened(ALL);
  assert.deepEqual(watched.offer(), ['A', 'Q']);
  watched.offered();
  assert.deepEqual(watched.offer(), []);
  storage.clear();
  storage.set('watch', JSON.stringify(['A', 'D']));
  assert.deepEqual(watched.offer(), [], 'the account has them all');
});

test('another user’s lists are read anew, and a name is taken in capitals or not', async () => {
  await opened(ALL);
  assert.ok(watched.isTaken('own', 2) && !watched.isTaken('own', 1) && !watched.isTaken('new', 1));
  await opened([list(5, 'Theirs', 'T')], { id: 8 });
  assert.equal(symbolsOf(watched.lists()), 'T');
  assert.equal(watched.listOf(1), watched.lists()[0], 'a list that is gone is the first');
});
