// Daily candles with volume, and the last price as a line of its own.
import { mark } from '../data/axis-format.js';
import { price } from '../data/format.js';
import { s } from '../parts/view.js';
import { days, extent, grid, plane, ticks } from './chart.js';

/** The parts of the picture for a width; `last` is the price of now, if one is known. */
export function candles(list, { last, width }) {
  const height = width < 500 ? 280 : 340;
  const range = extent([...list.flatMap(({ high, low }) => [high, low]), last]) ?? { low: 0, high: 1 };
  const band = (width - 80) / Math.max(1, list.length);
  const on = plane({ width, height, y: range, points: list.length, inset: band / 2 });
  const body = Math.max(1, Math.min(12, band * 0.66));
  const most = Math.max(1, ...list.map(({ volume }) => volume));
  const floor = height - on.pad.bottom;
  const volumes = list.map(({ volume }, at) => {
    const tall = (volume / most) * 0.16 * height;
    return s('rect', { class: 'volume', x: on.x(at) - body / 2, y: floor - tall, width: body, height: tall });
  });
  const bars = list.map((candle, at) => {
    const [top, bottom] = [on.y(Math.max(candle.open, candle.close)), on.y(Math.min(candle.open, candle.close))];
    return s(
      'g',
      { class: candle.close >= candle.open ? 'up' : 'down' },
      s('line', { x1: on.x(at), x2: on.x(at), y1: on.y(candle.high), y2: on.y(candle.low) }),
      s('rect', { x: on.x(at) - body / 2, y: top, width: body, height: Math.max(1, bottom - top) }),
    );
  });
  const lastY = on.y(last);
  return {
    on,
    parts: [
      grid(
        on,
        ticks(range.low, range.high, 6).filter((at) => !last || Math.abs(on.y(at) - lastY) > 14),
        mark,
      ),
      days(
        on,
        list.map(({ date }) => date),
      ),
      s('g', null, volumes),
      s('g', { class: 'bars' }, bars),
      last &&
        s(
          'g',
          { class: 'last-price' },
          s('line', { x1: on.pad.left, x2: width - on.pad.right, y1: lastY, y2: lastY }),
          s('text', { x: width - on.pad.right + 8, y: lastY + 4 }, price(last)),
        ),
    ],
  };
}
