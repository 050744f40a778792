// A small line of an index's closes of a month, which ends at the price of now. It is for the eye alone: the page of the
// index has the chart with its figures and its table.
import { call, withQuery } from '../data/api.js';
import { attr, s } from '../parts/view.js';

const DAYS = 22;
const [WIDTH, HEIGHT, EDGE] = [100, 32, 2];

/** Draws into `place`, and gives what draws a new price; null where no candles are stored. */
export async function spark(place, symbol) {
  const { candles } = await call(withQuery('/api/market/candles', { symbol, days: DAYS }));
  if (candles.length < 2) return null;
  const line = s('path', { fill: 'none', stroke: 'currentColor', 'vector-effect': 'non-scaling-stroke' });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: '100%', height: '100%', preserveAspectRatio: 'none' };
  place.append(s('svg', box, line));
  return (now) => {
    const values = [...candles.map(({ close }) => close), now];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (at) => (WIDTH * at) / (values.length - 1);
    const y = (value) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * (value - low)) / (high - low || 1);
    attr(line, 'd', `M${values.map((value, at) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}`);
  };
}
