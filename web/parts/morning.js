// The morning of a portfolio: which broker is to be synced, what the last close brought, and what is stale.
import { call, serverNow } from '../data/api.js';
import { day, moments } from '../data/format.js';
import { morning as t } from '../text/morning.js';
import { portfolio as p } from '../text/portfolio.js';
import { h, memo, pathOf, put } from './view.js';

/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */
/** @typedef {Holdings['holdings'][number]} Holding */

/** Most names in a line. */
const NAMED = 3;

/**
 * Tells it; returns what tells it anew. While signals cannot be read the rest is told without them.
 * @param {HTMLElement} into
 * @param {{ answer: Holdings | null }} state
 * @param {(summary: Holdings['summary']) => ('a' | 'b')[]} oldOf
 */
export async function showMorning(into, state, oldOf) {
  const list = await call('/api/signals').catch(() => null);
  const draw = () => state.answer && drawMorning(into, state.answer, list, oldOf(state.answer.summary));
  draw();
  return draw;
}

/**
 * The lines. `old` are the brokers that are to be synced.
 * @param {HTMLElement} into
 * @param {Holdings} answer
 * @param {Answer<'/api/signals'> | null} list
 * @param {('a' | 'b')[]} old
 */
function drawMorning(into, answer, list, old) {
  const { holdings, summary } = answer;
  const stale = holdings.filter((one) => one.stale && one.as_of);
  const oldest = stale.map((one) => String(one.as_of)).sort()[0];
  const acted = holdings.filter((one) => one.corporate_action);
  const held = new Set(holdings.map(symbolOf));
  const found = [...new Set((list?.signals ?? []).map(({ symbol }) => symbol))].filter((symbol) => held.has(symbol));
  const shown = [old, summary.synced, found, list?.as_of, stale.length, oldest, acted.map(symbolOf)];
  memo(into, shown, () =>
    put(into, [
      syncLine(old, summary.synced),
      list && signalLine(found, list.as_of),
      acted.length > 0 && h('li', null, t.actions(acted.length), named(acted.map(symbolOf)), '.'),
      h(
        'li',
        null,
        stale.length ? t.stale(stale.length, moments(oldest, serverNow())) : t.fresh,
        stale.length > 0 && [' ', h('a', { href: '/status' }, t.status)],
      ),
    ]),
  );
}

/** @param {Holding} one */
const symbolOf = (one) => `${one.exchange}:${one.tradingsymbol}`;

/** @param {string[]} symbols */
const named = (symbols) => [
  symbols.slice(0, NAMED).flatMap((symbol, at) => [at > 0 && ', ', h('a', { href: pathOf(symbol) }, symbol.split(':')[1])]),
  symbols.length > NAMED && t.more(symbols.length - NAMED),
].flat();

/** @param {('a' | 'b')[]} old @param {Holdings['summary']['synced']} synced */
function syncLine(old, synced) {
  if (old.length === 0) return h('li', null, t.synced);
  const words = old.map((name) => t.lastSynced(name.toUpperCase(), moments(String(synced[name]), serverNow())));
  const isBoth = old.length > 1;
  const label = isBoth ? t.both : old[0] === 'a' ? p.syncA : p.syncB;
  return h(
    'li',
    null,
    words.join(' '),
    ' ',
    h('a', { class: 'button primary', href: `/portfolio/sync/${old[0]}`, title: isBoth ? t.bothWhy : null }, label),
  );
}

/** @param {string[]} found @param {string | null} asOf */
function signalLine(found, asOf) {
  if (!asOf) return h('li', null, t.signalsLater);
  return h('li', null, found.length ? [t.signals(found.length, day(asOf)), ...named(found), '.'] : t.noSignals(day(asOf)));
}
