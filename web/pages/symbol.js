// One share or index: its price, its candles, what the user holds of it, its signals, and what was written about it.
import { showCandles } from '../charts/candles.js';
import { call, serverNow, session, withQuery } from '../data/api.js';
import { moments, percent, price, signedPrice, time } from '../data/format.js';
import * as live from '../data/live.js';
import { onAppearance } from '../data/prefs.js';
import { ageMark, isOpen, known, movedLarge, simulated } from '../parts/figures.js';
import { button, h, memo, pieces, put, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { symbol as t } from '../text/symbol.js';

const FORM = /^(NSE|BSE):[A-Z0-9&._ -]{1,32}$/;

const symbolOf = (path) => {
  try {
    return decodeURIComponent(path.slice('/s/'.length));
  } catch {
    return '';
  }
};
export const title = (path) => symbolOf(path).split(':')[1] || t.unknown;

export function show({ main, path, announce }) {
  const symbol = symbolOf(path);
  if (!FORM.test(symbol)) {
    put(main, h('h1', null, t.unknown), h('p', null, t.unknownWhy(symbol)));
    return undefined;
  }
  const [exchange, ticker] = symbol.split(':');
  main.className = 'symbol-page';
  const name = h('p', { class: 'sub' }, exchange);
  const mark = button(t.watch, null, { 'aria-disabled': 'true', 'aria-label': t.watchOf(symbol) });
  const level = h('p', { class: 'level waiting' }, '\u00a0');
  const moved = h('p', { class: 'change' });
  const state = h('p', { class: 'sub' });
  const today = h('p', { class: 'sub' });
  const year = h('p', { class: 'sub' });
  const chart = h('section', { class: 'candles' });
  const held = h('section', { 'aria-labelledby': 'held' });
  const signals = h('section', { 'aria-labelledby': 'signals' });
  const written = h('section', { 'aria-labelledby': 'written' });
  // They come together: one after the other each would push down the next.
  const rest = h('div', { class: 'rest-of' }, skeleton(8));
  const first = { held: false, signals: false };
  const came = (what) => {
    first[what] = true;
    if (first.held && first.signals && !held.isConnected) put(rest, held, signals, written);
  };
  put(
    main,
    h('div', { class: 'title-row' }, h('div', null, h('h1', null, ticker), name), mark),
    h('div', { class: 'quote' }, level, moved),
    state,
    today,
    year,
    chart,
    rest,
  );
  call(withQuery('/api/market/search', { q: ticker })).then(
    ({ instruments }) => {
      const own = instruments.find((one) => one.symbol === symbol);
      if (own?.name) say(name, `${exchange} · ${own.name}`);
    },
    () => {},
  );

  const candles = showCandles(chart, symbol, (list) => {
    const [low, high] = [Math.min(...list.map((c) => c.low)), Math.max(...list.map((c) => c.high))];
    if (list.length) put(year, pieces([{ text: t.yearOf(price(low), price(high)), title: t.yearNote }]));
  });
  live.follow([symbol]);
  const ends = [onAppearance(() => own.now())];
  let isOver = false;
  import('../parts/star.js').then(
    ({ star }) => isOver || ends.push(star(mark, symbol, announce)),
    () => {},
  );
  const drawQuote = () => {
    const quote = live.valueOf(`quote ${symbol}`);
    if (!quote) return;
    level.classList.remove('waiting');
    memo(level, [quote.last_price ?? null], () =>
      put(level, pieces([known(quote.last_price, price, t.noPrice)].flat())),
    );
    const changes = quote.unavailable
      ? []
      : [
          movedLarge(quote.change, signedPrice, text.noClose),
          ' ',
          ...(quote.change_pct === null
            ? []
            : [{ ...movedLarge(quote.change_pct, percent), text: `(${percent(quote.change_pct)})` }]),
        ];
    memo(moved, changes, () => put(moved, pieces(changes)));
    const bits = quote.unavailable
      ? []
      : [isOpen() ? time(quote.as_of) : moments(quote.as_of, serverNow()), ...ageMark(quote)];
    memo(state, [bits, quote.simulated], () => put(state, pieces(bits), ' ', simulated(quote.simulated)));
    const { day_low: low, day_high: high } = quote;
    const range = low === undefined || low === null ? [] : [{ text: t.dayOf(price(low), price(high)), title: t.dayNote }];
    memo(today, range, () => put(today, pieces(range)));
    candles.last(quote.unavailable ? null : quote.last_price);
  };
  const listed = live.repeat(async () => {
    const list = await call(withQuery('/api/signals', { symbol })).catch((problem) => {
      if (problem.code === 'signals_not_ready' || problem.status === 400) return null;
      throw problem;
    });
    // Most symbols have none: then their table is not loaded.
    const tables = list?.signals.length ? await import('../parts/signal-table.js') : null;
    memo(signals, list, () =>
      put(
        signals,
        h('header', null, h('h2', { id: 'signals' }, t.signals), h('a', { href: '/signals' }, t.allSignals)),
        tables ? signalsOf(list, tables) : h('p', { class: 'muted' }, t.noSignals),
      ),
    );
    came('signals');
  }, 300_000);
  const own = live.repeat(async () => {
    if (session.user) await (await import('../parts/held.js')).showHeld(held, written, symbol);
    else put(held, h('h2', { id: 'held' }, t.held), h('p', { class: 'muted' }, session.known && t.logIn));
    written.hidden = !session.user;
    came('held');
  }, 30_000);
  ends.push(live.on('quotes', drawQuote), live.on('tick', drawQuote));
  return () => {
    isOver = true;
    candles.end();
    listed.stop();
    own.stop();
    for (const end of ends) end();
  };
}

function signalsOf(list, { signalTable, signalWords }) {
  const shown = signalTable('signals of the symbol', list.signals, { isOfOne: true });
  return h('div', null, shown.node, signalWords(list));
}
