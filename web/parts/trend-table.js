// The points of the trend as a table. It comes when it is opened.
import { day, rupees, signedRupees } from '../data/format.js';
import { trend as t } from '../text/trend.js';
import { change, figure, secret } from './figures.js';
import { csvButton, table } from './table.js';

/**
 * A point a row; `how` says how a point came about.
 * @param {(point: Point) => Bit[]} how
 */
export function trendTable(how) {
  const money = secret(rupees);
  /** @param {Point} p */
  const madeOf = (p) => (p.brokers ? t.madeOf(p.brokers.join('+').toUpperCase(), p.holdings) : '');
  /** @type {ReturnType<typeof table<Point>>} */
  const shown = table({
    name: 'trend',
    caption: t.caption,
    plain: true,
    key: (point) => point.date,
    sorted: '-date',
    label: (point) => day(point.date),
    columns: [
      { of: 'date', label: t.date, show: (p) => day(p.date) },
      figure('total_invested', t.invested, money, { rank: 2 }),
      figure('total_current_value', t.value, money),
      change('total_pnl', t.pnl, secret(signedRupees)),
      {
        key: 'of',
        label: t.of,
        rank: 2,
        show: (p) => madeOf(p) || { text: '–', why: t.notKept },
        csv: madeOf,
      },
      {
        key: 'how',
        label: t.how,
        rank: 2,
        show: how,
        csv: (p) =>
          how(p)
            .map((bit) => (typeof bit === 'string' ? bit : bit.text))
            .join(''),
      },
    ],
  });
  return { nodes: [csvButton(shown.filed, 'trend.csv'), shown.node], update: shown.update };
}
