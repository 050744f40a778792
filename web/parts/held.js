// What the user holds of a symbol, and what was written about it: for who has logged in.
import { call, withQuery } from '../data/api.js';
import { day, percent, price, quantity, rupees, signedRupees } from '../data/format.js';
import { text } from '../text.js';
import { held as t } from '../text/held.js';
import { ledger } from '../text/ledger.js';
import { lots as l } from '../text/lots.js';
import { change, figure, known, secret } from './figures.js';
import { table } from './table.js';
import { lotHeading, lotList, readLots } from './lot-list.js';
import { h, put } from './view.js';

/** As many trades as stand on the page, and as the chart marks. */
const TOLD = 5;
const MARKED = 500;

/** Draws what is held and what was written; returns the trades of it, newest first. */
export async function showHeld(held, written, symbol) {
  const [exchange, ticker] = symbol.split(':');
  const [{ holdings }, found] = await Promise.all([
    call('/api/portfolio/holdings?live=true'),
    call(withQuery('/api/journal/search', { symbol, limit: 5 })),
  ]);
  const own = holdings.filter((one) => one.tradingsymbol === ticker && one.exchange === exchange);
  // The same share is one holding, whichever exchange the broker names.
  const rows = holdings.filter((one) => own.includes(one) || own.some(({ isin }) => isin && isin === one.isin));
  if (rows.length === 0) put(held, h('h2', { id: 'held' }, t.title), h('p', { class: 'muted' }, t.none));
  else {
    const money = secret(rupees);
    const shown = table({
      name: 'held',
      caption: t.title,
      isFixed: true,
      plain: true,
      key: (row) => row.broker,
      columns: [
        { of: 'broker', label: t.broker, show: (row) => t.brokers[row.broker] ?? row.broker },
        figure('quantity', t.quantity, secret(quantity)),
        figure('average_price', t.average, (value) => known(value, secret(price), t.noCost)),
        figure('current_value', t.value, (value) => known(value, money, t.noPrice), { rank: 2 }),
        change('pnl', t.pnl, secret(signedRupees), t.noCost),
        change('day_pnl', t.today, secret(signedRupees), text.noClose, { rank: 2 }),
        change('pnl_pct', t.pnlPct, percent, t.noCost, { rank: 2 }),
      ],
    });
    shown.update(rows);
    put(held, h('h2', { id: 'held' }, t.title), shown.node);
  }
  const isin = rows[0]?.isin ?? null;
  const [lots, { trades }] = await Promise.all([
    isin ? readLots(isin, null) : [],
    call(withQuery('/api/trades', { ...(isin ? { isin } : { symbol: ticker }), limit: MARKED })),
  ]);
  if (lots.length > 0) held.append(lotHeading(lots), lotList(lots));
  if (trades.length > 0) held.append(lastTrades(trades));
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
  return trades;
}

/** The last of one's own trades. */
const lastTrades = (trades) =>
  h(
    'div',
    null,
    h('h3', null, l.last),
    h(
      'ul',
      { class: 'entries' },
      trades.slice(0, TOLD).map((trade) => h('li', null, tradeWords(trade))),
    ),
    h('p', null, h('a', { href: `/trades?symbol=${encodeURIComponent(trades[0].symbol)}` }, l.toTrades)),
  );

const tradeWords = ({ side, quantity: n, price: at, date, account }) => [
  h('b', null, n === null ? l.disagree : l.whatOf(t.sides[side] ?? side, secret(quantity)(n), secret(price)(at))),
  ' ',
  h('span', { class: 'muted' }, `${day(date)} · ${ledger.short(account)}`),
];

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
