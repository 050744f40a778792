// What is in no total, by its reason: it comes before the totals.
import { isKnown, quantity, rupees, signedRupees } from '../data/format.js';
import { byReason, sharesOf } from '../data/gains.js';
import { gains as t } from '../text/gains.js';
import { ledger } from '../text/ledger.js';
import { reasonOf } from '../text/reasons.js';
import { figureList } from './figure-list.js';
import { figure, known, secret } from './figures.js';
import { shareBits, shareName } from './share-name.js';
import { table } from './table.js';
import { h } from './view.js';

/** @typedef {import('../data/gains.js').Gains} Gains */
/** @typedef {import('../data/gains.js').LeftOut} LeftOut */

/** @param {Gains} gains */
export function leftOutSection({ left_out: rows, totals_stated: stated }) {
  const groups = byReason(rows);
  return h(
    'section',
    { 'aria-labelledby': 'left-out' },
    h('h2', { id: 'left-out' }, t.leftOut),
    groups.length === 0
      ? h('p', null, t.nothingLeftOut)
      : h('p', null, t.leftOutWhy(sharesOf(rows)), ' ', h('a', { href: '/integrity' }, t.mend)),
    groups.map(({ reason, rows: its, shares }) =>
      h(
        'details',
        { class: 'left-out' },
        h('summary', null, h('b', null, t.leftOutOf(reasonOf(reason)[0], shares)), ' ', h('span', { class: 'muted' }, namesOf(its))),
        h('p', { class: 'small' }, reasonOf(reason)[1]),
        tableOf(reason, its),
      ),
    ),
    statedOf(stated),
  );
}

/** @param {LeftOut[]} rows */
const namesOf = (rows) => [...new Set(rows.map(shareName))].join(', ');

/** @param {string} reason @param {LeftOut[]} rows */
function tableOf(reason, rows) {
  const money = (/** @type {number | null} */ value) => known(value, secret(rupees), t.notKnown);
  const hasLoss = rows.some((row) => isKnown(row.ignored_loss));
  const shown = table({
    name: `left out ${reason}`,
    caption: reasonOf(reason)[0],
    plain: true,
    isFixed: true,
    key: (/** @type {LeftOut} */ row) => `${row.account} ${row.isin ?? row.symbol}`,
    columns: [
      { key: 'symbol', label: t.symbol, show: shareBits },
      { key: 'account', label: t.account, show: (row) => ledger.short(row.account) },
      figure('quantity', t.quantity, (value) => known(value, secret(quantity), t.notKnown)),
      figure('proceeds', t.proceeds, money),
      ...(hasLoss ? [figure('ignored_loss', t.ignored, money)] : []),
    ],
  });
  shown.update(rows);
  return shown.node;
}

/** What the broker's report alone says. @param {Gains['totals_stated']} stated */
function statedOf(stated) {
  const told = Object.entries(stated).filter(([, value]) => isKnown(value) && value !== 0);
  if (told.length === 0) return null;
  return h(
    'div',
    null,
    h('h3', null, t.stated),
    figureList(told.map(([name, value]) => [t.classOf(name), secret(signedRupees)(value)])),
  );
}
