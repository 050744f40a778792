// A small line of an index's closes of a month, which ends at the price of now. It is for the eye alone: the page of the
// index has the chart with its figures and its table.
import { call, withQuery } from '../data/api.js';
import { soonMs } from '../parts/awaited.js';
import { attr, s } from '../parts/view.js';

const DAYS = 22;
const [WIDTH, HEIGHT, EDGE] = [100, 32, 2];

/** What draws a new price into `place`, null without candles; and when to ask again for those that are being made. */
export async function spark(place, symbol) {
  const answer = await call(withQuery('/api/market/candles', { symbol, days: DAYS }));
  const { candles } = answer;
  if (candles.length < 2) return { draw: null, againMs: soonMs(answer) };
  const line = s('path', { fill: 'none', stroke: 'currentColor', 'vector-effect': 'non-scaling-stroke' });
  const box = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: '100%', height: '100%', preserveAspectRatio: 'none' };
  place.replaceChildren(s('svg', box, line));
  const draw = (now) => {
    const values = [...candles.map(({ close }) => close), now];
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (at) => (WIDTH * at) / (values.length - 1);
    const y = (value) => HEIGHT - EDGE - ((HEIGHT - 2 * EDGE) * (value - low)) / (high - low || 1);
    attr(line, 'd', `M${values.map((value, at) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join('L')}`);
  };
  return { draw, againMs: undefined };
}
