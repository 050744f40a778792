// Rows of holdings: merged by ISIN as the API merges them, or one for each broker.
import { serverNow } from './api.js';
import { HIDDEN, age, arrow, direction, moments, percent, price, quantity, rupees, signedRupees } from './format.js';
import * as live from './live.js';
import { amountsHidden } from './prefs.js';
import { text } from './text.js';
import { attr, button, h, pieces } from './view.js';

const t = text.portfolio;

export function byBroker(document) {
  return document.holdings.map((one) => ({
    ...one, key: `${one.broker} ${one.exchange}:${one.tradingsymbol} ${one.isin}`, brokers: one.broker.toUpperCase(), parts: [one],
    search: `${one.tradingsymbol} ${one.isin ?? ''} ${one.exchange}`.toLowerCase(),
  }));
}

export function merged(document) {
  const of = new Map();
  for (const one of document.holdings) of.set(one.isin, [...(of.get(one.isin) ?? []), one]);
  const rows = document.summary.merged.map((row) => {
    const parts = of.get(row.isin) ?? [];
    // The newest price of the parts is shown; nothing is computed from them here.
    const priced = [...parts].filter((part) => part.as_of).sort((a, b) => (a.as_of < b.as_of ? 1 : -1))[0] ?? {};
    return {
      ...row, key: row.isin, parts, exchange: parts[0]?.exchange, brokers: [...new Set(parts.map((part) => part.broker.toUpperCase()))].join('+'),
      last_price: priced.last_price ?? null, as_of: priced.as_of ?? null, stale: priced.stale, delay_s: priced.delay_s,
      simulated: parts.length > 0 && parts.every((part) => part.simulated),
      search: parts.map((part) => `${part.tradingsymbol} ${part.isin ?? ''} ${part.exchange}`).join(' ').toLowerCase(),
    };
  });
  // Merged by the API is what stands at both brokers; the rest is a row as it is.
  const isMerged = new Set(rows.map((row) => row.isin));
  return [...rows, ...byBroker({ holdings: document.holdings.filter(({ isin }) => !isMerged.has(isin)) })];
}

const some = (row, read) => row.parts.find((part) => read(part));

/** What a person must know about a holding, in words. */
function marks(row) {
  /** @type {[string, string, string, any][]} */
  const found = [
    ['note', t.marks.unresolved, t.why.unresolved, some(row, (part) => part.unresolved)],
    ['delayed', t.marks.discrepancy, t.why.discrepancy, some(row, (part) => part.discrepancy)],
    ['delayed', t.marks.action, t.why.action, some(row, (part) => part.corporate_action)],
    ['note', t.marks.disputed, t.why.disputed, some(row, (part) => part.disputed_quantity)],
  ];
  return found.filter(([, , , there]) => there).flatMap(([kind, words, why]) => [' ', { text: words, kind: `mark ${kind}`, title: why }]);
}

/** Settled, not yet delivered, pledged, funded. */
function quantities(row) {
  if (amountsHidden()) return [HIDDEN];
  const parts = row.parts.length === 1 ? row.parts[0] : row;
  const notes = [];
  if (parts.t1_quantity) notes.push(`T1 ${quantity(parts.t1_quantity)}`);
  if (parts.pledged_quantity) notes.push(t.pledged(quantity(parts.pledged_quantity)));
  if (parts.mtf_quantity) notes.push(t.funded(quantity(parts.mtf_quantity)));
  return [quantity(row.quantity), ...notes.flatMap((words) => [' ', { text: words, kind: 'note-small' }])];
}

function lastPrice(row) {
  if (row.last_price === null) return [{ text: '–', title: t.noPrice }];
  const open = live.valueOf('snapshot')?.market.is_open ?? false;
  const old = age(row, { now: serverNow(), open });
  const when = row.as_of ? t.priceOf(moments(row.as_of, serverNow())) : undefined;
  return [{ text: price(row.last_price), title: when }, ...(old ? [' ', { text: old.words, kind: `mark ${old.kind}` }] : [])];
}

