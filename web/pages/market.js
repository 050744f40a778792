// The market at a glance: three indices, the sectors, the shares that move most, and the best signals.
import { call, serverNow } from '../data/api.js';
import { heat, moments, percent, price, signedPrice, time } from '../data/format.js';
import * as live from '../data/live.js';
import { soonMs } from '../parts/awaited.js';
import { ageMark, movedLarge } from '../parts/figures.js';
import { showMovers } from '../parts/movers.js';
import { attr, button, h, keyed, memo, pathOf, pieces, put, s, say, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { market as t } from '../text/market.js';

export const title = t.title;

const INDICES = [
  { key: 'index1', name: 'NIFTY 50', symbol: 'NSE:NIFTY 50' },
  { key: 'bankindex', name: 'BANK NIFTY', symbol: 'NSE:NIFTY BANK' },
  { key: 'index2', name: 'SENSEX', symbol: 'BSE:SENSEX' },
];

/** @param {Context} context */
export function show({ main }) {
  const cards = INDICES.map(makeCard);
  const sectors = h('ul', { class: 'tiles' });
  const sectorMark = h('span', null);
  const shares = showMovers();
  const signals = h('div', { class: 'signals-box' }, skeleton(6));
  lay(main, { cards, sectors, sectorMark, shares, signals });
  const drawSectors = sectorsIn(sectors, shares);
  live.follow(INDICES.map(({ symbol }) => symbol).sort());
  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    if (!snapshot) return;
    cards.forEach(({ draw: drawCard }) => drawCard(snapshot));
    drawSectors(snapshot.sectors);
    const { as_of_ist: asOf, stale, delay_s: delay } = snapshot.market;
    const bits = ageMark({ as_of: asOf, stale, delay_s: delay });
    memo(sectorMark, bits, () => put(sectorMark, pieces(bits)));
  };
  const ends = [live.on('snapshot', draw), live.on('tick', draw), live.on('quotes', draw)];
  // Without any price the bar above says why; what waits would wait for ever.
  ends.push(
    live.on('trouble', (trouble) => {
      if (trouble && !live.valueOf('snapshot')) for (const { rest } of cards) rest();
    }),
  );

  const fetched = live.repeat(async () => {
    const list = await call('/api/signals');
    await (await import('../parts/best-signals.js')).showBest(signals, list);
    return soonMs(list);
  }, 60_000);
  return () => {
    fetched.stop();
    shares.end();
    for (const { end } of cards) end();
    for (const end of ends) end();
  };
}

/**
 * Lays out the page.
 * @param {HTMLElement} main
 * @param {{ cards: { node: Node }[], sectors: Node, sectorMark: Node, shares: { node: Node }, signals: Node }} parts
 */
function lay(main, { cards, sectors, sectorMark, shares, signals }) {
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
        h('h2', { id: 'sectors' }, t.sectors, sectorMark),
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
/** @typedef {ReturnType<typeof showMovers>} Movers */

/**
 * Tiles that wait; returns what draws sectors into them. A tile opens its shares below it.
 * @param {Element} node
 * @param {Movers} movers
 */
function sectorsIn(node, movers) {
  const kept = new Map();
  /** The sectors in the order of the first look: tiles that change places cannot be read. @type {string[] | null} */
  let order = null;
  /** @type {Sector[]} */
  let shown = [];
  /** The one that is open, with what ends it. @type {{ symbol: string, node: HTMLElement, end: () => void } | null} */
  let open = null;
  put(
    node,
    Array.from({ length: 12 }, () => h('li', null, h('span', { class: 'tile waiting', 'aria-hidden': 'true' }))),
  );
  /** @param {Sector} sector */
  const toggle = (sector) => {
    const isClosing = open?.symbol === sector.symbol;
    open?.end();
    open = null;
    if (!isClosing) {
      const place = h('li', { class: 'opened' }, skeleton(3));
      open = { symbol: sector.symbol, node: place, end: movers.open(place, ({ sectorShares }) => sectorShares(sector)) };
    }
    draw(shown);
  };
  /** @param {Sector[]} sectors */
  const draw = (sectors) => {
    shown = sectors;
    if (!order) {
      node.replaceChildren();
      order = [...sectors]
        .sort((a, b) => (b.change_pct ?? -Infinity) - (a.change_pct ?? -Infinity))
        .map(({ symbol }) => symbol);
    }
    const place = (/** @type {Sector} */ sector) => order?.indexOf(sector.symbol) ?? 0;
    const tiles = [...sectors].sort((a, b) => place(a) - place(b));
    keyed(
      node,
      kept,
      tiles.flatMap((sector) =>
        sector.symbol === open?.symbol
          ? [
              { sector, below: null },
              { sector, below: open.node },
            ]
          : [{ sector, below: null }],
      ),
      ({ sector, below }) => (below ? `${sector.symbol} opened` : sector.symbol),
      ({ sector, below }) => (below ? { node: below, handle: null } : makeTile(sector, toggle)),
      (handle, { sector }) => handle?.(sector, sector.symbol === open?.symbol),
    );
  };
  return draw;
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
  /** The month comes after the price, as soon as its candles are there; without it the card is whole. */
  const month = async () => {
    if (drawSpark) return undefined;
    const its = await (await import('../charts/spark.js')).spark(spark, symbol);
    drawSpark = its.draw;
    drawSpark?.(live.valueOf('snapshot')[`${key}_price`]);
    return its.againMs;
  };
  /** @type {ReturnType<typeof live.repeat> | undefined} */
  let months;
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
      months ??= live.repeat(month, 600_000);
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
  return { node, draw, rest, end: () => months?.stop() };
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

/** @param {Sector} sector @param {(sector: Sector) => void} toggle */
function makeTile(sector, toggle) {
  const change = h('span', { class: 'moved' });
  const tile = button([h('span', { class: 'name' }, sector.name), change], () => toggle(sector), { class: 'tile' });
  /** @type {(next: Sector, isOpened: boolean) => void} */
  const draw = (next, isOpened) => {
    attr(tile, 'data-heat', heat(next.change_pct));
    attr(tile, 'aria-expanded', String(isOpened));
    say(change, next.change_pct === null ? t.noQuote : percent(next.change_pct));
  };
  return { node: h('li', null, tile), handle: draw };
}
