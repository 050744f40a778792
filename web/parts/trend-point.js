// What a point of the trend says in words: how it came about, what it comes to, and what all points show.
import { day, isKnown, rupees, signedRupees } from '../data/format.js';
import { signedShare } from '../data/ratio-format.js';
import { trend as t } from '../text/trend.js';
import { secret } from './figures.js';
import { h, pieces, put } from './view.js';

const money = secret(rupees);
export const signedMoney = secret(signedRupees);

/** What is at a point. @param {HTMLElement} node @param {Point} p */
export function drawReadout(node, p) {
  const gained = [signedMoney(p.total_pnl), gainOf(p)].filter(Boolean).join(' ');
  const bits = t.readout(day(p.date), money(p.total_current_value), money(p.total_invested), gained);
  const plain = how(p).map((bit) => (typeof bit === 'string' ? bit : { ...bit, why: undefined }));
  put(
    node,
    bits.map((its) => h('span', null, its, ' ')),
    h('span', { class: 'muted told' }, pieces(plain)),
  );
}

/** The gain of a point in percent of what it cost, to one place. @param {Point} p */
const gainOf = (p) => (p.total_invested > 0 ? `(${signedShare(p.total_pnl / p.total_invested)})` : '');

/** How a point came about. @param {Point} p @returns {Bit[]} */
export function how(p) {
  /** @type {Bit[]} */
  const bits = [p.source === 'sync' ? `● ${t.sync}` : p.source === 'close' ? `· ${t.close}` : p.source];
  if (p.left_out) bits.push(', ', { text: t.leftOut(p.left_out), kind: 'muted' });
  if (p.carried) bits.push(', ', { text: t.carried(p.carried), kind: 'muted' });
  if (p.discrepancies)
    bits.push(', ', { text: t.discrepancies(p.discrepancies), kind: 'muted', why: t.discrepancyWhy });
  if (p.suspect) bits.push(' ', { text: `⚠ ${t.suspect}`, kind: 'mark delayed', why: t.suspectWhy });
  return bits;
}

/** What the picture shows, in a sentence. @param {Point[]} points @param {'pnl' | 'value'} view */
export function summary(points, view) {
  const first = points[0];
  const last = points[points.length - 1];
  if (points.length === 1)
    return t.one(view === 'pnl' ? signedMoney(first.total_pnl) : money(first.total_current_value), day(first.date));
  const told = (/** @type {Point} */ p) => [signedMoney(p.total_pnl), gainOf(p)].filter(Boolean).join(' ');
  if (view === 'pnl') return t.pnlFrom(told(first), day(first.date), told(last), day(last.date));
  const known = points.filter((p) => isKnown(p.total_current_value));
  const low = known.reduce((least, p) => (p.total_current_value < least.total_current_value ? p : least), known[0]);
  return t.valueFrom(
    money(first.total_current_value),
    day(first.date),
    money(last.total_current_value),
    day(last.date),
    money(low.total_current_value),
    day(low.date),
  );
}