const amount = (value, why) => (amountsHidden() ? HIDDEN : { text: rupees(value), title: value == null ? why : undefined });

const moved = (value, format, why) => ({ text: value == null ? '–' : `${arrow(value)} ${format(value)}`, kind: direction(value), title: value == null ? why : undefined });

export function holdingColumns() {
  return [
    {
      key: 'name', label: t.instrument, wide: true, sort: (row) => row.tradingsymbol, csv: (row) => row.tradingsymbol,
      control: opener,
      show: (row) => [{ text: row.tradingsymbol, kind: 'symbol' }, ' ', { text: t.at(row.exchange ?? '', row.brokers), kind: 'muted' }, ...marks(row)],
    },
    { key: 'quantity', label: t.quantity, hint: t.quantityHint, number: true, show: quantities, sort: (row) => row.quantity, csv: (row) => row.quantity },
    {
      key: 'average', label: t.average, number: true, sort: (row) => row.average_price, csv: (row) => row.average_price,
      show: (row) => (amountsHidden() ? HIDDEN : { text: price(row.average_price), title: row.average_price === null ? t.noCost : undefined }),
    },
    { key: 'last', label: t.last, number: true, live: true, show: lastPrice, sort: (row) => row.last_price, csv: (row) => row.last_price },
    { key: 'invested', label: t.invested, number: true, show: (row) => amount(row.invested, t.noCost), sort: (row) => row.invested, csv: (row) => row.invested },
    { key: 'value', label: t.value, number: true, live: true, show: (row) => amount(row.current_value, t.noPrice), sort: (row) => row.current_value, csv: (row) => row.current_value },
    {
      key: 'pnl', label: t.pnl, number: true, live: true, sort: (row) => row.pnl, csv: (row) => row.pnl,
      show: (row) => (amountsHidden() ? { text: HIDDEN, kind: direction(row.pnl) } : moved(row.pnl, signedRupees, t.noCost)),
    },
    { key: 'pct', label: t.pnlPct, number: true, live: true, show: (row) => moved(row.pnl_pct, percent, t.noCost), sort: (row) => row.pnl_pct, csv: (row) => row.pnl_pct },
    { key: 'day', label: t.dayPct, hint: t.dayHint, number: true, live: true, show: (row) => moved(row.day_change_pct, percent, t.noClose), sort: (row) => row.day_change_pct, csv: (row) => row.day_change_pct },
    { key: 'share', label: t.share, hint: t.shareHint, number: true, show: (row) => (row.share_pct == null ? { text: '–', title: t.noPrice } : percent(row.share_pct).replace('+', '')), sort: (row) => row.share_pct, csv: (row) => row.share_pct },
  ];
}

function opener(current, toggle) {
  const node = button('▸', () => toggle(node), { class: 'opener', 'aria-expanded': 'false' });
  attr(node, 'aria-label', t.open(current().tradingsymbol));
  return node;
}

/** What a merged row is made of. */
export function partsOf(row) {
  return h('ul', { class: 'parts' }, row.parts.map((part) => h('li', null,
    h('b', null, t.broker[part.broker]), h('span', null, `${part.exchange}:${part.tradingsymbol}`),
    h('span', null, t.quantity, ' ', pieces(quantities({ ...part, parts: [part] }))),
    h('span', null, `${t.average} `, amountsHidden() ? HIDDEN : price(part.average_price)),
    h('span', null, `${t.last} ${price(part.last_price)}`, part.source && ` (${text.source[part.source] ?? part.source})`, part.as_of && `, ${moments(part.as_of, serverNow())}`),
    h('span', null, `${t.value} `, amountsHidden() ? HIDDEN : rupees(part.current_value)),
    part.known_cost && h('span', null, t.knownCost(quantity(part.known_cost.quantity), amountsHidden() ? HIDDEN : rupees(part.known_cost.cost))),
    part.broker_pnl !== null && part.broker_pnl !== part.pnl && h('span', null, t.brokerSays(amountsHidden() ? HIDDEN : signedRupees(part.broker_pnl))))));
}
