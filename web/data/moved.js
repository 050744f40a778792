// Puts together what the portfolio's page has and the rows that have moved since.

/** @typedef {Answer<'/api/portfolio/holdings'>} Holdings */

/** What names a row of a broker. @param {Holdings['holdings'][number]} row */
const nameOf = (row) => `${row.broker} ${row.exchange}:${row.tradingsymbol} ${row.isin}`;

/**
 * The rows of before with those that have moved in their places, and new ones behind them.
 * @template Row
 * @param {Row[]} before
 * @param {Row[]} moved
 * @param {(row: Row) => string} name
 */
function joined(before, moved, name) {
  const news = new Map(moved.map((row) => [name(row), row]));
  const rows = before.map((row) => {
    const now = news.get(name(row)) ?? row;
    news.delete(name(row));
    return now;
  });
  return [...rows, ...news.values()];
}

/** The whole after an answer, which may be of the rows that moved alone. @param {Holdings | null} before @param {Holdings} answer @returns {Holdings} */
export function withMoved(before, answer) {
  if (!before || answer.since === undefined) return answer;
  return {
    holdings: joined(before.holdings, answer.holdings, nameOf),
    summary: { ...answer.summary, merged: joined(before.summary.merged, answer.summary.merged, ({ isin }) => isin) },
  };
}
