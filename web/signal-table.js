// Signals as every page shows them: a confidence never stands without the data behind it.
import { count, day, share } from './format.js';
import { table } from './table.js';
import { text } from './text.js';
import { h } from './view.js';

const t = text.signals;

const COLUMNS = [
  { key: 'symbol', label: t.symbol, show: (row) => [{ text: row.symbol, kind: 'symbol' }, ...marks(row)], sort: (row) => row.symbol, csv: (row) => row.symbol },
  { key: 'pattern', label: t.pattern, show: (row) => text.pattern(row.pattern), sort: (row) => row.pattern, csv: (row) => row.pattern },
  {
    key: 'direction', label: t.direction, sort: (row) => row.direction, csv: (row) => row.direction,
    show: (row) => ({ text: text.direction[row.direction] ?? row.direction, kind: 'direction' }),
  },
  {
    key: 'confidence', label: t.confidence, hint: t.confidenceHint, number: true, sort: (row) => row.confidence, csv: (row) => row.confidence,
    show: (row) => [{ text: share(row.confidence), kind: 'strong' }, ' ', { text: t.dates(count(row.samples)), kind: 'muted' }],
  },
  {
    key: 'rate', label: t.hitRate, hint: t.hitRateHint, number: true, sort: (row) => row.hit_rate, csv: (row) => row.hit_rate,
    show: (row) => [{ text: share(row.hit_rate), title: row.hit_rate === null ? t.neverSeen : undefined }, ...pastOf(row)],
  },
];

const BASE = { key: 'base', label: t.baseRate, hint: t.baseRateHint, number: true, show: (row) => share(row.base_rate), sort: (row) => row.base_rate, csv: (row) => row.base_rate };
const AS_OF = { key: 'as_of', label: t.asOf, number: true, show: (row) => day(row.as_of), sort: (row) => row.as_of, csv: (row) => row.as_of };

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
    columns: options.all ? [...COLUMNS, BASE, AS_OF] : [...COLUMNS, BASE, AS_OF].map((column) => ({ ...column, sort: undefined })),
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
  rows.length > 0 && rows.every((row) => row.simulated) && h('b', { class: 'mark simulated' }, text.simulated);

/** What a confidence is, and that it is no advice: the API's own words. */
export const signalWords = (list) => h('div', { class: 'fine' }, h('p', null, list.meaning), h('p', null, list.disclaimer));
