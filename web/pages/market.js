// The market at a glance: three indices, the sectors, and the best signals.
import { call, serverNow } from '../api.js';
import { ageMark, movedLarge } from '../figures.js';
import { day, heat, moments, percent, price, signedPrice, time } from '../format.js';
import * as live from '../live.js';
import { bestSignals, signalWords, simulatedMark } from '../signal-table.js';
import { text } from '../text.js';
import { market as t } from '../text/market.js';
import { signals as signalText } from '../text/signals.js';
import { attr, h, keyed, memo, pathOf, pieces, put, say, skeleton } from '../view.js';

export const title = t.title;

const INDICES = [
  { key: 'index1', name: 'NIFTY 50', symbol: 'NSE:NIFTY 50' },
  { key: 'bankindex', name: 'BANK NIFTY', symbol: 'NSE:NIFTY BANK' },
  { key: 'index2', name: 'SENSEX', symbol: 'BSE:SENSEX' },
];

export function show({ main }) {
  const cards = INDICES.map(makeCard);
  const sectors = h('ul', { class: 'tiles' });
  const signals = h('div', { class: 'signals-box' }, skeleton(6));
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
    h(
      'section',
      { 'aria-labelledby': 'signals' },
      h('header', null, h('h2', { id: 'signals' }, t.signals), h('a', { href: '/signals' }, t.allSignals)),
      signals,
    ),
  );
  put(
    sectors,
    Array.from({ length: 12 }, () => h('li', null, h('span', { class: 'tile waiting', 'aria-hidden': 'true' }))),
  );

  const kept = new Map();
  /** The sectors in the order of the first look: tiles that change places cannot be read. @type {string[] | null} */
  let order = null;
  live.follow(INDICES.map(({ symbol }) => symbol).sort());
  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    if (!snapshot) return;
    cards.forEach(({ draw: drawCard }) => drawCard(snapshot));
    if (!order) {
      sectors.replaceChildren();
      order = [...snapshot.sectors]
        .sort((a, b) => (b.change_pct ?? -Infinity) - (a.change_pct ?? -Infinity))
        .map(({ symbol }) => symbol);
    }
    const place = (sector) => order?.indexOf(sector.symbol) ?? 0;
    keyed(
      sectors,
      kept,
      [...snapshot.sectors].sort((a, b) => place(a) - place(b)),
      (sector) => sector.symbol,
      makeTile,
      (handle, sector) => handle(sector),
    );
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
    for (const end of ends) end();
  };
}

function makeCard({ key, name, symbol }) {
  const level = h('p', { class: 'level waiting' }, '\u00a0');
  const change = h('p', { class: 'change' }, '\u00a0');
  const state = h('p', { class: 'state' }, '\u00a0');
  const node = h('a', { class: 'card', href: pathOf(symbol) }, h('h2', null, name), level, change, state);
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
    const [now, moved] = [snapshot[`${key}_price`], snapshot[`${key}_change`]];
    // Points come with the quote, which may be of another moment than the snapshot: only if both are of the same price.
    const points = quote?.change != null && quote.last_price === now ? `${signedPrice(quote.change)} ` : '';
    memo(node, [now, moved, points, bits], () => {
      level.classList.remove('waiting');
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
