// Rows of holdings: merged by ISIN as the API merges them, or one for each broker.
import { serverNow } from '../data/api.js';
import { HIDDEN, isKnown, moments, percent, price, quantity, rupees, signedRupees } from '../data/format.js';
import { amountsHidden } from '../data/prefs.js';
import { portfolio as t } from '../text/portfolio.js';
import { ageMark, change, figure, known, moved, secret } from './figures.js';
import { pathOf, symbolBits } from './view.js';

/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */

/** By which words the filter finds it. @param {Holding} one */
const wordsOf = (one) => `${one.tradingsymbol} ${one.name ?? ''} ${one.isin ?? ''} ${one.exchange}`.toLowerCase();

/** A row for each of a broker. @param {{ holdings: Holding[] }} document @returns {HoldingRow[]} */
export function byBroker(document) {
  return document.holdings.map((one) => ({
    ...one,
    key: `${one.broker} ${one.exchange}:${one.tradingsymbol} ${one.isin}`,
    brokers: one.broker.toUpperCase(),
    parts: [one],
    search: wordsOf(one),
  }));
}

/** A row for each share. @param {Holdings} document @returns {HoldingRow[]} */
export function merged(document) {
  /** @type {Map<string | null, Holding[]>} */
  const of = new Map();
  for (const one of document.holdings) of.set(one.isin, [...(of.get(one.isin) ?? []), one]);
  const rows = document.summary.merged.map((row) => {
    const parts = of.get(row.isin) ?? [];
    // The newest price of the parts is shown; nothing is computed from them here.
    const priced = [...parts]
      .filter((part) => part.as_of)
      .sort((a, b) => (String(a.as_of) < String(b.as_of) ? 1 : -1))[0];
    return {
      ...row,
      key: row.isin,
      parts,
      exchange: parts[0]?.exchange,
      brokers: [...new Set(parts.map((part) => part.broker.toUpperCase()))].join('+'),
      last_price: priced?.last_price ?? null,
      as_of: priced?.as_of ?? null,
      stale: priced?.stale,
      delay_s: priced?.delay_s,
      simulated: (parts.length > 0 && parts.every((part) => part.simulated)) || undefined,
      search: parts.map(wordsOf).join(' '),
    };
  });
  // Merged by the API is what stands at both brokers; the rest is a row as it is.
  /** @type {Set<string | null>} */
  const isMerged = new Set(rows.map((row) => row.isin));
  return [...rows, ...byBroker({ holdings: document.holdings.filter(({ isin }) => !isMerged.has(isin)) })];
}

/** @param {HoldingRow} row @param {(part: Holding) => unknown} read */
const some = (row, read) => row.parts.find((part) => read(part));

/** What a person must know about a holding, in words. @param {HoldingRow} row */
function marks(row) {
  /** @type {[string, string, string, any][]} */
  const found = [
    ['note', t.marks.unresolved, t.why.unresolved, some(row, (part) => part.unresolved)],
    ['delayed', t.marks.discrepancy, t.why.discrepancy, some(row, (part) => part.discrepancy)],
    ['delayed', t.marks.action, t.why.action, some(row, (part) => part.corporate_action)],
    ['note', t.marks.disputed, t.why.disputed, some(row, (part) => part.disputed_quantity)],
  ];
  return found
    .filter(([, , , there]) => there)
    .flatMap(([kind, words, why]) => [' ', { text: words, kind: `mark ${kind}`, why }]);
}

/** The company's name, where it says more than the code. @param {HoldingRow} row */
const companyOf = ({ name, tradingsymbol }) =>
  name && name.toUpperCase() !== tradingsymbol ? [' ', { text: name, kind: 'company' }] : [];

/** @typedef {'quantity' | 'parts' | 't1_quantity' | 'pledged_quantity' | 'mtf_quantity'} Quantities */

/** Settled, not yet delivered, pledged, funded. @param {Pick<HoldingRow, Quantities>} row @returns {Bit[]} */
export function quantities(row) {
  if (amountsHidden()) return [HIDDEN];
  const parts = row.parts.length === 1 ? row.parts[0] : row;
  const notes = [];
  if (parts.t1_quantity) notes.push(`T1 ${quantity(parts.t1_quantity)}`);
  if (parts.pledged_quantity) notes.push(t.pledged(quantity(parts.pledged_quantity)));
  if (parts.mtf_quantity) notes.push(t.funded(quantity(parts.mtf_quantity)));
  return [quantity(row.quantity), ...notes.flatMap((words) => [' ', { text: words, kind: 'note-small' }])];
}

