// The market at a glance: three indices, the sectors, the shares that move most, and the best signals.
import { call, serverNow } from '../data/api.js';
import { day, heat, moments, percent, price, signedPrice, time } from '../data/format.js';
import * as live from '../data/live.js';
import { ageMark, change, movedLarge, simulated } from '../parts/figures.js';
import { bestSignals, signalWords, simulatedMark } from '../parts/signal-table.js';
import { table } from '../parts/table.js';
import { attr, h, keyed, memo, pathOf, pieces, put, s, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { market as t } from '../text/market.js';
import { signals as signalText } from '../text/signals.js';

export const title = t.title;

const INDICES = [
  { key: 'index1', name: 'NIFTY 50', symbol: 'NSE:NIFTY 50' },
  { key: 'bankindex', name: 'BANK NIFTY', symbol: 'NSE:NIFTY BANK' },
  { key: 'index2', name: 'SENSEX', symbol: 'BSE:SENSEX' },
];

/** Prices that nobody asked for lately are there some seconds after the first look. */
const MOVERS_MS = 8_000;

/** @param {Context} context */
export function show({ main }) {
  const cards = INDICES.map(makeCard);
  const sectors = h('ul', { class: 'tiles' });
  const shares = showMovers();
  const signals = h('div', { class: 'signals-box' }, skeleton(6));
  lay(main, { cards, sectors, shares, signals });
  const drawSectors = sectorsIn(sectors);
  live.follow(INDICES.map(({ symbol }) => symbol).sort());
  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    if (!snapshot) return;
    cards.forEach(({ draw: drawCard }) => drawCard(snapshot));
    drawSectors(snapshot.sectors);
  };
  const ends = [live.on('snapshot', draw), live.on('tick', draw), live.on('quotes', draw)];
  // Without any price the bar above says why; what waits would wait for ever.
  ends.push(
    live.on('trouble', (trouble) => {
      if (trouble && !live.valueOf('snapshot')) for (const { rest } of cards) rest();
    }),
  );

  const fetched = live.repeat(async () => {
    const list = await call('/api/signals').catch((problem) => {
      if (problem.code === 'signals_not_ready') return null;
      throw problem;
    });
    memo(signals, list, () => put(signals, signalsOf(list)));
  }, 60_000);
  return () => {
    fetched.stop();
    shares.end();
    for (const end of ends) end();
  };
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {{ cards: { node: Node }[], sectors: Node, shares: { node: Node }, signals: Node }} parts
 */
function lay(main, { cards, sectors, shares, signals }) {
  main.className = 'market';
  put(
    main,
    h('h1', { class: 'unseen' }, t.heading),
    h(
      'div',
      { class: 'cards-3' },
      cards.map(({ node }) => node),
    ),
    h(
      'section',
      { 'aria-labelledby': 'sectors' },
      h(
        'header',
        null,
        h('h2', { id: 'sectors' }, t.sectors),
        h(
          'span',
          { class: 'legend', 'aria-hidden': 'true' },
          t.legend.map((label, at) => h('i', { 'data-heat': ['down2', 'down1', 'even', 'up1', 'up2'][at] }, label)),
        ),
      ),
      sectors,
    ),
    h('section', { 'aria-labelledby': 'shares' }, h('header', null, h('h2', { id: 'shares' }, t.shares)), shares.node),
    h(
      'section',
      { 'aria-labelledby': 'signals' },
      h('header', null, h('h2', { id: 'signals' }, t.signals), h('a', { href: '/signals' }, t.allSignals)),
      signals,
    ),
  );
}

/** @typedef {{ symbol: string, name: string, change_pct: number | null }} Sector */

/** Tiles that wait; returns what draws sectors into them. @param {Element} node */
function sectorsIn(node) {
  const kept = new Map();
  /** The sectors in the order of the first look: tiles that change places cannot be read. @type {string[] | null} */
  let order = null;
  put(
    node,
    Array.from({ length: 12 }, () => h('li', null, h('span', { class: 'tile waiting', 'aria-hidden': 'true' }))),
  );
  return (/** @type {Sector[]} */ sectors) => {
    if (!order) {
      node.replaceChildren();
      order = [...sectors]
        .sort((a, b) => (b.change_pct ?? -Infinity) - (a.change_pct ?? -Infinity))
        .map(({ symbol }) => symbol);
    }
    const place = (/** @type {Sector} */ sector) => order?.indexOf(sector.symbol) ?? 0;
    keyed(
      node,
      kept,
      [...sectors].sort((a, b) => place(a) - place(b)),
      (sector) => sector.symbol,
      makeTile,
      (handle, sector) => handle(sector),
    );
  };
}

/** How many shares rise and fall, and which most, of those that the service has a price of. */
function showMovers() {
  const words = h('p', { class: 'breadth waiting' }, '\u00a0');
  const bar = h('progress', { class: 'breadth', 'aria-hidden': 'true' });
  const sides = ['gainers', 'losers'].map((name) =>
    table({
      name,
      caption: t[name],
      plain: true,
      isFixed: true,
      key: (row) => row.symbol,
      columns: [
        {
          of: 'symbol',
          label: t[name],
          wide: true,
          show: (row) => [
            { text: row.symbol.split(':')[1], kind: 'symbol', href: pathOf(row.symbol) },
            { text: row.name ?? '\u00a0', kind: 'company' },
          ],
        },
        {
          of: 'last_price',
          label: t.last,
          number: true,
          live: true,
          show: (row) => [price(row.last_price), ...ageMark(row)],
        },
        change('change_pct', t.change, percent, text.noClose, { live: true }),
      ],
    }),
  );
  const halves = h(
    'div',
    { class: 'halves', hidden: true },
    sides.map((side) => side.node),
  );
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  let early = 0;
  const fetched = live.repeat(async () => {
    const list = await call('/api/market/movers');
    // What is missing was asked for just now.
    if (list.priced < list.shares && (early += 1) <= 4) again = setTimeout(() => fetched.now(), 1_500);
    words.classList.remove('waiting');
    const isSimulated = [...list.gainers, ...list.losers].some((row) => row.simulated);
    const said = list.priced ? t.breadth(list.advances, list.declines, list.unchanged) : t.noMovers;
    memo(words, [said, list.priced, list.shares, isSimulated], () =>
      put(
        words,
        said,
        ' ',
        h('span', { class: 'muted' }, t.ofShares(list.priced, list.shares)),
        ' ',
        simulated(isSimulated),
      ),
    );
    bar.hidden = halves.hidden = !list.priced;
    bar.max = list.priced || 1;
    bar.value = list.advances + list.unchanged / 2;
    sides[0].update(list.gainers);
    sides[1].update(list.losers);
  }, MOVERS_MS);
  const end = () => {
    clearTimeout(again);
    fetched.stop();
  };
  return { node: h('div', { class: 'movers-box' }, words, bar, halves), end };
}

function makeCard({ key, name, symbol }) {
  const level = h('p', { class: 'level waiting' }, '\u00a0');
  const change = h('p', { class: 'change' }, '\u00a0');
  const state = h('p', { class: 'state' }, '\u00a0');
  const range = showRange();
  const spark = h('span', { class: 'spark', title: t.month });
  /** @type {((now: number) => void) | null} */
  let drawSpark = null;
  const node = h(
    'a',
    { class: 'card', href: pathOf(symbol) },
    h('h2', null, name),
    spark,
    level,
    change,
    state,
    range.node,
  );
  /** The month comes after the price; without it the card is whole. */
  const month = async () => {
    drawSpark = await (await import('../charts/spark.js')).spark(spark, symbol);
    drawSpark?.(live.valueOf('snapshot')[`${key}_price`]);
  };
  const draw = (snapshot) => {
    const { market } = snapshot;
    const own = snapshot[`${key}_stale`] !== undefined;
    const asOf = snapshot[`${key}_as_of`] ?? market.as_of_ist;
    const its = {
      as_of: asOf,
      stale: own ? snapshot[`${key}_stale`] : market.stale,
      delay_s: own ? snapshot[`${key}_delay_s`] : market.delay_s,
    };
    /** @type {any[]} */
    const bits = [{ text: market.is_open ? time(asOf) : moments(asOf, serverNow()), kind: 'as-of' }, ...ageMark(its)];
    const quote = live.valueOf(`quote ${symbol}`);
    if (quote) range.draw(quote);
    const [now, moved] = [snapshot[`${key}_price`], snapshot[`${key}_change`]];
    // Points come with the quote, which may be of another moment than the snapshot: only if both are of the same price.
    const points = quote?.change != null && quote.last_price === now ? `${signedPrice(quote.change)} ` : '';
    memo(node, [now, moved, points, bits], () => {
      if (level.classList.contains('waiting')) month().catch(() => {});
      level.classList.remove('waiting');
      drawSpark?.(now);
      say(level, price(now));
      const words = movedLarge(moved, (value) => (points ? `${points}(${percent(value)})` : percent(value)));
      // A link holds no button: the reason stands in its title.
      put(
        change,
        pieces([{ ...words, why: undefined, title: words.why ?? (moved === null ? text.noClose : undefined) }]),
      );
      put(state, pieces(bits));
    });
  };
  const rest = () => {
    level.classList.remove('waiting');
    say(level, '–');
  };
  return { node, draw, rest };
}

/** The day's low and high, with a line between them on which a dot stands for the price. */
function showRange() {
  const dot = s('circle', { cy: 4, r: 4, fill: 'currentColor' });
  const line = s('line', { x2: '100%', y1: 4, y2: 4, stroke: 'currentColor' });
  const words = h('span', null, '\u00a0');
  const node = h(
    'p',
    { class: 'range', title: t.range },
    s('svg', { width: '100%', height: 8, overflow: 'visible', 'aria-hidden': 'true' }, line, dot),
    h('span', { class: 'unseen' }, t.range),
    words,
  );
  const draw = (quote) => {
    const { day_low: low, day_high: high, last_price: now } = quote;
    // Before the first trade of a day there is none, and not every source has one.
    const isKnown = low !== undefined && low !== null;
    attr(line, 'opacity', isKnown ? '0.4' : '0');
    attr(dot, 'opacity', isKnown ? null : '0');
    say(words, isKnown ? t.rangeOf(price(low), price(high)) : '\u00a0');
    if (isKnown) attr(dot, 'cx', `${high > low ? Math.round((100 * (now - low)) / (high - low)) : 50}%`);
  };
  draw({});
  return { node, draw };
}

function makeTile(sector) {
  const change = h('span', { class: 'moved' });
  const tile = h(
    'a',
    { class: 'tile', href: pathOf(sector.symbol) },
    h('span', { class: 'name' }, sector.name),
    change,
  );
  const draw = (next) => {
    attr(tile, 'data-heat', heat(next.change_pct));
    say(change, next.change_pct === null ? t.noQuote : percent(next.change_pct));
  };
  return { node: h('li', null, tile), handle: draw };
}

const BEST = 3;

/** the document of `/api/signals`, null before there is one */
function signalsOf(list) {
  if (!list) return h('p', { class: 'empty' }, signalText.none);
  const best = bestSignals(list.signals, BEST);
  return h(
    'div',
    null,
    h(
      'p',
      null,
      best.count ? t.above(best.shares) : t.noneAbove,
      ' ',
      h('span', { class: 'muted' }, signalText.of(day(list.as_of), list.horizon_sessions)),
      ' ',
      simulatedMark(list.signals),
    ),
    best.count > 0 && best.table.node,
    signalWords(list),
  );
}
