// Open positions: one list of the broker's at a time, since both hold the same trades.
import { call } from './api.js';
import { HIDDEN, arrow, direction, isKnown, price, quantity, signedRupees } from './format.js';
import * as live from './live.js';
import { amountsHidden, onAppearance } from './prefs.js';
import { csvButton, table } from './table.js';
import { text } from './text.js';
import { attr, button, h, put, say } from './view.js';

const t = text.positions;

const money = (value) => (!isKnown(value) ? { text: '–', title: t.unknown }
  : { text: amountsHidden() ? HIDDEN : `${arrow(value)} ${signedRupees(value)}`, kind: direction(value) });

export function showPositions(into) {
  let type = 'net';
  /** @type {any} */
  let document = null;
  const total = h('p', { class: 'lead', role: 'status' });
  const shown = table({
    name: 'positions', caption: t.caption, key: (row) => [row.broker, row.exchange, row.tradingsymbol, row.product].join(),
    columns: [
      {
        key: 'name', label: text.portfolio.instrument, wide: true, sort: (row) => row.tradingsymbol, csv: (row) => row.tradingsymbol,
        show: (row) => [{ text: row.tradingsymbol, kind: 'symbol' }, ' ', { text: text.portfolio.at(row.exchange, row.broker.toUpperCase()), kind: 'muted' },
          ...(row.unresolved ? [' ', { text: text.portfolio.marks.unresolved, kind: 'mark note', title: text.portfolio.why.unresolved }] : []),
          ...(row.simulated ? [' ', { text: text.simulated, kind: 'mark simulated' }] : [])],
      },
      { key: 'product', label: t.product, show: (row) => row.product, sort: (row) => row.product, csv: (row) => row.product },
      { key: 'quantity', label: text.portfolio.quantity, number: true, show: (row) => (amountsHidden() ? HIDDEN : quantity(row.quantity)), sort: (row) => row.quantity, csv: (row) => row.quantity },
      { key: 'average', label: text.portfolio.average, number: true, show: (row) => (amountsHidden() ? HIDDEN : price(row.average_price)), sort: (row) => row.average_price, csv: (row) => row.average_price },
      { key: 'last', label: text.portfolio.last, number: true, show: (row) => price(row.last_price), sort: (row) => row.last_price, csv: (row) => row.last_price },
      { key: 'realised', label: t.realised, number: true, show: (row) => money(row.realised), sort: (row) => row.realised, csv: (row) => row.realised },
      { key: 'unrealised', label: t.unrealised, number: true, show: (row) => money(row.unrealised), sort: (row) => row.unrealised, csv: (row) => row.unrealised },
      { key: 'pnl', label: text.portfolio.pnl, number: true, show: (row) => money(row.pnl), sort: (row) => row.pnl, csv: (row) => row.pnl },
    ],
  });
  const kinds = ['net', 'day'].map((name) => button(t.kinds[name], () => { type = name; mark(); fetched.now(); }));
  const mark = () => kinds.forEach((kind, at) => attr(kind, 'aria-pressed', String(['net', 'day'][at] === type)));
  mark();
  put(into, h('div', { class: 'filters no-print' }, h('div', { class: 'tabs small', role: 'group', 'aria-label': t.kind }, kinds), csvButton(shown.csv, 'positions.csv')),
    h('p', { class: 'muted' }, t.why), total, shown.node);

  const draw = () => {
    if (!document) return;
    const sum = document.summary[type];
    const left = sum.without_pnl ? ` ${t.leftOut(sum.without_pnl)}` : '';
    say(total, sum.count === 0 ? t.none : `${t.total(sum.count, amountsHidden() ? HIDDEN : signedRupees(sum.pnl))}${left}`);
    shown.node.hidden = document.positions.length === 0;
    shown.update(document.positions);
  };
  const fetched = live.repeat(async () => {
    const asked = type;
    const answer = await call(`/api/portfolio/positions?type=${asked}`);
    if (asked !== type) return;
    document = answer;
    draw();
  }, 60_000);
  const end = onAppearance(draw);
  return () => { fetched.stop(); end(); };
}
