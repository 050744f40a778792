// Numbers, times and the words for how old a price is. Pure: no page, no network, no clock of its own.

const IN = 'en-IN';
const ZONE = 'Asia/Kolkata';

/** What stands for a figure that is not known. */
export const UNKNOWN = '–';
/** What stands for a hidden amount. */
export const HIDDEN = '•••';

/** A price that runs behind by more than this while the market trades is never shown as current. */
export const FRESH_S = 60;

/** @param {Intl.NumberFormatOptions} options */
export const number = (options) => new Intl.NumberFormat(IN, { signDisplay: 'negative', ...options });
/** @param {Intl.DateTimeFormatOptions} options */
export const date = (options) => new Intl.DateTimeFormat(IN, { timeZone: ZONE, hourCycle: 'h23', ...options });

const TWO = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
const RUPEES = { style: /** @type {'currency'} */ ('currency'), currency: 'INR', ...TWO };
const formats = {
  rupees: number(RUPEES),
  signedRupees: number({ ...RUPEES, signDisplay: 'exceptZero' }),
  price: number(TWO),
  signedPrice: number({ ...TWO, signDisplay: 'exceptZero' }),
  quantity: number({ maximumFractionDigits: 6 }),
  count: number({ maximumFractionDigits: 0 }),
  time: date({ hour: '2-digit', minute: '2-digit', second: '2-digit' }),
  minute: date({ hour: '2-digit', minute: '2-digit' }),
  day: date({ day: 'numeric', month: 'short', year: 'numeric' }),
  shortDay: date({ day: 'numeric', month: 'short' }),
  weekday: date({ weekday: 'short', day: 'numeric', month: 'short' }),
  iso: new Intl.DateTimeFormat('en-CA', { timeZone: ZONE }),
};

/** @typedef {number | null | undefined} Figure */
/** A time: of the API, or in ms. @typedef {string | number | null | undefined} When */

/** @type {(value: unknown) => value is number} */
export const isKnown = (value) => typeof value === 'number' && Number.isFinite(value);

/** A minus as wide as the plus: beside figures a hyphen looks like a stroke. @param {string} words */
export const signed = (words) => words.replace('-', '\u2212');

/** @type {(format: Intl.NumberFormat) => (value: Figure) => string} */
export const known = (format) => (value) => (isKnown(value) ? signed(format.format(value)) : UNKNOWN);

export const rupees = known(formats.rupees);
/** +₹1,23,456.00: a change of money, whose sign is said. */
export const signedRupees = known(formats.signedRupees);
export const price = known(formats.price);
export const signedPrice = known(formats.signedPrice);
/** Up to six decimals, as units of funds have. */
export const quantity = known(formats.quantity);
export const count = known(formats.count);
/** A percentage with its sign: +0.42 %. @param {Figure} value */
export const percent = (value) => (isKnown(value) ? `${signedPrice(value)} %` : UNKNOWN);

/** The mark before a change: colour is never alone. @param {Figure} value */
export function arrow(value) {
  if (!isKnown(value)) return '';
  return value > 0 ? '▲' : value < 0 ? '▼' : '=';
}

/** The class of a change. @param {Figure} value */
export function direction(value) {
  if (!isKnown(value)) return 'none';
  return value > 0 ? 'gain' : value < 0 ? 'loss' : 'even';
}

const LISTED = /^(?:NSE|(BSE|NFO|BFO|CDS|MCX)):(.+)$/;
/** The ticker of a symbol, and its exchange where that is not the NSE. @param {string} symbol */
export function parted(symbol) {
  const [, exchange = '', ticker] = LISTED.exec(symbol) ?? ['', '', symbol];
  return [ticker, exchange];
}

/** What people call a symbol. @param {string} symbol */
export const called = (symbol) => parted(symbol).join(' ').trim();

/** The step of a sector's tile, cut at 0.3 and 1.5 percent. @param {Figure} percentage */
export function heat(percentage) {
  if (!isKnown(percentage)) return 'unknown';
  if (percentage <= -1.5) return 'down2';
  if (percentage < -0.3) return 'down1';
  if (percentage <= 0.3) return 'even';
  return percentage < 1.5 ? 'up1' : 'up2';
}

/** @type {(format: Intl.DateTimeFormat) => (when: When) => string} */
export const moment = (format) => (when) => {
  if (when === null || when === undefined) return UNKNOWN;
  const at = new Date(when);
  return Number.isNaN(at.getTime()) ? UNKNOWN : format.format(at);
};

export const time = moment(formats.time);
export const minute = moment(formats.minute);
export const day = moment(formats.day);
export const shortDay = moment(formats.shortDay);
export const weekday = moment(formats.weekday);
/** @param {string | number} at */
export const isoDay = (at) => formats.iso.format(new Date(at));

/** The time alone where it is of today, else with its day, as long as the server's clock is not known too. @param {string | null | undefined} when @param {number} now */
export function moments(when, now) {
  if (!when) return UNKNOWN;
  return isKnown(now) && isoDay(Date.parse(when)) === isoDay(now) ? minute(when) : `${shortDay(when)}, ${minute(when)}`;
}

/** @param {number} seconds */
export function span(seconds) {
  const s = Math.max(0, Math.floor(seconds));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min`;
  const hours = Math.floor(min / 60);
  if (hours < 48) return min % 60 === 0 ? `${hours} h` : `${hours} h ${min % 60} min`;
  return `${Math.floor(hours / 24)} days`;
}

/**
 * How old a price is, in the words that stand beside it.
 * @param {{ as_of?: string | null, stale?: boolean, delay_s?: number | null }} price
 * @param {{ now: number, open: boolean }} market
 */
export function age(price, market) {
  if (price.stale) return { kind: 'stale', words: `Stale, from ${moments(price.as_of, market.now)}` };
  const ageS = price.as_of ? (market.now - Date.parse(price.as_of)) / 1000 : 0;
  const old = market.open && ageS > FRESH_S ? ageS : 0;
  const behind = Math.max(price.delay_s ?? 0, old);
  return behind > 0 ? { kind: 'delayed', words: `Delayed ${span(behind)}` } : null;
}