/** @param {HoldingRow} row @returns {Bit[]} */
function lastPrice(row) {
  if (row.last_price === null) return [{ text: '–', why: t.noPrice }];
  const when = row.as_of ? moments(row.as_of, serverNow()) : '';
  // Nobody lists the code of an unresolved holding, so no feed will ever have a newer price.
  const isOfSync = some(row, (part) => part.unresolved) && when;
  return [
    { text: price(row.last_price), title: when ? t.priceOf(when) : undefined },
    ...(isOfSync ? [' ', { text: t.fromSync(when), kind: 'mark' }] : ageMark(row)),
  ];
}

/**
 * An amount of money, or a figure from which one could be told.
 * @param {string} of
 * @param {string} label
 * @param {(value: any) => string} format
 * @param {string} why
 * @param {Partial<Column<HoldingRow>>} more
 */
const amount = (of, label, format, why, more) => figure(of, label, (value) => known(value, secret(format), why), more);

const LIVE = { live: true };
/** Shown on a phone by a column of the phone's own. */
const TOLD = 'told';
const money = secret(signedRupees);

/** @returns {Column<HoldingRow>[]} */
export function holdingColumns() {
  return [
    {
      key: 'name',
      of: 'tradingsymbol',
      label: t.instrument,
      wide: true,
      at: 'a',
      show: (row) => [
        ...nameOf(row),
        ' ',
        { text: row.brokers, kind: 'muted' },
        ...marks(row),
        ...companyOf(row),
      ],
    },
    {
      key: 'lot',
      label: t.quantity,
      phone: true,
      at: 'c',
      show: (row) =>
        amountsHidden()
          ? HIDDEN
          : isKnown(row.average_price)
            ? t.lot(quantity(row.quantity), price(row.average_price))
            : t.shares(quantity(row.quantity)),
    },
    { of: 'quantity', label: t.quantity, hint: t.quantityHint, number: true, at: TOLD, show: quantities },
    amount('average_price', t.average, price, t.noCost, { rank: 3, at: TOLD }),
    { of: 'last_price', label: t.last, number: true, live: true, at: 'e', show: lastPrice },
    amount('invested', t.invested, rupees, t.noCost, { rank: 3 }),
    amount('current_value', t.value, rupees, t.noPrice, { ...LIVE, at: 'b' }),
    change('pnl', t.pnl, money, t.noCost, { ...LIVE, at: TOLD }),
    change('pnl_pct', t.pnlPct, percent, t.noCost, { ...LIVE, rank: 2, at: TOLD }),
    { key: 'gained', label: t.pnl, phone: true, live: true, at: 'd', show: gained },
    change('day_pnl', t.today, money, t.noClose, { ...LIVE, hint: t.dayHint, at: TOLD }),
    change('day_change_pct', t.dayPct, percent, t.noClose, { ...LIVE, hint: t.dayHint, rank: 2, at: TOLD }),
    {
      key: 'today',
      label: t.today,
      phone: true,
      live: true,
      at: 'f',
      show: (row) => [{ text: `${t.today} `, kind: 'muted' }, ...both(row.day_pnl, row.day_change_pct, t.noClose)],
    },
    // In the file alone: what an adviser or another program knows a share by.
    ...filed.map((column) => ({ ...column, fileOnly: true })),
    figure('share_pct', t.share, (value) => known(value, (it) => percent(it).replace('+', ''), t.noPrice), {
      hint: t.shareHint,
      rank: 3,
    }),
  ];
}

/** @type {Column<HoldingRow>[]} */
const filed = [
  { key: 'company', label: t.company, csv: (row) => row.name },
  { key: 'isin', label: 'ISIN', csv: (row) => row.isin },
  { key: 'exchange', label: t.exchange, csv: (row) => row.exchange },
  { key: 'brokers', label: t.brokers, csv: (row) => row.brokers },
  { key: 'as_of', label: t.priceTime, csv: (row) => row.as_of },
];

/** It has a page where a list of instruments has its code. @param {HoldingRow} row */
function nameOf(row) {
  const symbol = `${row.exchange}:${row.tradingsymbol}`;
  return symbolBits(symbol, row.parts[0]?.unresolved ? undefined : pathOf(symbol));
}

/** @param {HoldingRow} row */
const gained = (row) => both(row.pnl, row.pnl_pct, t.noCost);

/**
 * Rupees and percent of a change; of nothing there is no percentage.
 * @param {number | null} rupeesOf
 * @param {number | null} percentOf
 * @param {string} why
 * @returns {Bit[]}
 */
export const both = (rupeesOf, percentOf, why) =>
  isKnown(rupeesOf)
    ? [moved(rupeesOf, money), ...(isKnown(percentOf) ? [' ', moved(percentOf, percent)] : [])]
    : [moved(null, money, why)];
