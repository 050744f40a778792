// What stands at the axes of charts: short, since nobody reads it to the paisa.
import { count, date, moment, number, price, signed } from './format.js';

const compact = number({ notation: 'compact', maximumFractionDigits: 2 });

/** Without paise from a thousand on. @param {number} value */
export const mark = (value) => (Math.abs(value) >= 1000 ? count(value) : price(value));

/** A round figure, which loses nothing by being short: ₹5L. @param {number} value */
export const axisRupees = (value) => signed(`${value < 0 ? '-' : ''}₹${compact.format(Math.abs(value))}`);

export const month = moment(date({ month: 'short', year: 'numeric' }));
