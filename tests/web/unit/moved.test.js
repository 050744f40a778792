// The portfolio's page from the rows that have moved.
import assert from 'node:assert/strict';
import test from 'node:test';
import { withMoved } from '../../../web/data/moved.js';

const row = (tradingsymbol, last_price, broker = 'a') => ({ broker, exchange: 'NSE', tradingsymbol, isin: `IN${tradingsymbol}`, last_price });
const merged = (isin, pnl) => ({ isin, pnl });
const whole = { holdings: [row('A', 1), row('B', 2), row('B', 3, 'b')], summary: { total_pnl: 1, merged: [merged('INB', 1)] } };

test('rows that moved take their places, new ones come behind, and sums are those of now', () => {
  const moved = { since: 'x', holdings: [row('B', 9, 'b'), row('C', 4)], summary: { total_pnl: 7, merged: [] } };
  const now = withMoved(whole, moved);
  assert.deepEqual(now.holdings, [row('A', 1), row('B', 2), row('B', 9, 'b'), row('C', 4)]);
  assert.deepEqual(now.summary, { total_pnl: 7, merged: [merged('INB', 1)] });
  assert.equal(now.holdings[0], whole.holdings[0], 'what stands is the same object');
  const again = withMoved(now, { since: 'y', holdings: [], summary: { total_pnl: 8, merged: [merged('INB', 2)] } });
  assert.deepEqual(again.holdings, now.holdings);
  assert.deepEqual(again.summary.merged, [merged('INB', 2)]);
});

test('without since, or before anything, an answer is the whole', () => {
  const answer = { holdings: [row('A', 5)], summary: { total_pnl: 0, merged: [] } };
  assert.equal(withMoved(whole, answer), answer);
  const part = { since: 'x', ...answer };
  assert.equal(withMoved(null, part), part);
});
