// W14: numbers, times and words, without a page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as format from '../../../web/data/format.js';
import { axisRupees, mark } from '../../../web/data/axis-format.js';
import { points, share } from '../../../web/data/ratio-format.js';
import { wilson } from '../../../web/charts/reliability.js';

test('rupees are grouped as in India, to the paisa', () => {
  const rows = [
    [0, '₹0.00'], [-0, '₹0.00'], [-0.001, '₹0.00'], [99_999, '₹99,999.00'], [100_000, '₹1,00,000.00'],
    [9_999_999, '₹99,99,999.00'], [10_000_000, '₹1,00,00,000.00'], [-1_234_567.5, '−₹12,34,567.50'],
    [14_761_843.85, '₹1,47,61,843.85'], [null, '–'], [undefined, '–'], [NaN, '–'],
  ];
  for (const [value, expected] of rows) assert.equal(format.rupees(value), expected);
  assert.equal(format.signedRupees(1632560.65), '+₹16,32,560.65');
  assert.equal(format.signedRupees(-17864), '−₹17,864.00');
  assert.equal(format.signedRupees(0), '₹0.00');
});

test('a symbol is called by its ticker, and by its exchange where that is not the NSE', () => {
  const rows = [['NSE:INFY', 'INFY'], ['NSE:NIFTY 50', 'NIFTY 50'], ['BSE:SENSEX', 'SENSEX BSE'], ['NFO:NIFTY26NOVFUT', 'NIFTY26NOVFUT NFO'], ['INFY', 'INFY'], ['NIFTY: a call', 'NIFTY: a call'], ['', '']];
  for (const [symbol, expected] of rows) assert.equal(format.called(symbol), expected);
  assert.deepEqual(format.parted('BSE:SENSEX'), ['SENSEX', 'BSE']);
});

test('marks of an axis are short, whatever they stand for', () => {
  const rows = [[0, '₹0'], [500_000, '₹5L'], [1_500_000, '₹15L'], [10_000_000, '₹1Cr'], [-200_000, '−₹2L']];
  for (const [value, expected] of rows) assert.equal(axisRupees(value), expected);
  assert.equal(mark(1550), '1,550');
  assert.equal(mark(95.5), '95.50');
});

test('changes carry a sign and a mark that is not colour alone', () => {
  assert.equal(format.percent(0.42), '+0.42 %');
  assert.equal(format.percent(-0.1), '−0.10 %');
  assert.equal(format.percent(0), '0.00 %');
  assert.equal(format.percent(null), '–');
  assert.equal(points(0.0164), '+1.6 points');
  assert.equal(points(-0.0312), '−3.1 points');
  assert.deepEqual([1, -1, 0, null].map(format.arrow), ['▲', '▼', '=', '']);
  assert.deepEqual([-2, -1.5, -0.31, -0.3, 0.3, 0.31, 1.5, null].map(format.heat),
    ['down2', 'down2', 'down1', 'even', 'even', 'up1', 'up2', 'unknown']);
});

test('quantities keep their decimals and shares are percent', () => {
  assert.equal(format.quantity(1234.567891), '1,234.567891');
  assert.equal(format.quantity(356), '356');
  assert.equal(share(0.5123), '51.2 %');
  assert.equal(share(null), '–');
});

test('times are of India, whatever zone the device is in', () => {
  const at = '2026-11-20T11:00:17+05:30';
  assert.equal(format.time(at), '11:00:17');
  assert.equal(format.minute('2026-11-20T18:45:00Z'), '00:15');
  assert.equal(format.day(at), '20 Nov 2026');
  assert.equal(format.isoDay(Date.parse('2026-11-20T20:00:00Z')), '2026-11-21');
  assert.equal(format.moments(at, Date.parse(at) + 3600e3), '11:00');
  assert.equal(format.moments(at, Date.parse(at) + 24 * 3600e3), '20 Nov, 11:00');
  assert.equal(format.moments(at, NaN), '20 Nov, 11:00', 'before the first answer tells the time');
  assert.equal(format.time(null), '–');
  assert.equal(format.time('nonsense'), '–');
});

test('the age of a price is said by the first that applies', () => {
  const as_of = '2026-11-20T11:00:00+05:30';
  const market = (later, open) => ({ now: Date.parse(as_of) + later * 1000, open });
  const words = (price, later, open = true) => format.age({ as_of, ...price }, market(later, open))?.words;
  assert.equal(words({ stale: true, delay_s: 900 }, 70), 'Stale, from 11:00');
  assert.equal(words({ stale: false, delay_s: 900 }, 70), 'Delayed 15 min');
  // A flag that says fresh does not make an old price fresh.
  assert.equal(words({ stale: false }, 15 * 60), 'Delayed 15 min');
  assert.equal(words({ stale: false, delay_s: 900 }, 20 * 60), 'Delayed 20 min');
  assert.equal(words({ stale: false }, 59), undefined);
  assert.equal(words({ stale: false }, 61), 'Delayed 1 min');
  // After the close no newer price can be.
  assert.equal(words({ stale: false }, 3600, false), undefined);
  assert.equal(words({ stale: false }, NaN), undefined);
});

test('spans are short words', () => {
  const rows = [[47, '47 s'], [60, '1 min'], [900, '15 min'], [4320, '1 h 12 min'], [7200, '2 h'], [200_000, '2 days'], [-3, '0 s']];
  for (const [seconds, expected] of rows) assert.equal(format.span(seconds), expected);
});

test('the interval of a share of hits is Wilson’s', () => {
  const { low, high } = wilson(50, 100);
  assert.ok(Math.abs(low - 0.4038) < 1e-4 && Math.abs(high - 0.5962) < 1e-4);
  assert.ok(wilson(0, 3).low === 0 && wilson(3, 3).high === 1);
});
