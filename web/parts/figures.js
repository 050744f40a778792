// Figures as every page shows them: hidden on wish, with sign and age, and why one is not known.
import { serverNow } from '../data/api.js';
import { HIDDEN, UNKNOWN, age, arrow, direction, isKnown } from '../data/format.js';
import * as live from '../data/live.js';
import { amountsHidden } from '../data/prefs.js';
import { text } from '../text.js';
import { h } from './view.js';

/** @typedef {import('../data/format.js').Figure} Figure */
/** @typedef {(value: any) => string} Format */

/** The same format for what "Hide amounts" hides. @param {Format} format */
export const secret = (format) => (/** @type {Figure} */ value) =>
  amountsHidden() && isKnown(value) ? HIDDEN : format(value);

/** A figure, or a dash that says why it is not known. @type {(value: Figure, format: Format, why?: string) => Bit} */
export const known = (value, format, why) => (isKnown(value) ? format(value) : { text: UNKNOWN, why });

/** @typedef {{ text: string, kind?: string, why?: string }} Change */

/** A change with its sign and colour; `why` where it is not known. @type {(value: Figure, format: Format, why?: string) => Change} */
export const moved = (value, format, why) =>
  isKnown(value) ? { text: format(value), kind: direction(value) } : { text: UNKNOWN, why };

/** The same with an arrow, for the few large figures of a page. @type {(value: Figure, format: Format, why?: string) => Change} */
export const movedLarge = (value, format, why) =>
  isKnown(value) ? { text: `${arrow(value)} ${format(value)}`, kind: direction(value) } : { text: UNKNOWN, why };

export const isOpen = () => live.valueOf('snapshot')?.market.is_open ?? false;

/** How old a price is, where that must be said. @param {Parameters<typeof age>[0]} price @returns {Bit[]} */
export function ageMark(price) {
  const old = age(price, { now: serverNow(), open: isOpen() });
  return old ? [' ', { text: old.words, kind: `mark ${old.kind}` }] : [];
}

/** Whatever is of the simulator says so. @param {boolean | undefined} is */
export const simulated = (is) => is && h('b', { class: 'mark simulated' }, text.simulated);

/**
 * A column of figures, read from a member of the row.
 * @param {string} of
 * @param {string} label
 * @param {(value: any) => Bit} format
 * @param {Partial<Column<any>>} [more]
 * @returns {Column<any>}
 */
export const figure = (of, label, format, more) => ({
  of,
  label,
  number: true,
  show: (row) => format(row[of]),
  ...more,
});

/**
 * A column of changes.
 * @param {string} of
 * @param {string} label
 * @param {Format} format
 * @param {string} [why]
 * @param {Partial<Column<any>>} [more]
 */
export const change = (of, label, format, why, more) => figure(of, label, (value) => moved(value, format, why), more);
