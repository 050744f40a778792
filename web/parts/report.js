// What a sync brought, in words and tables.
import { quantity, rupees, signedRupees } from '../data/format.js';
import { amountsHidden } from '../data/prefs.js';
import { portfolio } from '../text/portfolio.js';
import { report as t } from '../text/sync.js';
import { figureList, secret, simulated } from './figures.js';
import { h } from './view.js';

const money = secret(rupees);

const name = (row) => `${row.exchange}:${row.tradingsymbol}`;

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

function changeOf(row) {
  const parts = [name(row)];
  const hidden = amountsHidden();
  if (row.quantity)
    parts.push(hidden ? t.quantityChanged : t.from(quantity(row.quantity[0]), quantity(row.quantity[1])));
  if (row.average_price) parts.push(t.average(money(row.average_price[0]), money(row.average_price[1])));
  return parts.join(' · ');
}

/** the answer of a sync */
export function syncReport(report) {
  const { changes, reconciliation: sums } = report;
  const isDoubtful = ({ reason }) => reason === 'broker_discrepancy';
  const suspected = report.suspected_corporate_actions;
  const [doubtful, actions] = [suspected.filter(isDoubtful), suspected.filter((row) => !isDoubtful(row))];
  const positions = report.net_positions_count ?? report.positions_count;
  const figures = [
    [t.broker, money(sums.broker_pnl)],
    [t.ours, money(sums.our_pnl)],
    [t.difference, secret(signedRupees)(sums.difference)],
  ];
  return h(
    'div',
    { class: 'report' },
    h('h2', { tabindex: '-1' }, t.done(report.broker.toUpperCase())),
    h(
      'p',
      { class: 'lead' },
      t.counts(report.holdings_count, positions),
      ' ',
      t.changes(changes.added_count, changes.removed_count, changes.changed_count),
      ' ',
      simulated(report.simulated),
    ),
    report.broker_user && h('p', null, t.person(report.broker_user)),
    (report.warnings ?? []).map((warning) => h('p', { class: 'problem' }, warning.detail)),
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
    actions.length > 0 &&
      h(
        'div',
        null,
        h('h3', null, t.suspected),
        h(
          'ul',
          null,
          actions.map((row) => h('li', null, h('b', null, name(row)), ': ', t.reasons[row.reason] ?? row.reason)),
        ),
      ),
    doubtful.length > 0 &&
      h('div', null, h('h3', null, t.doubtful), h('p', null, doubtful.map(name).join(', '), '. ', t.doubtfulWhy)),
    h('h3', null, t.reconciliation),
    figureList(figures),
    h('p', { class: 'muted' }, sums.reason === null ? t.same : (t.whys[sums.reason] ?? sums.reason)),
    listed(
      t.added(changes.added_count),
      changes.added_count,
      changes.added,
      (row) => `${name(row)} · ${secret(quantity)(row.quantity)}`,
    ),
    listed(t.removed(changes.removed_count), changes.removed_count, changes.removed, name),
    listed(t.changed(changes.changed_count), changes.changed_count, changes.changed, changeOf),
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
