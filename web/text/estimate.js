import { plural } from '../text.js';

export const estimate = {
  /** @param {{ part: number, shares: number, of: number }} estimated @param {string} d */
  of: ({ part, shares, of }, d) =>
    `Before ${d} an estimate: today’s quantities at the closes of those days, of ${shares} of ${plural(of, 'share', 'shares')} (${Math.round(100 * part)} % of the value).`,
  /** @param {string} d @param {string} v */
  at: (d, v) => `${d}: about ${v}, estimated`,
  none: 'There are too few closes of your shares for an estimate of earlier days.',
  legend: [
    [
      'estimate',
      'Estimated',
      'What you hold today at the closes of those days, brought to the value of the first day that is known. What you bought and sold before, charges and dividends are not in it.',
    ],
  ],
};
