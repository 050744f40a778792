// Every share that is followed: as a table to sort, and those of a sector below its tile. It comes when it is asked for.
import { percent, signedPrice } from '../data/format.js';
import { industriesOf } from '../data/sectors.js';
import { text } from '../text.js';
import { shares as t } from '../text/shares.js';
import { change } from './figures.js';
import { lastBits, moverTable, shareBits } from './mover-table.js';
import { csvButton, table } from './table.js';
import { h, memo, pathOf, put, skeleton } from './view.js';

/** @typedef {NonNullable<Answer<'/api/market/movers'>['list']>[number]} Share */

/** All of them. */
export function allShares() {
  const built = table({
    name: 'shares',
    caption: t.caption,
    sorted: '-change_pct',
    key: (row) => row.symbol,
    label: (row) => row.name ?? row.symbol,
    columns: [
      { of: 'symbol', label: t.share, wide: true, at: 'a', sort: (row) => row.name ?? row.symbol, show: shareBits },
      { of: 'sector', label: t.sector, at: 'c', show: (row) => row.sector ?? { text: '–', why: t.noSector } },
      { of: 'last_price', label: t.last, number: true, live: true, at: 'b', show: lastBits },
      change('change', t.change, signedPrice, text.noClose, { live: true, rank: 2 }),
      change('change_pct', t.changePct, percent, text.noClose, { live: true, at: 'd' }),
    ],
  });
  const waits = skeleton(10);
  const node = h('div', { class: 'all-shares' }, waits);
  return {
    node,
    /** @param {Share[]} list */
    update: (list) => {
      if (waits.isConnected) put(node, built.node, h('p', { class: 'actions' }, csvButton(built.filed, 'shares.csv')));
      built.update(list);
    },
  };
}

/** The shares of a sector, below its tile. @param {{ symbol: string, name: string }} sector */
export function sectorShares({ symbol, name }) {
  const industries = industriesOf(symbol);
  const rows = moverTable('sector', t.share);
  const words = h('p', { class: 'muted' }, '\u00a0');
  const body = h('div', null, skeleton(3));
  const node = h(
    'div',
    { class: 'panel sector-shares' },
    h(
      'header',
      null,
      h('h3', null, name),
      h('a', { href: pathOf(symbol), 'aria-label': t.chartOf(name) }, t.chart),
    ),
    words,
    body,
  );
  return {
    node,
    /** @param {Share[]} list */
    update: (list) => {
      const own = list
        .filter(({ sector }) => sector !== null && industries.includes(sector))
        .sort((a, b) => (b.change_pct ?? -Infinity) - (a.change_pct ?? -Infinity));
      const said = !industries.length ? t.notKnown : own.length ? t.of(industries, list.length) : t.none(list.length);
      memo(words, said, () => put(words, said));
      if (own.length && !rows.node.isConnected) put(body, rows.node);
      else if (!own.length) put(body);
      rows.update(own);
    },
  };
}
