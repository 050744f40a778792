// Shares of one, such as the part of signals that came true.
import { UNKNOWN, isKnown, number, signed } from './format.js';

/** @typedef {import('./format.js').Figure} Figure */

const ONE = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
const plain = number(ONE);
const changed = number({ ...ONE, signDisplay: 'exceptZero' });

/** As percent: 0.5123 is 51.2 %. @param {Figure} value */
export const share = (value) => (isKnown(value) ? `${plain.format(value * 100)} %` : UNKNOWN);

/** As percent with its sign: +6.2 %. @param {Figure} value */
export const signedShare = (value) => (isKnown(value) ? `${signed(changed.format(value * 100))} %` : UNKNOWN);

/** A difference of two in points: +1.6 points. @param {Figure} value */
export const points = (value) => (isKnown(value) ? `${signed(changed.format(value * 100))} points` : UNKNOWN);
