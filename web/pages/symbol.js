// One share or index: its price, its candles, what the user holds of it, its signals, and what was written about it.
import { call, serverNow, session, withQuery } from '../api.js';
import { showCandles } from '../candles.js';
import { ageMark, change, figure, isOpen, known, movedLarge, secret, simulated } from '../figures.js';
import { day, moments, percent, price, quantity, rupees, signedPrice, signedRupees, time } from '../format.js';
import * as live from '../live.js';
import { isWatchListFull, onAppearance, setWatched, watched } from '../prefs.js';
import { table } from '../table.js';
import { text } from '../text.js';
import { symbol as t } from '../text/symbol.js';
import { attr, button, h, memo, pieces, put, say, skeleton } from '../view.js';

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
  const level = h('p', { class: 'level waiting' }, '\u00a0');
  const moved = h('p', { class: 'change' });
  const state = h('p', { class: 'sub' });
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
    h('div', { class: 'title-row' }, h('div', null, h('h1', null, ticker), name), star(symbol, announce)),
    h('div', { class: 'quote' }, level, moved),
    state,
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
    candles.last(quote.unavailable ? null : quote.last_price);
  };
  const listed = live.repeat(async () => {
    const list = await call(withQuery('/api/signals', { symbol })).catch((problem) => {
      if (problem.code === 'signals_not_ready' || problem.status === 400) return null;
      throw problem;
    });
    // Most symbols have none: then their table is not loaded.
    const tables = list?.signals.length ? await import('../signal-table.js') : null;
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
    if (session.user) await showHeld(held, written, symbol);
    else put(held, h('h2', { id: 'held' }, t.held), h('p', { class: 'muted' }, session.known && t.logIn));
    written.hidden = !session.user;
    came('held');
  }, 30_000);
  const ends = [live.on('quotes', drawQuote), live.on('tick', drawQuote), onAppearance(() => own.now())];
  return () => {
    candles.end();
    listed.stop();
    own.stop();
    for (const end of ends) end();
  };
}

/** Adds to the watch list, or removes. */
function star(symbol, announce) {
  const node = button('', () => {
    const list = watched();
    const isIn = list.includes(symbol);
    if (!isIn && isWatchListFull()) {
      announce(t.full);
      return;
    }
    setWatched(isIn ? list.filter((one) => one !== symbol) : [...list, symbol]);
    announce(isIn ? t.removed(symbol) : t.added(symbol));
    draw();
  });
  const draw = () => {
    const isIn = watched().includes(symbol);
    say(node, isIn ? t.watched : t.watch);
    attr(node, 'aria-label', isIn ? t.unwatchOf(symbol) : t.watchOf(symbol));
  };
  draw();
  return node;
}

function signalsOf(list, { signalTable, signalWords }) {
  const shown = signalTable('signals of the symbol', list.signals, { isOfOne: true });
  return h('div', null, shown.node, signalWords(list));
}

async function showHeld(held, written, symbol) {
  const [exchange, ticker] = symbol.split(':');
  const [{ holdings }, found] = await Promise.all([
    call('/api/portfolio/holdings?live=true'),
    call(withQuery('/api/journal/search', { symbol, limit: 5 })),
  ]);
  const own = holdings.filter((one) => one.tradingsymbol === ticker && one.exchange === exchange);
  // The same share is one holding, whichever exchange the broker names.
  const rows = holdings.filter((one) => own.includes(one) || own.some(({ isin }) => isin && isin === one.isin));
  if (rows.length === 0) put(held, h('h2', { id: 'held' }, t.held), h('p', { class: 'muted' }, t.none));
  else {
    const money = secret(rupees);
    const shown = table({
      name: 'held',
      caption: t.held,
      isFixed: true,
      plain: true,
      key: (row) => row.broker,
      columns: [
        { of: 'broker', label: t.broker, show: (row) => t.brokers[row.broker] ?? row.broker },
        figure('quantity', t.quantity, secret(quantity)),
        figure('average_price', t.average, (value) => known(value, secret(price), t.noCost)),
        figure('current_value', t.value, (value) => known(value, money, t.noPrice), { rank: 2 }),
        change('pnl', t.pnl, secret(signedRupees), t.noCost),
        change('pnl_pct', t.pnlPct, percent, t.noCost, { rank: 2 }),
      ],
    });
    shown.update(rows);
    put(held, h('h2', { id: 'held' }, t.held), shown.node);
  }
  put(
    written,
    h('header', null, h('h2', { id: 'written' }, t.journal), h('a', { href: '/journal' }, t.toJournal)),
    found.entries.length === 0
      ? h('p', { class: 'muted' }, t.noEntries)
      : h(
          'ul',
          { class: 'entries' },
          found.entries.map((entry) => h('li', null, entryWords(entry))),
        ),
  );
}

const entryWords = (entry) => [
  h(
    'b',
    null,
    `${t.sides[entry.side] ?? entry.side} ${secret(quantity)(entry.quantity)} × ${secret(price)(entry.price)}`,
  ),
  ' ',
  h('span', { class: 'muted' }, day(entry.traded_on)),
  entry.strategy && ` · ${entry.strategy}`,
  entry.notes && ` · ${entry.notes}`,
];
