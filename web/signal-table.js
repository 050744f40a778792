// Signals as every page shows them: a confidence never stands without the data behind it.
import { figure, simulated } from './figures.js';
import { count, day, share } from './format.js';
import { table } from './table.js';
import { text } from './text.js';
import { h } from './view.js';

const t = text.signals;

const COLUMNS = [
  { of: 'symbol', label: t.symbol, show: (row) => [{ text: row.symbol, kind: 'symbol' }, ...marks(row)] },
  { of: 'pattern', label: t.pattern, show: (row) => text.pattern(row.pattern) },
  {
    of: 'direction', label: t.direction,
    show: (row) => ({ text: text.direction[row.direction] ?? row.direction, kind: 'direction' }),
  },
  {
    of: 'confidence', label: t.confidence, hint: t.confidenceHint, number: true,
    show: (row) => [{ text: share(row.confidence), kind: 'strong' }, ' ', { text: t.dates(count(row.samples)), kind: 'muted' }],
  },
  {
    of: 'hit_rate', label: t.hitRate, hint: t.hitRateHint, number: true,
    show: (row) => [{ text: share(row.hit_rate), title: row.hit_rate === null ? t.neverSeen : undefined }, ...pastOf(row)],
  },
  figure('base_rate', t.baseRate, share, { hint: t.baseRateHint }),
  figure('as_of', t.asOf, day),
];

function marks(row) {
  const bits = [];
  if (row.conflict) bits.push(' ', { text: t.conflict, kind: 'mark note', title: t.conflictWhy });
  if (row.provisional) bits.push(' ', { text: t.provisionalMark, kind: 'mark delayed' });
  if (row.isMixed) bits.push(' ', { text: text.simulated, kind: 'mark simulated' });
  return bits;
}

const pastOf = (row) => (row.past_signals == null ? [] : [' ', { text: t.past(count(row.past_hits), count(row.past_signals)), kind: 'muted' }]);

export function signalTable(caption, rows, options = {}) {
  const built = table({
    name: options.all ? 'signals' : 'best',
    caption,
    columns: COLUMNS,
    isFixed: !options.all,
    key: (row) => `${row.symbol} ${row.pattern} ${row.direction} ${row.as_of}`,
  });
  // Where all are simulated, the page says it once above the table.
  const update = (list) => {
    const all = list.every((row) => row.simulated);
    built.update(all ? list : list.map((row) => ({ ...row, isMixed: row.simulated })));
  };
  update(rows);
  return { ...built, update };
}

/** The mark above a table whose rows all come from the simulator. */
export const simulatedMark = (rows) =>
  simulated(rows.length > 0 && rows.every((row) => row.simulated));

/** What a confidence is, and that it is no advice: the API's own words. */
export const signalWords = (list) => h('div', { class: 'fine' }, h('p', null, list.meaning), h('p', null, list.disclaimer));
