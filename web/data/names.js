// Names of companies and indices by their symbols, learnt once for all pages of a visit.
import { call, withQuery } from './api.js';

/** @type {Map<string, string | null>} */
const known = new Map();

/** @param {string} symbol */
export const nameOf = (symbol) => known.get(symbol) ?? null;

/** A name that came with something else. @param {string} symbol @param {string | null} name */
export const learn = (symbol, name) => known.set(symbol, name);

/** Symbols by the ISINs of their shares; null where no list has it. @type {Map<string, string | null>} */
const listed = new Map();

/** @param {string | null} isin */
export const symbolOfIsin = (isin) => (isin && listed.get(isin)) ?? null;

/** Most symbols of a request. */
const AT_ONCE = 50;

/** What was asked for last: who asks next waits for it, and asks for nothing that it brings. */
let asking = Promise.resolve(false);

/** Asks for the names that are not known yet; tells whether any came. @param {string[]} symbols */
export const learnNames = (symbols) => (asking = asking.then(() => ask(symbols)));

/** Asks for the symbols of ISINs that are not known yet; tells whether any came. @param {string[]} isins */
export const learnSymbols = (isins) => (asking = asking.then(() => askSymbols(isins)));

/** @param {string[]} isins */
async function askSymbols(isins) {
  const unknown = [...new Set(isins)].filter((isin) => !listed.has(isin));
  let isAny = false;
  try {
    while (unknown.length > 0) {
      const asked = unknown.splice(0, AT_ONCE);
      const { instruments } = await call(withQuery('/api/market/search', { isins: asked.join(',') }));
      for (const isin of asked) listed.set(isin, null);
      for (const { isin, symbol, name } of instruments) {
        listed.set(String(isin), symbol);
        known.set(symbol, name);
      }
      isAny ||= instruments.length > 0;
    }
  } catch {
    // A later look asks again.
  }
  return isAny;
}

/** @param {string[]} symbols */
async function ask(symbols) {
  const unknown = [...new Set(symbols)].filter((symbol) => !known.has(symbol)).slice(0, AT_ONCE);
  if (unknown.length === 0) return false;
  try {
    const { instruments } = await call(withQuery('/api/market/search', { symbols: unknown.join(',') }));
    for (const symbol of unknown) known.set(symbol, null);
    for (const { symbol, name } of instruments) known.set(symbol, name);
    return instruments.length > 0;
  } catch {
    // A later look asks again.
    return false;
  }
}
