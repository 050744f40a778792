// Open positions: one list of the broker's at a time, since both hold the same trades.
import { call, serverNow } from '../data/api.js';
import { day, moments, price, quantity, signedRupees } from '../data/format.js';
import * as live from '../data/live.js';
import { amountsHidden, onAppearance } from '../data/prefs.js';
import { text } from '../text.js';
import { portfolio as p } from '../text/portfolio.js';
import { positions as t } from '../text/positions.js';
import { change, figure, secret } from './figures.js';
import { csvButton, table } from './table.js';
import { attr, button, h, pathOf, put, say, symbolBits } from './view.js';

const money = secret(signedRupees);

/** @typedef {Answer<'/api/portfolio/positions'>} Positions */
/** @typedef {Positions['positions'][number]} Position */

const TYPES = /** @type {const} */ (['net', 'day']);
/** @typedef {typeof TYPES[number]} Type */

/** @param {Element} into */
export function showPositions(into) {
  /** @type {Type} */
  let type = 'net';
  /** @type {Positions | null} */
  let list = null;
  const total = h('p', { class: 'lead', role: 'status' });
  const shown = tableOf();
  const kinds = TYPES.map((name) =>
    button(t.kinds[name], () => {
      type = name;
      mark();
      fetched.now();
    }),
  );
  const mark = () => kinds.forEach((kind, at) => attr(kind, 'aria-pressed', String(TYPES[at] === type)));
  mark();
  put(
    into,
    h(
      'div',
      { class: 'filters no-print' },
      h('div', { class: 'tabs small', role: 'group', 'aria-label': t.kind }, kinds),
      csvButton(shown.filed, 'positions.csv'),
    ),
    h('p', { class: 'muted' }, t.why),
    total,
    shown.node,
  );

  const draw = () => {
    if (!list) return;
    say(total, wordsOf(list.summary[type]));
    shown.node.hidden = list.positions.length === 0;
    shown.update(list.positions);
  };
  const fetched = live.repeat(async () => {
    const asked = type;
    const answer = await call(`/api/portfolio/positions?type=${asked}`);
    if (asked !== type) return;
    list = answer;
    draw();
  }, 60_000);
  const end = onAppearance(draw);
  return () => {
    fetched.stop();
    end();
  };
}

/** What the list comes to, and of when it is. @param {Positions['summary'][Type]} sum */
function wordsOf(sum) {
  const left = sum.without_pnl ? ` ${t.leftOut(sum.without_pnl)}` : '';
  const of = sum.date ? ` ${t.of(day(sum.date), moments(sum.synced_at, serverNow()))}` : '';
  const old = sum.earlier ? ` ${t.notToday}` : '';
  return `${sum.count === 0 ? t.none : `${t.total(sum.count, money(sum.pnl))}${left}`}${of}${old}`;
}

/** @param {Position} row @returns {Bit[]} */
const instrumentOf = (row) => [
  ...nameOf(row),
  ' ',
  { text: row.broker.toUpperCase(), kind: 'muted' },
  ...(row.earlier ? [' ', { text: t.earlier(day(row.date)), kind: 'mark delayed', why: t.earlierWhy }] : []),
  ...(row.unresolved ? [' ', { text: p.marks.unresolved, kind: 'mark note', why: p.why.unresolved }] : []),
  ...(row.simulated ? [' ', { text: text.simulated, kind: 'mark simulated' }] : []),
];

/** @param {Position} row */
const lotOf = (row) =>
  amountsHidden() ? row.product : `${p.lot(quantity(row.quantity), price(row.average_price))} · ${row.product}`;

/** @returns {ReturnType<typeof table<Position>>} */
const tableOf = () =>
  table({
    name: 'positions',
    caption: t.caption,
    key: (row) => [row.broker, row.exchange, row.tradingsymbol, row.product].join(),
    label: (row) => row.tradingsymbol,
    columns: [
      { of: 'tradingsymbol', label: p.instrument, wide: true, at: 'a', show: instrumentOf },
      { of: 'product', label: t.product, at: 'told', show: (row) => row.product },
      { key: 'lot', label: p.quantity, phone: true, at: 'c', show: lotOf },
      figure('quantity', p.quantity, secret(quantity), { at: 'told' }),
      figure('average_price', p.average, secret(price), { at: 'told', rank: 2 }),
      figure('last_price', p.last, price, { at: 'd' }),
      change('realised', t.realised, money, t.unknown, { rank: 3 }),
      change('unrealised', t.unrealised, money, t.unknown, { rank: 2 }),
      change('pnl', p.pnl, money, t.unknown, { at: 'b' }),
    ],
  });

/** A future or an option has no page: candles are of shares and indices. @param {Position} row */
function nameOf(row) {
  const symbol = `${row.exchange}:${row.tradingsymbol}`;
  const hasPage = !row.unresolved && ['NSE', 'BSE'].includes(row.exchange);
  return symbolBits(symbol, hasPage ? pathOf(symbol) : undefined);
}
