// What a sync brought, in words and tables.
import { called, quantity, rupees, signedRupees } from '../data/format.js';
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
/** @type {{ [reason: string]: string }} */
const FAILED = t.tradesFailed;

/** @param {any} row */
const name = (row) => called(`${row.exchange}:${row.tradingsymbol}`);

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
    tradesOf(report.trades),
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

/** How many trades came, and what failed. @param {{ added?: number, reason?: string }} trades */
function tradesOf({ added = 0, reason }) {
  const failed = reason === undefined ? '' : (FAILED[reason] ?? reason);
  return h('p', null, added > 0 ? t.trades(added) : '', ' ', failed);
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

/** The profit by the broker and by us: what is known of it, and why not all. @param {any} sums */
const sumsOf = (sums) => [
  h('h3', null, t.reconciliation),
  figuresOf(sums),
  h('p', { class: 'muted' }, sums.reason === null ? t.same : (WHYS[sums.reason] ?? sums.reason)),
];

/** @param {any} sums */
function figuresOf({ broker_pnl: broker, our_pnl: ours, difference }) {
  if (broker === null && ours === null) return null;
  return figureList([
    [t.broker, broker === null ? t.notKnown : money(broker)],
    [t.ours, ours === null ? t.notKnown : money(ours)],
    [t.difference, difference === null ? t.notKnown : secret(signedRupees)(difference)],
  ]);
}

/** @param {any} changes */
const changesOf = ({ added_count: added, removed_count: removed, changed_count: changed, ...changes }) => [
  listed(t.added(added), added, changes.added, (row) => `${name(row)} · ${secret(quantity)(row.quantity)}`),
  listed(t.removed(removed), removed, changes.removed, name),
  listed(t.changed(changed), changed, changes.changed, changeOf),
];
