// A rate as the law names it: 12.5 %. Pure.
import { known, number } from './format.js';

const plain = known(number({ maximumFractionDigits: 4 }));

/** @param {import('./format.js').Figure} value */
export const share = (value) => `${plain(value)} %`;
