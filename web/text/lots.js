import { plural } from '../text.js';

export const lots = {
  title: 'Lots',
  caption: 'Open purchases, first in, first out',
  bought: 'Bought',
  cost: 'Cost',
  gain: 'Unrealised',
  noCost: 'The cost is not known',
  noPrice: 'There is no price',
  long: 'long-term',
  /** @param {number} days @param {string} from */
  turns: (days, from) => `short-term, long in ${plural(days, 'day', 'days')} (${from})`,
  none: 'No lots of it are known.',
  bring: 'Bring its trades in',
  last: 'Your last trades',
  /** @param {string} side @param {string} n @param {string} price */
  whatOf: (side, n, price) => `${side} ${n} × ${price}`,
  disagree: 'two rows disagree',
  toTrades: 'To the trades',
};
