// The watch lists: those of the account, or without a login the one that this browser keeps. A change shows at once
// and is sent with the state that it was made in. Where another tab or device came first it is made anew in what that
// one left, so no change undoes another.
import { watch as t } from '../text/watch.js';
import { call, session } from './api.js';
import { keep, kept } from './prefs.js';

export const MAX = { lists: 10, symbols: 50, name: 40 };
const PATH = '/api/watchlists';
/** How often a change is made anew before somebody is told. */
const TRIES = 5;
/** The list of who has none. */
const FIRST = ['NSE:NIFTY 50', 'NSE:RELIANCE', 'NSE:HDFCBANK', 'NSE:INFY', 'NSE:TCS'];

/** What makes lists of lists; null where there is nothing to change. @typedef {(lists: List[]) => List[] | null} Edit */

/** Whose they are: a user, or null for this browser's; undefined before any were read. @type {number | null | undefined} */
let owner;
/** As they are stored. @type {{ watchlists: List[], revision: string }} */
let stored = { watchlists: [], revision: '' };
/** What is not stored yet, in order. @type {Edit[]} */
let waiting = [];
/** Requests run one after the other. @type {Promise<unknown>} */
let running = Promise.resolve();

const userOf = () => session.user?.id ?? null;
/** Names a list: its id, or its name. @typedef {number | string | undefined} Key */

/** @type {(symbols: string[]) => List[]} */
const first = (symbols) => [{ name: t.first, symbols }];
/** An account without lists begins with one, which is stored with its first change. */
const base = () => (stored.watchlists.length ? stored.watchlists : first(FIRST));
/** @template Done @param {() => Promise<Done>} work @returns {Promise<Done>} */
const inTurn = (work) => {
  const done = running.then(work);
  running = done.catch(() => {});
  return done;
};

/** The lists with every change of this tab, at least one. @returns {List[]} */
export const lists = () => waiting.reduce((all, edit) => edit(all) ?? all, base());
/** Names a list: by its id, or until it has one by its name. @type {(list: List) => number | string} */
export const keyOf = (list) => list.id ?? list.name;
/** @type {(all: List[], key: Key) => number} */
const placeOf = (all, key) => all.findIndex((list) => list.id === key || list.name === key);
/** @type {(key: Key) => List} */
export const listOf = (key) => lists()[Math.max(0, placeOf(lists(), key))];
/** Another list than `own` has the name, in capitals or not. @type {(name: string, own: Key | null) => boolean} */
export const isTaken = (name, own) =>
  lists().some((list) => keyOf(list) !== own && list.name.toLowerCase() === name.toLowerCase());

/** The list of this browser; null where it was never changed. @returns {string[] | null} */
function browserList() {
  try {
    const list = JSON.parse(kept('watch') ?? 'null');
    if (Array.isArray(list)) return list.filter((name) => typeof name === 'string').slice(0, MAX.symbols);
  } catch {
    /* somebody else's text */
  }
  return null;
}

/** @param {number | null} user @param {typeof stored} found */
function take(user, found) {
  if (owner !== user) waiting = [];
  owner = user;
  stored = found;
}

/** Takes what this browser keeps: nothing is waited for. */
export const readOwn = () => take(null, { watchlists: first(browserList() ?? FIRST), revision: '' });

/** Reads the lists of whoever is logged in. */
export function read() {
  const user = userOf();
  if (user === null) readOwn();
  else
    return inTurn(async () => {
      const found = await call(PATH);
      if (user === userOf()) take(user, found);
    });
  return Promise.resolve();
}

/** Makes a change; whether there was anything to change. Throws the Problem of one that was not stored. @param {Edit} edit */
export function change(edit) {
  if (!edit(lists())) return Promise.resolve(false);
  const of = owner;
  waiting = [...waiting, edit];
  return inTurn(async () => {
    try {
      return of === owner && (await send(edit));
    } finally {
      waiting = waiting.filter((one) => one !== edit);
    }
  });
}

