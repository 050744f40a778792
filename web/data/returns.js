// What is not in a return, by its reason. Pure; no money is computed.

/** @typedef {Answer<'/api/trades/returns'>['left_out'][number]} NotIn */

/**
 * Shares that are left out, by their reason, and what is left out of all of them.
 * @param {NotIn[]} rows
 * @param {(row: NotIn) => string} [nameOf]
 */
export function notIn(rows, nameOf = ({ symbol, isin }) => symbol ?? isin ?? '') {
  /** @type {Map<string, Set<string>>} */
  const groups = new Map();
  const besides = [];
  for (const row of rows) {
    const { symbol, isin, reason } = row;
    const name = symbol || isin ? nameOf(row) : '';
    if (name) groups.set(reason, (groups.get(reason) ?? new Set()).add(name));
    else besides.push(reason);
  }
  const shares = new Set(rows.map(({ isin, symbol }) => isin ?? symbol).filter(Boolean)).size;
  return { shares, groups: [...groups].map(([reason, names]) => ({ reason, names: [...names] })), besides };
}
