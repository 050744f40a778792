// The totals of a year, with the rates, sections and sources that they stand on.
import { day, direction, isKnown, rupees, signedRupees } from '../data/format.js';
import { share } from '../data/percent.js';
import { gains as t } from '../text/gains.js';
import { figureList } from './figure-list.js';
import { figure, moved, secret } from './figures.js';
import { table } from './table.js';
import { h } from './view.js';

/** @typedef {import('../data/gains.js').Gains} Gains */
/** @typedef {Gains['totals']} Totals */

const money = secret(signedRupees);
/** @param {number | null | undefined} value */
const isThere = (value) => isKnown(value) && value !== 0;

/** @param {Gains} gains */
export function totalsSection({ totals, charges, rules }) {
  return h(
    'section',
    { 'aria-labelledby': 'totals' },
    h('h2', { id: 'totals' }, t.totals),
    figureList(figuresOf(totals)),
    h('p', { class: 'small' }, t.charges[/** @type {'all'} */ (charges)] ?? ''),
    totals.windows.length > 0 && windowsOf(totals.windows),
    h('details', null, h('summary', null, t.periods), periodsOf(totals.periods)),
    rules.length > 0 && h('div', null, h('h3', null, t.rules), rulesOf(rules)),
    h('p', { class: 'small' }, t.meet),
  );
}

/** Short and long always, the rest where there is any. @param {Totals} totals */
function figuresOf(totals) {
  const { losses, buyback } = totals;
  const of = (/** @type {'short' | 'long' | 'intraday' | 'fno'} */ name) => {
    const loss = isThere(losses[name]) ? h('small', { class: 'note-small' }, `${t.losses} ${money(losses[name])}`) : null;
    return [t.classes[name], [money(totals[name]), loss], direction(totals[name])];
  };
  /** @type {[string, number | null, string?][]} */
  const more = [
    [t.turnover, totals.fno_turnover, t.turnoverWhy],
    [t.buyback.exempt, buyback.exempt],
    [t.buyback.deemed, buyback.deemed_dividend],
    [t.buyback.short, buyback.short],
    [t.buyback.long, buyback.long],
    [t.fractions, totals.fractions],
    [t.dividends, totals.dividends],
  ];
  return [
    of('short'),
    of('long'),
    ...(isThere(totals.intraday) || isThere(losses.intraday) ? [of('intraday')] : []),
    ...(isThere(totals.fno) || isThere(losses.fno) ? [of('fno')] : []),
    ...more.filter(([, value]) => isThere(value)).map(([label, value, why]) => [label, secret(rupees)(value), null, why]),
  ];
}

/** Gains between the dates of a rate. @param {Totals['windows']} windows */
function windowsOf(windows) {
  const at = (/** @type {'short' | 'long'} */ name) => ({
    key: name,
    label: t.classes[name],
    number: true,
    show: (/** @type {Totals['windows'][number]} */ row) => {
      const rate = row[`${name}_pct`];
      return [moved(row[name], money), ...(isKnown(rate) ? [' ', { text: t.at(share(rate)), kind: 'note-small' }] : [])];
    },
  });
  const shown = table({
    name: 'windows',
    caption: t.windowsCaption,
    plain: true,
    isFixed: true,
    key: (/** @type {Totals['windows'][number]} */ row) => row.from,
    columns: [
      { key: 'sold', label: t.sold, wide: true, show: (row) => t.between(day(row.from), day(row.to)) },
      at('short'),
      at('long'),
    ],
  });
  shown.update(windows);
  return h('div', { class: 'narrow-table' }, h('h3', null, t.windows), shown.node);
}

/** @param {Totals['periods']} periods */
function periodsOf(periods) {
  const shown = table({
    name: 'periods',
    caption: t.periodsCaption,
    plain: true,
    isFixed: true,
    key: (/** @type {Totals['periods'][number]} */ row) => row.to,
    columns: [
      { key: 'sold', label: t.sold, wide: true, show: (row) => t.until(day(row.to)) },
      figure('short', t.classes.short, (value) => moved(value, money)),
      figure('long', t.classes.long, (value) => moved(value, money)),
    ],
  });
  shown.update(periods);
  return h('div', { class: 'narrow-table' }, shown.node);
}

/** The service's words as a sentence. @param {string} words */
const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** A line each: a table of it has no room on a phone. @param {Gains['rules']} rules */
const rulesOf = (rules) =>
  h(
    'ul',
    { class: 'rules' },
    rules.map(({ says, section, source, known_until: until }) =>
      h(
        'li',
        null,
        h('span', null, sentence(says)),
        h('span', { class: 'muted' }, t.lawOf(section, source)),
        h('span', { class: 'muted' }, t.knownUntil(day(until))),
      ),
    ),
  );
