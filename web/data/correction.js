// A correction in one line of words. Pure.
import { corrections as t } from '../text/corrections.js';
import { day, price, quantity } from './format.js';

/** @typedef {{ kind: string, [member: string]: any }} Correction */

/**
 * "Bonus 1 for 1 of INE101A01026, 7 Feb 2025". What only the person knows is left out.
 * @param {Correction} of
 * @param {string | null} [name] of the share, in place of its ISIN
 */
export function correctionWords(of, name) {
  const ratio = of.numerator ? t.ratio(quantity(of.numerator), quantity(of.denominator)) : '';
  const many = of.quantity ? `${quantity(of.quantity)} of` : '';
  const share = name ?? of.isin ?? of.symbol ?? '';
  const rest = [
    of.new_isin && `to ${of.new_isin}`,
    of.to && `to account ${of.to}`,
    of.price && `at ${price(of.price)}`,
    of.cost && `for ${price(of.cost)}`,
    day(of.ex_date ?? of.date ?? null).replace('–', ''),
  ].filter(Boolean);
  const first = [ratio, ratio ? 'of' : many, share].filter(Boolean).join(' ');
  return `${t.kinds[of.kind] ?? of.kind}: ${[first, ...rest].join(', ')}`;
}
