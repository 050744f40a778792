// How many shares rise and fall, and which most; and what else shows every share, from the same answer.
import { call, serverNow } from '../data/api.js';
import { moments } from '../data/format.js';
import * as live from '../data/live.js';
import { text } from '../text.js';
import { market as t } from '../text/market.js';
import { simulated } from './figures.js';
import { moverTable } from './mover-table.js';
import { attr, button, h, memo, put, say, skeleton } from './view.js';

/** Prices that nobody asked for lately are there some seconds after the first look. */
const MOVERS_MS = 8_000;

/** @typedef {typeof import('./market-shares.js')} Shares */
/**
 * @typedef {object} Movers
 * @property {Node} node
 * @property {() => void} end
 * @property {(place: HTMLElement, make: (its: Shares) => { node: Node, update: (list: any[]) => void }) => () => void} open
 */

/** How many shares rise and fall, and which most, of those that the service has a price of. @returns {Movers} */
export function showMovers() {
  const words = h('p', { class: 'breadth waiting' }, '\u00a0');
  const bar = h('progress', { class: 'breadth', 'aria-hidden': 'true' });
  const sides = [moverTable('gainers', t.gainers), moverTable('losers', t.losers)];
  const halves = h(
    'div',
    { class: 'halves', hidden: true },
    sides.map((side) => side.node),
  );
  /** What shows every share: while there is any, the longer answer is asked for in place of the short one. */
  const whole = new Set();
  /** @type {any[] | null} */
  let every = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let again;
  let early = 0;
  /** @type {Answer<'/api/market/movers'> | null} */
  let drawn = null;
  const fetched = live.repeat(async () => {
    const list = await call(whole.size ? '/api/market/movers?all=true' : '/api/market/movers');
    every = list.list ?? null;
    if (every) for (const update of whole) update(every);
    // What is missing was asked for just now.
    if (list.priced < list.shares && (early += 1) <= 4) again = setTimeout(() => fetched.now(), 1_500);
    drawn = list;
    drawBreadth(words, list);
    bar.hidden = halves.hidden = !list.priced;
    bar.max = list.priced || 1;
    bar.value = list.advances + list.unchanged / 2;
    sides[0].update(list.gainers);
    sides[1].update(list.losers);
  }, MOVERS_MS);
  // Whether the market is open may be known later than the list.
  const endPhase = live.on('snapshot', () => drawn && drawBreadth(words, drawn));
  const end = () => {
    clearTimeout(again);
    endPhase();
    fetched.stop();
  };
  /** Shows in `place` what is made of every share. @type {Movers['open']} */
  const open = (place, make) => {
    /** @type {((list: any[]) => void) | null} */
    let update = null;
    let isOver = false;
    import('./market-shares.js').then(
      (its) => {
        if (isOver) return;
        const made = make(its);
        put(place, made.node);
        update = made.update;
        whole.add(update);
        if (every) update(every);
        else fetched.now();
      },
      () => isOver || put(place, h('p', { class: 'problem', role: 'alert' }, text.problem.offline)),
    );
    return () => {
      isOver = true;
      if (update) whole.delete(update);
    };
  };
  const all = showAll(open);
  return { node: h('div', null, h('div', { class: 'movers-box' }, words, bar, halves), all), end, open };
}

/** How many rise and fall. @param {HTMLElement} words @param {Answer<'/api/market/movers'>} list */
function drawBreadth(words, list) {
  words.classList.remove('waiting');
  const isSimulated = [...list.gainers, ...list.losers].some((row) => row.simulated);
  const said = list.priced ? t.breadth(list.advances, list.declines, list.unchanged) : t.noMovers(live.valueOf('snapshot')?.market.is_open !== false);
  const newest = [...list.gainers, ...list.losers].map((row) => row.as_of).sort().at(-1);
  const old = list.stale && newest ? t.staleFrom(moments(newest, serverNow())) : '';
  memo(words, [said, list.priced, list.shares, isSimulated, old], () =>
    put(
      words,
      said,
      ' ',
      h('span', { class: 'muted' }, t.ofShares(old ? list.shares : list.priced, list.shares)),
      ' ',
      old && h('b', { class: 'mark stale' }, old),
      ' ',
      simulated(isSimulated),
    ),
  );
}

/** A button that opens all shares as a table. @param {Movers['open']} open */
function showAll(open) {
  const place = h('div', { hidden: true });
  /** @type {(() => void) | null} */
  let end = null;
  const opener = button(
    t.all,
    () => {
      if (end) {
        end();
        end = null;
        put(place);
      } else {
        put(place, skeleton(10));
        end = open(place, ({ allShares }) => allShares());
      }
      place.hidden = !end;
      say(opener, end ? t.fewer : t.all);
      attr(opener, 'aria-expanded', String(end !== null));
    },
    { 'aria-expanded': 'false' },
  );
  return [h('p', { class: 'actions' }, opener), place];
}
