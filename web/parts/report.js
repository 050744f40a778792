// What a sync brought, in words and tables.
import { quantity, rupees, signedRupees } from '../data/format.js';
import { amountsHidden } from '../data/prefs.js';
import { portfolio } from '../text/portfolio.js';
import { report as t } from '../text/sync.js';
import { figureList } from './figure-list.js';
import { secret, simulated } from './figures.js';
import { h } from './view.js';

const money = secret(rupees);
/** @type {{ [reason: string]: string }} */
const REASONS = t.reasons;
/** @type {{ [reason: string]: string }} */
const WHYS = t.whys;

/** @param {any} row */
const name = (row) => `${row.exchange}:${row.tradingsymbol}`;

/** @param {string} heading @param {number} counted @param {any[]} rows @param {(row: any) => string} words */
function listed(heading, counted, rows, words) {
  if (counted === 0) return null;
  const more = counted > rows.length ? h('li', { class: 'muted' }, t.more(counted - rows.length)) : null;
  return h(
    'details',
    { open: counted <= 8 },
    h('summary', null, heading),
    h(
      'ul',
      null,
      rows.map((row) => h('li', null, words(row))),
      more,
    ),
  );
}

/** @param {any} row */
function changeOf(row) {
  const parts = [name(row)];
  const hidden = amountsHidden();
  if (row.quantity)
    parts.push(hidden ? t.quantityChanged : t.from(quantity(row.quantity[0]), quantity(row.quantity[1])));
  if (row.average_price) parts.push(t.average(money(row.average_price[0]), money(row.average_price[1])));
  return parts.join(' · ');
}

/** The answer of a sync. @param {any} report */
export function syncReport(report) {
  return h(
    'div',
    { class: 'report' },
    h('h2', { tabindex: '-1' }, t.done(report.broker.toUpperCase())),
    leadOf(report),
    report.broker_user && h('p', null, t.person(report.broker_user)),
    (report.warnings ?? []).map((/** @type {any} */ warning) => h('p', { class: 'problem' }, warning.detail)),
    report.unresolved_count > 0 &&
      h(
        'p',
        null,
        h('b', { class: 'mark note' }, t.unresolved(report.unresolved_count)),
        ' ',
        report.unresolved.join(', '),
        '. ',
        t.unresolvedWhy,
      ),
    suspectsOf(report.suspected_corporate_actions),
    sumsOf(report.reconciliation),
    changesOf(report.changes),
    h(
      'p',
      { class: 'actions' },
      h('a', { class: 'button primary', href: '/portfolio' }, t.toPortfolio),
      ' ',
      h(
        'a',
        { class: 'button', href: `/portfolio/sync/${report.broker === 'a' ? 'b' : 'a'}` },
        report.broker === 'a' ? portfolio.syncB : portfolio.syncA,
      ),
    ),
  );
}

/** @param {any} report */
function leadOf({ changes, ...report }) {
  const positions = report.net_positions_count ?? report.positions_count;
  return h(
    'p',
    { class: 'lead' },
    t.counts(report.holdings_count, positions),
    ' ',
    t.changes(changes.added_count, changes.removed_count, changes.changed_count),
    ' ',
    simulated(report.simulated),
  );
}

/** What may be a split or the like, and what the broker itself doubts. @param {any[]} suspected */
function suspectsOf(suspected) {
  const isDoubtful = (/** @type {any} */ { reason }) => reason === 'broker_discrepancy';
  const doubtful = suspected.filter(isDoubtful);
  const actions = suspected.filter((row) => !isDoubtful(row));
  return [
    actions.length > 0 &&
      h(
        'div',
        null,
        h('h3', null, t.suspected),
        h(
          'ul',
          null,
          actions.map((row) => h('li', null, h('b', null, name(row)), ': ', REASONS[row.reason] ?? row.reason)),
        ),
      ),
    doubtful.length > 0 &&
      h('div', null, h('h3', null, t.doubtful), h('p', null, doubtful.map(name).join(', '), '. ', t.doubtfulWhy)),
  ];
}

/** The profit by the broker and by us. @param {any} sums */
const sumsOf = (sums) => [
  h('h3', null, t.reconciliation),
  figureList([
    [t.broker, money(sums.broker_pnl)],
    [t.ours, money(sums.our_pnl)],
    [t.difference, secret(signedRupees)(sums.difference)],
  ]),
  h('p', { class: 'muted' }, sums.reason === null ? t.same : (WHYS[sums.reason] ?? sums.reason)),
];

/** @param {any} changes */
const changesOf = ({ added_count: added, removed_count: removed, changed_count: changed, ...changes }) => [
  listed(t.added(added), added, changes.added, (row) => `${name(row)} · ${secret(quantity)(row.quantity)}`),
  listed(t.removed(removed), removed, changes.removed, name),
  listed(t.changed(changed), changed, changes.changed, changeOf),
];
