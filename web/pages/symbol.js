// One share or index: its price, its candles, what the user holds of it, its signals, and what was written about it.
import { showCandles } from '../charts/candles.js';
import { call, serverNow, session, withQuery } from '../data/api.js';
import { called, moments, percent, price, signedPrice, time } from '../data/format.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { awaited, soonMs } from '../parts/awaited.js';
import { ageMark, isOpen, known, movedLarge, simulated } from '../parts/figures.js';
import { button, h, memo, pieces, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { symbol as t } from '../text/symbol.js';

const FORM = /^(NSE|BSE):[A-Z0-9&._ -]{1,32}$/;

/** @param {string} path */
const symbolOf = (path) => {
  try {
    return decodeURIComponent(path.slice('/s/'.length));
  } catch {
    return '';
  }
};
/** @param {string} path */
export const title = (path) => symbolOf(path).split(':')[1] || t.unknown;

/** @typedef {ReturnType<typeof lay>} Nodes */

/** @param {Context} context */
export function show({ main, path, announce }) {
  const symbol = symbolOf(path);
  if (!FORM.test(symbol)) {
    put(main, h('h1', null, t.unknown), h('p', null, t.unknownWhy(symbol)));
    return undefined;
  }
  const nodes = lay(main, symbol);
  const { held, signals, written } = nodes;
  const waits = new Set(['held', 'signals']);
  // They come together: one after the other each would push down the next.
  const came = (/** @type {string} */ what) => {
    waits.delete(what);
    if (!waits.size && !held.isConnected) put(nodes.rest, held, signals, written);
  };
  const candles = showCandles(nodes.chart, symbol, {
    loaded: (list) => (showStar(), drawYear(nodes, list)),
    unknown: () => {
      // The first list of a new service has large shares alone: what has a price is there all the same.
      isUnlisted = true;
      drawQuote();
    },
  });
  live.follow([symbol]);
  const ends = [onAppearance(() => own.now())];
  let isOver = false;
  let isUnlisted = false;
  /** What is there can be watched. */
  const showStar = once(() => {
    import('../parts/star.js').then(
      ({ star }) => isOver || ends.push(star(nodes.mark, symbol, announce)),
      () => {},
    );
  });
  const leave = once(() => {
    isOver = true;
    candles.end();
    named.stop();
    listed.stop();
    own.stop();
    for (const end of ends) end();
  });
  const drawQuote = () => {
    const quote = live.valueOf(`quote ${symbol}`);
    if (!quote || isOver) return;
    if (quote.unavailable && isUnlisted) {
      leave();
      put(main, h('h1', null, t.unknown), h('p', null, t.unlisted(symbol)));
      return;
    }
    if (!quote.unavailable) showStar();
    drawPrice(nodes, quote);
    candles.now(quote.unavailable ? null : quote);
  };
  const named = live.repeat(() => drawName(nodes, symbol), 600_000);
  const listed = live.repeat(async () => {
    const againMs = await drawSignals(signals, symbol);
    came('signals');
    return againMs;
  }, 300_000);
  const own = live.repeat(async () => {
    if (session.user) candles.marks(await (await import('../parts/held.js')).showHeld(held, written, symbol));
    else put(held, h('h2', { id: 'held' }, t.held), h('p', { class: 'muted' }, session.known && t.logIn));
    written.hidden = !session.user;
    came('held');
  }, 30_000);
  ends.push(live.on('quotes', drawQuote), live.on('tick', drawQuote));
  return leave;
}

/** Does it the first time only. @param {() => void} run */
function once(run) {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    run();
  };
}

