// The rows of a watch list: their prices, and what moves a symbol up and down or takes it away.
import { serverNow } from '../data/api.js';
import { called, moments, percent, price, signedPrice, time } from '../data/format.js';
import { nameOf } from '../data/names.js';
import { text } from '../text.js';
import { watch as t } from '../text/watch.js';
import { ageMark, change as changeColumn, isOpen } from './figures.js';
import { table } from './table.js';
import { button, h, pathOf, symbolBits } from './view.js';

/** As wide as what comes, so that nothing moves. */
const PENDING = { text: '…', kind: 'pending', title: t.waiting };
const LIVE = { live: true };

/**
 * @param {Node} lead
 * @param {{ moveBy: (symbol: string, by: number) => void, remove: (symbol: string) => void }} acts
 */
export function watchTable(lead, acts) {
  return table({
    name: 'watch',
    caption: t.caption,
    key: (row) => row.symbol,
    lead,
    columns: [
      {
        of: 'symbol',
        label: t.symbol,
        wide: true,
        at: 'a',
        show: ({ symbol }) => [
          ...symbolBits(symbol, pathOf(symbol)),
          ' ',
          { text: nameOf(symbol) ?? '\u00a0', kind: 'company' },
        ],
      },
      ...priceColumns(),
      {
        key: 'actions',
        label: '',
        control: (current) => {
          const symbol = () => current().symbol;
          return h(
            'span',
            { class: 'row-actions' },
            h('span', { class: 'grip', title: t.drag, 'aria-hidden': 'true' }, '⠿'),
            button('↑', () => acts.moveBy(symbol(), -1), { class: 'quiet', 'aria-label': t.up(called(symbol())) }),
            button('↓', () => acts.moveBy(symbol(), 1), { class: 'quiet', 'aria-label': t.down(called(symbol())) }),
            button('✕', () => acts.remove(symbol()), { class: 'quiet', 'aria-label': t.remove(called(symbol())) }),
          );
        },
      },
    ],
  });
}

/** Until a price has come they say that it is waited for. @returns {Column<any>[]} */
const priceColumns = () =>
  [
    { of: 'last_price', label: t.last, number: true, live: true, at: 'b', show: lastOf },
    changeColumn('change', t.change, signedPrice, text.noClose, { ...LIVE, at: 'told' }),
    changeColumn('change_pct', t.changePct, percent, text.noClose, { ...LIVE, at: 'd' }),
    { key: 'as_of', label: t.asOf, number: true, at: 'c', show: stateOf, csv: (/** @type {any} */ row) => row.as_of },
  ].map(({ show, ...column }) => ({ ...column, show: (row) => (row.isWaiting ? PENDING : (show?.(row) ?? '')) }));

/** @param {any} row */
function lastOf(row) {
  if (row.unavailable) return { text: t.unavailable, kind: 'muted', why: t.unavailableWhy };
  return price(row.last_price);
}

/** @param {any} row */
function stateOf(row) {
  if (!row.as_of) return ['–'];
  return [isOpen() ? time(row.as_of) : moments(row.as_of, serverNow()), ...ageMark(row)];
}
