// W14: what charts compute before they draw.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extent, path, ticks } from '../../../web/charts/chart.js';
import { estimated } from '../../../web/data/estimate.js';
import { rebased, runs } from '../../../web/data/trend.js';

const on = { x: (at) => at * 10, y: (value) => 100 - value };

test('an axis has round figures within its ends', () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(1_480, 1_720, 6), [1500, 1550, 1600, 1650, 1700]);
  assert.deepEqual(ticks(5, 5, 5), [5]);
});

test('a flat or single series has room around it, and none at all has no span', () => {
  assert.deepEqual(extent([100]), { low: 98, high: 102 });
  assert.deepEqual(extent([0, 0]), { low: -1, high: 1 });
  assert.equal(extent([null, null]), null);
  assert.equal(extent([]), null);
  const { low, high } = extent([100, null, 200]);
  assert.ok(low < 100 && high > 200);
});

test('no line is drawn through what is not known', () => {
  assert.equal(path([1, 2], on), 'M0.0 99.0L10.0 98.0');
  assert.equal(path([1, null, 3], on), 'M0.0 99.0M20.0 97.0');
  assert.equal(path([null], on), '');
});

test('the line of the trend breaks where brokers or holdings have changed, and not where that is not known', () => {
  const of = (brokers, holdings) => ({ brokers, holdings });
  const points = [of(null, null), of(['a'], 3), of(['a'], 3), of(['a', 'b'], 9), of(['a', 'b'], 8), of(['a', 'b'], 8), of(['a', 'b'], 0), of(null, null)];
  assert.deepEqual(runs(points), [[0, 1, 2], [3], [4, 5], [6, 7]]);
  assert.deepEqual(runs([]), []);
  assert.equal(path([1, 2, 3], on, (at) => at === 2), 'M0.0 99.0L10.0 98.0M20.0 97.0');
});

test('an index is drawn from the value of the first day on, with its last close by each date', () => {
  const points = ['2026-11-12', '2026-11-13', '2026-11-15', '2026-11-17'].map((date, n) => ({ date, total_current_value: [null, 50_000, 60_000, 70_000][n] }));
  const candles = [['2026-11-12', 24_000], ['2026-11-13', 25_000], ['2026-11-16', 25_500], ['2026-11-17', 24_500]].map(([date, close]) => ({ date, close }));
  // 25,000 is 50,000: 24,500 is 49,000. The Sunday has Friday's close.
  assert.deepEqual(rebased(points, candles), [null, 50_000, 50_000, 49_000]);
  assert.deepEqual(rebased(points, []), [null, null, null, null]);
  assert.deepEqual(rebased(points, candles.slice(2)), [null, null, null, 70_000]);
  // Where brokers or holdings changed it begins anew.
  const changed = points.map((p, at) => ({ ...p, brokers: ['a'], holdings: at < 2 ? 3 : 4 }));
  assert.deepEqual(rebased(changed, candles), [null, 50_000, 60_000, 58_800]);
});

test('an estimate is the shares of today at closes of before, brought to the first value that is known', () => {
  const closes = (...rows) => rows.map(([date, close]) => ({ date, close }));
  const infy = { symbol: 'NSE:INFY', quantity: 10, value: 16_000, candles: closes(['2026-11-09', 1_400], ['2026-11-11', 1_500], ['2026-11-12', 1_600]) };
  const tcs = { symbol: 'NSE:TCS', quantity: 1, value: 4_000, candles: closes(['2026-11-09', 3_800], ['2026-11-10', 4_000]) };
  const late = { symbol: 'NSE:NEW', quantity: 5, value: 5_000, candles: closes(['2026-11-10', 900]) };
  const first = { date: '2026-11-12', total_current_value: 25_000 };
  const dates = ['2026-11-09', '2026-11-10', '2026-11-11'];
  const found = estimated([infy, tcs, late], dates, first);
  // On the 12th the two are 20,000 of 25,000; what has no close on the 9th is taken to have moved like them.
  assert.deepEqual(found.points.map((p) => [p.date, p.total_current_value, p.source]), [['2026-11-09', 22_250, 'estimate'], ['2026-11-10', 22_500, 'estimate'], ['2026-11-11', 23_750, 'estimate']]);
  assert.deepEqual([found.part, found.shares, found.of], [0.8, 2, 3]);
  assert.equal(estimated([{ ...infy, value: 3_000 }, late], dates, first), null, 'less than half of the value');
  assert.equal(estimated([], dates, first), null);
  assert.equal(estimated([infy], [], first), null);
  assert.equal(estimated([infy], dates, { ...first, total_current_value: 0 }), null);
});
