// Signals as every page shows them: a row for each share, and how far its best one is above the base rate.
import { called, count, day } from '../data/format.js';
import { nameOf } from '../data/names.js';
import { points, share } from '../data/ratio-format.js';
import { text } from '../text.js';
import { signals as t } from '../text/signals.js';
import { figure, simulated } from './figures.js';
import { table } from './table.js';
import { h, pathOf, pieces, symbolBits } from './view.js';

/** How far the chance is from what all shares did, of one. */
const above = (row) => row.confidence - row.base_rate;

/** A twentieth of a point. */
const LEAST = 0.0005;
const kindOf = (row) => (above(row) >= LEAST ? 'strong' : 'muted');

/** Rows that begin with a share; those of one share alone leave it out. */
function columnsOf({ isOfOne = false } = {}) {
  return [
    {
      of: 'symbol',
      label: t.symbol,
      at: 'a',
      show: (row) => [
        ...symbolBits(row.symbol, pathOf(row.symbol)),
        ...marks(row),
        ' ',
        { text: nameOf(row.symbol) ?? '\u00a0', kind: 'company' },
      ],
    },
    {
      of: 'pattern',
      label: t.pattern,
      at: 'c',
      show: (row) => [
        `${text.pattern(row.pattern)} · `,
        { text: text.direction[row.direction] ?? row.direction, kind: 'direction' },
        ...moreOf(row),
      ],
    },
    {
      key: 'above',
      label: t.above,
      hint: t.aboveHint,
      number: true,
      at: 'b',
      sort: above,
      csv: above,
      show: (row) => ({ text: points(above(row)), kind: kindOf(row) }),
    },
    {
      of: 'confidence',
      label: t.confidence,
      hint: t.confidenceHint,
      number: true,
      at: 'd',
      show: (row) => [share(row.confidence), ' ', { text: t.ofBase(share(row.base_rate)), kind: 'muted' }],
    },
    {
      of: 'hit_rate',
      label: t.hitRate,
      hint: t.hitRateHint,
      number: true,
      rank: 2,
      show: (row) =>
        row.hit_rate === null ? [{ text: '–', why: t.neverSeen }] : [share(row.hit_rate), ...pastOf(row)],
    },
    { of: 'samples', label: t.dates, hint: t.datesHint, number: true, rank: 3, show: (row) => count(row.samples) },
    figure('as_of', t.asOf, day, { rank: 3 }),
  ]
    .slice(isOfOne ? 1 : 0)
    .map((column, at) => (isOfOne && at === 0 ? { ...column, at: 'a' } : column));
}

function marks(row) {
  const bits = [];
  if (row.conflict) bits.push(' ', { text: t.conflict, kind: 'mark note', why: t.conflictWhy });
  if (row.isMixed) bits.push(' ', { text: text.simulated, kind: 'mark simulated' });
  return bits;
}

const moreOf = (row) => (row.others?.length ? [' ', { text: t.more(row.others.length), kind: 'muted' }] : []);
const pastOf = (row) =>
  row.past_signals == null ? [] : [' ', { text: t.past(count(row.past_hits), count(row.past_signals)), kind: 'muted' }];
const keyOf = (row) => `${row.symbol} ${row.pattern} ${row.direction} ${row.as_of}`;
const marked = (list) =>
  list.every((row) => row.simulated) ? list : list.map((row) => ({ ...row, isMixed: row.simulated }));

/** Signals above their base rate, the best of each share with the share's others; and those below it. */
export function sorted(list) {
  // What is shown as 0.0 points is no more than usual.
  const isLikelier = (row) => above(row) >= LEAST;
  const likelier = list.filter(isLikelier);
  const rest = list.filter((row) => !isLikelier(row));
  const best = [...likelier].sort((a, b) => above(b) - above(a));
  const shares = [...new Set(best.map((row) => row.symbol))];
  return {
    grouped: shares.map((symbol) => {
      const [first, ...others] = best.filter((row) => row.symbol === symbol);
      return { ...first, others };
    }),
    rest: [...rest].sort((a, b) => above(b) - above(a)),
  };
}

export function signalTable(
  caption,
  rows,
  { name = 'signals', isFixed = false, isOfOne = false, lead = undefined } = {},
) {
  const built = table({
    name,
    caption,
    isFixed,
    lead,
    columns: columnsOf({ isOfOne }),
    key: keyOf,
    label: (row) => `${called(row.symbol)}, ${text.pattern(row.pattern)}`,
    ...(rows.some(({ others }) => others) || name === 'grouped' ? { details: othersOf } : {}),
  });
  // Where all are simulated, the page says it once above the table.
  const update = (list) => built.update(marked(list));
  update(rows);
  return { ...built, update };
}

/** The share's other signals above the base rate. */
const othersOf = (row) =>
  !row.others?.length
    ? h('p', { class: 'muted' }, t.noOthers)
    : h(
        'ul',
        { class: 'parts' },
        row.others.map((other) =>
          h(
            'li',
            null,
            h('b', null, points(above(other))),
            h('span', null, text.pattern(other.pattern)),
            h('span', null, text.direction[other.direction]),
            h('span', null, `${share(other.confidence)} ${t.ofBase(share(other.base_rate))}`),
            h('span', { class: 'muted' }, pieces([share(other.hit_rate), ...pastOf(other)])),
          ),
        ),
      );

/** The few best for a first look, and of how many shares there are any. */
export function bestSignals(list, most) {
  const { grouped } = sorted(list.filter((row) => !row.conflict));
  const best = grouped.slice(0, most).map(({ others: _, ...row }) => row);
  return {
    table: signalTable(t.caption, best, { name: 'best', isFixed: true }),
    count: best.length,
    shares: grouped.length,
  };
}

/** The mark above a table whose rows all come from the simulator. */
export const simulatedMark = (rows) => simulated(rows.length > 0 && rows.every((row) => row.simulated));

/** What a confidence is, and that it is no advice: the API's own words. */
export const signalWords = (list) =>
  h('div', { class: 'fine' }, h('p', null, list.meaning), h('p', null, list.disclaimer));
