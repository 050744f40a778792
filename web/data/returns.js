// What is not in a return, by its reason. Pure; no money is computed.

/** @typedef {Answer<'/api/trades/returns'>['left_out'][number]} NotIn */

/**
 * Shares that are left out, by their reason, and what is left out of all of them.
 * @param {NotIn[]} rows
 */
export function notIn(rows) {
  /** @type {Map<string, Set<string>>} */
  const groups = new Map();
  const besides = [];
  for (const { symbol, isin, reason } of rows) {
    const name = symbol ?? isin;
    if (name) groups.set(reason, (groups.get(reason) ?? new Set()).add(name));
    else besides.push(reason);
  }
  const shares = new Set(rows.map(({ isin, symbol }) => isin ?? symbol).filter(Boolean)).size;
  return { shares, groups: [...groups].map(([reason, names]) => ({ reason, names: [...names] })), besides };
}