/** @param {Edit} edit */
async function send(edit) {
  for (let tries = 1; ; tries += 1) {
    const next = edit(base());
    if (!next) return false;
    if (owner === null) {
      stored = { ...stored, watchlists: next };
      keep('watch', JSON.stringify(next[0].symbols));
      keep('watch offered', null);
      return true;
    }
    try {
      stored = await call(PATH, { method: 'PUT', body: { watchlists: next }, ifMatch: stored.revision });
      return true;
    } catch (problem) {
      if (problem.code !== 'precondition_failed' || tries === TRIES) throw problem;
      stored = await call(PATH);
    }
  }
}

/** @type {(all: List[], at: number, more: Partial<List>) => List[]} */
const changed = (all, at, more) => all.with(at, { ...all[at], ...more });
/** @type {(key: Key, edit: (symbols: string[]) => string[] | null) => Edit} */
const inList = (key, edit) => (all) => {
  const at = placeOf(all, key);
  const symbols = at < 0 ? null : edit(all[at].symbols);
  return symbols && changed(all, at, { symbols });
};
/** @type {<Item>(items: Item[], from: number, to: number) => Item[]} */
const put = (items, from, to) => items.toSpliced(from, 1).toSpliced(to, 0, items[from]);

/** @type {(list: List) => boolean} */
export const isFull = (list) => list.symbols.length >= MAX.symbols;
/** @type {(key: Key, symbol: string) => Edit} */
export const withSymbol = (key, symbol) =>
  inList(key, (all) => (all.includes(symbol) || all.length >= MAX.symbols ? null : [...all, symbol]));
/** @type {(key: Key, symbol: string) => Edit} */
export const withoutSymbol = (key, symbol) =>
  inList(key, (all) => (all.includes(symbol) ? all.filter((one) => one !== symbol) : null));
/** The symbol comes to where another one stands. @type {(key: Key, symbol: string, other: string) => Edit} */
export const withMoved = (key, symbol, other) =>
  inList(key, (all) => {
    const [from, to] = [all.indexOf(symbol), all.indexOf(other)];
    return from < 0 || to < 0 || from === to ? null : put(all, from, to);
  });
/** @type {(name: string) => Edit} */
export const withList = (name) => (all) => (all.length < MAX.lists ? [...all, { name, symbols: [] }] : null);
/** @type {(key: Key, name: string) => Edit} */
export const withName = (key, name) => (all) => {
  const at = placeOf(all, key);
  return at < 0 || all[at].name === name ? null : changed(all, at, { name });
};
/** @type {(key: Key) => Edit} */
export const withoutList = (key) => (all) => {
  const at = placeOf(all, key);
  return at < 0 || all.length < 2 ? null : all.toSpliced(at, 1);
};
/** @type {(key: Key, by: number) => Edit} */
export const withListMoved = (key, by) => (all) => {
  const at = placeOf(all, key);
  const to = at + by;
  return at < 0 || to < 0 || to >= all.length ? null : put(all, at, to);
};
/** The symbols come behind those of the first list, and what has no room there into a list of their own. @type {(symbols: string[]) => Edit} */
export const withSymbols = (symbols) => (all) => {
  // A list that is not stored yet is nobody's choice.
  const own = all[0].id === undefined ? [] : all[0].symbols;
  const added = symbols.filter((symbol) => !own.includes(symbol));
  const room = MAX.symbols - own.length;
  const next = changed(all, 0, { symbols: [...own, ...added.slice(0, room)] });
  if (added.length <= room) return next;
  const names = all.map(({ name }) => name.toLowerCase());
  const name = [t.browsers, ...all.map((_, at) => `${t.browsers} ${at + 2}`)].find(
    (one) => !names.includes(one.toLowerCase()),
  );
  return all.length < MAX.lists ? [...next, { name: name ?? '', symbols: added.slice(room) }] : null;
};

/** What this browser kept before the login and the account lacks, where it was not offered yet. */
export function offer() {
  if (owner === null || kept('watch offered')) return [];
  const own = browserList() ?? [];
  const known = stored.watchlists.flatMap(({ symbols }) => symbols);
  return own.some((symbol) => !known.includes(symbol)) ? own : [];
}
/** It is offered once, and stays what is shown without a login. */
export const offered = () => keep('watch offered', 'yes');
