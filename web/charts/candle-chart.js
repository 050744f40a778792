// Daily candles with volume, and the last price as a line of its own.
import { mark } from '../data/axis-format.js';
import { price } from '../data/format.js';
import { s } from '../parts/view.js';
import { days, extent, grid, plane, ticks } from './chart.js';

/**
 * The parts of the picture for a width; `last` is the price of now, if one is known, and `own` the trades that are
 * marked: a purchase below its candle, a sale above.
 * @param {any[]} list
 * @param {{ last: number | null, width: number, own?: { date: string, side: string }[] }} how
 */
export function candles(list, { last, width, own = [] }) {
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
    // Without a first price a session that runs has no body: a stroke at its price, and the way of the day.
    const open = candle.open ?? candle.close;
    const [top, bottom] = [on.y(Math.max(open, candle.close)), on.y(Math.min(open, candle.close))];
    const isUp = candle.open === null ? candle.change >= 0 : candle.close >= open;
    return s(
      'g',
      { class: `${isUp ? 'up' : 'down'}${candle.isRunning ? ' running' : ''}` },
      s('line', { x1: on.x(at), x2: on.x(at), y1: on.y(candle.high), y2: on.y(candle.low) }),
      s('rect', { x: on.x(at) - body / 2, y: top, width: body, height: Math.max(1, bottom - top) }),
    );
  });
  const lastY = on.y(last ?? 0);
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
      s('g', { class: 'own' }, ownMarks(list, own, on)),
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

/** A day has at most one mark of each side, however many trades it had. */
function ownMarks(list, own, on) {
  const places = new Map(list.map(({ date }, at) => [date, at]));
  const days = new Map(own.filter(({ date }) => places.has(date)).map((its) => [`${its.date} ${its.side}`, its]));
  return [...days.values()].map(({ date, side }) => {
    const at = places.get(date) ?? 0;
    const [y, word] = side === 'buy' ? [on.y(list[at].low) + 14, 'B'] : [on.y(list[at].high) - 6, 'S'];
    return s('text', { x: on.x(at), y, 'text-anchor': 'middle' }, word);
  });
}