/** Lays out the page. @param {HTMLElement} main @param {string} symbol */
function lay(main, symbol) {
  const [exchange, ticker] = symbol.split(':');
  main.className = 'symbol-page';
  const name = h('p', { class: 'sub' }, exchange);
  const nodes = {
    mark: button(t.watch, null, { 'aria-disabled': 'true', 'aria-label': t.watchOf(called(symbol)) }),
    level: h('p', { class: 'level waiting' }, '\u00a0'),
    moved: h('p', { class: 'change' }),
    state: h('p', { class: 'sub' }),
    today: h('p', { class: 'sub' }),
    year: h('p', { class: 'sub' }),
    chart: h('section', { class: 'candles' }),
    held: h('section', { 'aria-labelledby': 'held' }),
    signals: h('section', { 'aria-labelledby': 'signals' }),
    written: h('section', { 'aria-labelledby': 'written' }),
    rest: h('div', { class: 'rest-of' }, skeleton(8)),
  };
  put(
    main,
    h('div', { class: 'title-row' }, h('div', null, h('h1', null, ticker), name), nodes.mark),
    h('div', { class: 'quote' }, nodes.level, nodes.moved),
    nodes.state,
    nodes.today,
    nodes.year,
    nodes.chart,
    nodes.rest,
  );
  return { ...nodes, name };
}

/** What a year of candles says. @param {Nodes} nodes @param {{ low: number, high: number, volume: number }[]} list */
function drawYear({ held, year }, list) {
  if (list.length === 0) return;
  // An index has no volume, and nobody holds it itself.
  held.hidden = list.every(({ volume }) => !volume);
  const low = Math.min(...list.map((c) => c.low));
  const high = Math.max(...list.map((c) => c.high));
  put(year, pieces([{ text: t.yearOf(price(low), price(high)), title: t.yearNote }]));
}

/** The name in the list of instruments, whose first one has large shares alone. @param {Nodes} nodes @param {string} symbol */
async function drawName({ name }, symbol) {
  const [exchange, ticker] = symbol.split(':');
  const { instruments } = await call(withQuery('/api/market/search', { q: ticker }));
  const own = instruments.find((one) => one.symbol === symbol);
  if (own?.name) say(name, `${exchange} · ${own.name}`);
}

/** @param {Nodes} nodes @param {any} quote */
function drawPrice({ level, moved, state, today }, quote) {
  const { unavailable, last_price: last, change, change_pct: changed, day_low: low, day_high: high } = quote;
  level.classList.remove('waiting');
  memo(level, [last ?? null], () => put(level, pieces([known(last, price, t.noPrice)].flat())));
  const inPercent = changed === null ? [] : [{ ...movedLarge(changed, percent), text: `(${percent(changed)})` }];
  const changes = unavailable ? [] : [movedLarge(change, signedPrice, text.noClose), ' ', ...inPercent];
  memo(moved, changes, () => put(moved, pieces(changes)));
  const bits = unavailable ? [] : [isOpen() ? time(quote.as_of) : moments(quote.as_of, serverNow()), ...ageMark(quote)];
  memo(state, [bits, quote.simulated], () => put(state, pieces(bits), ' ', simulated(quote.simulated)));
  const range = low === undefined || low === null ? [] : [{ text: t.dayOf(price(low), price(high)), title: t.dayNote }];
  memo(today, range, () => put(today, pieces(range)));
}

/** @param {HTMLElement} signals @param {string} symbol */
async function drawSignals(signals, symbol) {
  const list = await call(withQuery('/api/signals', { symbol }));
  // Most symbols have none: then their table is not loaded.
  const tables = list.signals.length ? await import('../parts/signal-table.js') : null;
  memo(signals, list, () =>
    put(
      signals,
      h('header', null, h('h2', { id: 'signals' }, t.signals), h('a', { href: '/signals' }, t.allSignals)),
      awaited(list, 'signals', t.noSignals) ??
        (tables ? signalsOf(list, tables) : h('p', { class: 'muted' }, t.noSignals)),
    ),
  );
  return soonMs(list);
}

/** @param {Answer<'/api/signals'>} list @param {typeof import('../parts/signal-table.js')} tables */
function signalsOf(list, { signalTable, signalWords }) {
  const shown = signalTable('signals of the symbol', list.signals, { isOfOne: true });
  return h('div', null, shown.node, signalWords(list));
}
