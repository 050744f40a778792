// The sales of a year; each opens to the purchases that it took.
import { call, withQuery } from '../data/api.js';
import { day, quantity, rupees, signedRupees } from '../data/format.js';
import { share } from '../data/percent.js';
import { corrections } from '../text/corrections.js';
import { gains as t } from '../text/gains.js';
import { ledger } from '../text/ledger.js';
import { reasonOf } from '../text/reasons.js';
import { figure, known, moved, secret, simulated } from './figures.js';
import { learnShares, shareBits } from './share-name.js';
import { table } from './table.js';
import { button, h, pieces } from './view.js';

/** @typedef {import('../data/gains.js').Gains} Gains */
/** @typedef {Gains['sales'][number]} Sale */
/** @typedef {Sale['lots'][number]} Part */

const money = (/** @type {number | null} */ value) => known(value, secret(rupees), t.notKnown);
const signedMoney = (/** @type {number | null} */ value) => moved(value, secret(signedRupees), t.notKnown);

/** @param {Gains} gains */
export function salesSection(gains) {
  const { fy, person } = gains;
  let sales = gains.sales;
  let cursor = gains.next_cursor;
  const shown = table(shape);
  shown.update(sales);
  const more = async () => {
    const page = await call(withQuery('/api/trades/gains', { fy, person, cursor }));
    await learnShares(page.sales);
    sales = [...sales, ...page.sales];
    cursor = page.next_cursor;
    shown.update(sales);
    older.hidden = cursor === null;
  };
  const older = button(t.older, more, { hidden: cursor === null });
  const file = withQuery('/api/trades/gains.csv', { fy, person });
  return h(
    'section',
    { 'aria-labelledby': 'sales' },
    h(
      'header',
      null,
      h('h2', { id: 'sales' }, t.sales, ' ', simulated(sales.some((sale) => sale.simulated))),
      sales.length > 0 && h('a', { class: 'button quiet no-print', href: file, download: '' }, t.csv),
    ),
    sales.length > 0 ? shown.node : h('p', { class: 'muted' }, t.noneSold),
    h('p', null, older),
  );
}

/** Whether it is proved and agrees, in words. @param {Sale} sale @returns {Bit[]} */
function stateOf({ proved, agreed, lots }) {
  const codes = [...new Set(lots.flatMap(({ reasons }) => reasons))];
  const why = codes.map((code) => reasonOf(code)[0]).join(', ');
  const state = proved ? { text: t.proved, kind: 'mark' } : { text: t.notProved, kind: 'mark delayed', why: why || undefined };
  return agreed === null ? [state] : [state, ' ', { text: agreed ? t.agrees : t.differs, kind: 'note-small' }];
}

/** @type {Shape<Sale>} */
const shape = {
  name: 'sales',
  caption: t.salesCaption,
  isFixed: true,
  key: (sale) => `${sale.sold} ${sale.account} ${sale.isin ?? sale.symbol} ${sale.quantity} ${sale.proceeds} ${sale.cost}`,
  label: (sale) => `${sale.symbol ?? sale.isin}, ${day(sale.sold)}`,
  columns: [
    { key: 'symbol', label: t.symbol, at: 'a', show: shareBits },
    { key: 'sold', label: t.sold, at: 'c', show: (sale) => day(sale.sold) },
    { key: 'account', label: t.account, rank: 2, show: (sale) => ledger.short(sale.account) },
    { key: 'of', label: t.quantity, phone: true, at: 'e', show: (sale) => ledger.shares(secret(quantity)(sale.quantity)) },
    figure('quantity', t.quantity, secret(quantity), { at: 'told' }),
    figure('proceeds', t.proceeds, money, { at: 'f' }),
    figure('cost', t.cost, money),
    figure('gain', t.gain, signedMoney, { at: 'b' }),
    { key: 'state', label: t.state, at: 'd', show: stateOf },
  ],
  details: (sale) => partsOf(sale),
};

/** The purchases that a sale took: a line each, since a table has no room in the rows of a phone. @param {Sale} sale */
const partsOf = (sale) =>
  h(
    'ul',
    { class: 'parts' },
    sale.lots.map((part) =>
      h(
        'li',
        null,
        h('b', null, boughtOf(part)),
        h('span', null, ledger.shares(secret(quantity)(part.quantity))),
        part.fmv !== null && h('span', null, `${t.fmv} ${secret(rupees)(part.fmv)}`),
        h('span', null, `${part.fmv === null ? t.cost : t.considered} `, pieces([money(part.cost_considered)])),
        h('span', null, `${t.gain} `, pieces([signedMoney(part.gain)])),
        h('span', null, lawOf(part)),
        part.reasons.map((code) =>
          h('span', null, pieces([{ text: reasonOf(code)[0], kind: 'mark delayed', why: reasonOf(code)[1] }])),
        ),
      ),
    ),
  );

/** When and how it was bought. @param {Part} part */
function boughtOf({ acquired_on: on, how }) {
  const words = how === 'market' ? '' : `, ${corrections.how[how] ?? how}`;
  return `${t.acquired} ${day(on)}${words}`;
}

/** Class, section and rate. @param {Part} part */
const lawOf = ({ class: its, section, rate_pct: rate }) =>
  [t.classOf(its), section, rate === null ? null : share(rate)].filter(Boolean).join(', ');
