export const holdingParts = {
  /** @param {string} n @param {string} cost */
  knownCost: (n, cost) => `cost known of ${n}: ${cost}`,
  /** @param {string} pnl */
  brokerSays: (pnl) => `broker’s own P&L ${pnl}`,
};
