// What the shares returned a year by the trades ledger, with what that leaves out, and what was realised this year.
import { call } from '../data/api.js';
import { direction, isKnown, percent, rupees, signedRupees } from '../data/format.js';
import { onAppearance } from '../data/prefs.js';
import { signedShare } from '../data/ratio-format.js';
import { notIn } from '../data/returns.js';
import { ledger } from '../text/ledger.js';
import { noRate, reasonOf } from '../text/reasons.js';
import { returns as t } from '../text/returns.js';
import { figureList } from './figure-list.js';
import { figure, known, moved, secret } from './figures.js';
import { learnShares, shareBits, shareName } from './share-name.js';
import { table } from './table.js';
import { h, pieces, put } from './view.js';

/** @typedef {Answer<'/api/trades/returns'>} Returns */
/** @typedef {Returns['holdings'][number]} Holding */
/** @typedef {Answer<'/api/trades/gains'>} Gains */

/** Draws the tab; returns what ends it. @param {Element} into */
export function showReturns(into) {
  let isOver = false;
  let draw = () => {};
  Promise.all([call('/api/trades/returns'), call('/api/trades/gains')]).then(
    async ([returns, gains]) => {
      await learnShares([...returns.holdings, ...returns.left_out]);
      draw = () => put(into, ...partsOf(returns, gains));
      if (!isOver) draw();
    },
    (failed) => {
      if (!isOver) put(into, h('p', { class: 'problem', role: 'alert' }, failed.message));
    },
  );
  const end = onAppearance(() => draw());
  return () => {
    isOver = true;
    draw = () => {};
    end();
  };
}

/** @param {Returns} returns @param {Gains} gains */
function partsOf(returns, gains) {
  const isEmpty = gains.years.length === 0 && returns.holdings.length === 0 && returns.xirr_reason === 'no_flows';
  if (isEmpty)
    return [
      h('p', { class: 'empty' }, t.none, ' ', h('a', { href: '/trades' }, t.toTrades)),
      h('p', { class: 'fine' }, ledger.worksheet),
    ];
  return [
    figureList(figuresOf(returns, gains)),
    leftOutOf(returns),
    returns.holdings.length > 0 && tableOf(returns.holdings),
    linksOf(),
    h('p', { class: 'fine' }, ledger.worksheet),
  ];
}

/** @param {Returns} returns @param {Gains} gains */
function figuresOf({ xirr, xirr_reason: reason, absolute_pct: absolute, benchmark }, { fy, totals }) {
  const rate = known(xirr, signedShare, noRate[reason ?? ''] ?? reason ?? '');
  const index = known(benchmark.xirr, signedShare, t.noIndex);
  const money = secret(signedRupees);
  return [
    [t.xirr, pieces([rate]), direction(xirr), t.xirrWhy],
    [t.absolute, percent(absolute), direction(absolute), t.absoluteWhy],
    [t.benchmark(benchmark.name), pieces([index]), direction(benchmark.xirr), t.benchmarkWhy],
    [t.realised.short(fy), money(totals.short), direction(totals.short), t.realisedWhy],
    [t.realised.long(fy), money(totals.long), direction(totals.long), t.realisedWhy],
  ];
}

/** What the return is without, in one line that opens. @param {Returns} returns */
function leftOutOf({ left_out: rows }) {
  const { shares, groups, besides } = notIn(rows, shareName);
  if (rows.length === 0) return h('p', { class: 'muted' }, t.allIn);
  const others = besides.map((code) => reasonOf(code)[0].toLowerCase()).join(', ');
  const head = [shares > 0 && t.without(shares), others && `${t.besides} ${others}`].filter(Boolean).join(', ');
  if (shares === 0) return h('p', { class: 'muted' }, head);
  return h(
    'details',
    null,
    h('summary', null, head),
    h(
      'ul',
      { class: 'told-lines' },
      groups.map(({ reason, names }) => h('li', null, t.group(reasonOf(reason)[0], names.join(', ')))),
    ),
    h('p', null, h('a', { href: '/integrity' }, t.mend)),
  );
}

/** @param {Holding[]} holdings */
function tableOf(holdings) {
  const money = (/** @type {number | null} */ value) => known(value, secret(rupees), t.noValue);
  const why = (/** @type {Holding} */ row) => noRate[row.xirr_reason ?? ''] ?? row.xirr_reason ?? '';
  const shown = table({
    name: 'returns',
    caption: t.caption,
    sorted: '-value',
    key: (/** @type {Holding} */ row) => row.isin ?? row.symbol ?? '',
    label: (row) => row.symbol ?? row.isin ?? '',
    columns: [
      { key: 'symbol', of: 'symbol', label: t.share, at: 'a', show: shareBits },
      {
        of: 'xirr',
        label: t.xirr,
        number: true,
        at: 'b',
        show: (row) => (isKnown(row.xirr) ? moved(row.xirr, signedShare) : known(null, percent, why(row))),
      },
      figure('absolute_pct', t.absolute, (value) => moved(value, percent, t.noValue), { at: 'd' }),
      figure('purchases', t.purchases, money, { rank: 2 }),
      figure('sales', t.sales, money, { rank: 2 }),
      figure('value', t.value, money, { at: 'c' }),
    ],
  });
  shown.update(holdings);
  return shown.node;
}

const linksOf = () =>
  h(
    'p',
    { class: 'actions no-print' },
    Object.entries(ledger.pages).map(([page, name]) => h('a', { class: 'button', href: `/${page}` }, name)),
  );
