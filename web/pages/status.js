// How the service is: what is wrong and what to do, as `bhav status` says it, the last day, and each part in words.
import { Problem, call, serverNow } from '../data/api.js';
import { UNKNOWN, count, day, moments, span } from '../data/format.js';
import * as live from '../data/live.js';
import { lastDay } from '../parts/last-day.js';
import { troublesOf, worstOf } from '../parts/troubles.js';
import { h, memo, put, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { status as t } from '../text/status.js';

export const title = t.title;

const GOOD = new Set(['ok', 'kept', 'given', 'sqlite', 'valkey', 'redis', 'valid', 'counted', 'relayed']);
/** Neither good nor bad: nobody has set it up, or it has its time later. */
const NEUTRAL = new Set([
  ...['off', 'paused', 'standby', 'never_set', 'never', 'unknown', 'none', 'connecting', 'subscribing'],
]);
const STARTING_S = 60;
/** Until the next look at a service that has only just started. */
const STARTING_MS = 2_000;
/** Of the states of a service, the best first. */
const WORSE = ['ok', 'degraded', 'down'];

/** @param {Context} context */
export function show({ main }) {
  const head = h('div', { class: 'health waiting' }, skeleton(1));
  const body = h('div', null, skeleton(12));
  put(main, h('h1', null, t.title), head, body);
  const fetched = live.repeat(async () => {
    const [health, a, b] = await Promise.all([
      // 503 is an answer too: it says what is down. One of a proxy before the service says nothing.
      call('/api/health', { accept: [503] }).then((answer) => {
        if (answer?.uptime_s === undefined) throw new Problem(503, null, null);
        return answer;
      }),
      call('/brokera/status').catch(() => null),
      call('/brokerb/status').catch(() => null),
    ]).catch((failed) => {
      head.classList.remove('waiting');
      put(head, h('p', { class: 'state-line bad' }, h('b', null, '● ', t.unreachable)));
      memo(body, null, () => put(body, h('p', null, t.unreachableWhy)));
      throw failed;
    });
    head.classList.remove('waiting');
    put(head, headOf(health));
    const { troubles = [], day: states } = health;
    memo(body, { troubles, states, rows: rowsOf(health, a, b) }, (shown) =>
      put(body, troublesOf(shown.troubles), lastDay(shown.states), sections(shown.rows)),
    );
    return isStarting(troubles) ? STARTING_MS : undefined;
  }, 15_000);
  // The bar above says at once when prices become stale; this page must not contradict it until its next look.
  let wasStale = live.valueOf('snapshot')?.market.stale;
  const end = live.on('snapshot', ({ market }) => {
    if (wasStale !== undefined && market.stale !== wasStale) fetched.now();
    wasStale = market.stale;
  });
  return () => {
    fetched.stop();
    end();
  };
}

/** Whether nothing is down but what comes up by itself. @param {import('../parts/troubles.js').Trouble[]} troubles */
const isStarting = (troubles) =>
  worstOf(troubles) === 'down' && troubles.every(({ name, severity }) => severity !== 'down' || name === 'starting');

/** @param {any} health */
function headOf(health) {
  const starts = isStarting(health.troubles ?? []);
  const isStale = health.market.stale || live.valueOf('snapshot')?.market.stale;
  const all = [health.status, isStale ? 'degraded' : 'ok', worstOf(health.troubles ?? [])];
  const status = all.reduce((one, other) => (WORSE.indexOf(other) > WORSE.indexOf(one) ? other : one));
  const kind = status === 'ok' ? 'good' : status === 'down' && !starts ? 'bad' : 'warn';
  return h(
    'p',
    { class: `state-line ${kind}` },
    h('b', null, '● ', starts ? t.states.starting : (t.states[status] ?? status)),
    h('span', null, t.about(health.version, span(health.uptime_s))),
  );
}

/** @typedef {{ name: string, state: string, more: string, kind: 'fine-row' | 'neutral' | 'bad' }} Row */

/** @type {(name: string, state: string, more?: string, bad?: boolean) => Row} */
const row = (name, state, more = '', bad = !GOOD.has(state) && !NEUTRAL.has(state)) => ({
  name,
  state: t.words[state] ?? state,
  more,
  kind: bad ? 'bad' : NEUTRAL.has(state) ? 'neutral' : 'fine-row',
});

/** Every part, in groups. @param {any} health @param {any} a @param {any} b @returns {[string, Row[]][]} */
const rowsOf = (health, a, b) => [
  [t.prices, pricesOf(health)],
  [t.logins, [tokenOf(t.tokenA, a), tokenOf(t.tokenB, b)]],
  [t.day, dayOf(health)],
  [t.inside, insideOf(health)],
];

/** @param {any} health */
function pricesOf({ feeds, warmers, market, uptime_s: upS }) {
  const unready = upS < STARTING_S ? 'starting' : 'no_prices';
  const state = market.stale ? 'stale' : 'ok';
  const asOf = market.as_of_ist;
  const ticker = feeds.broker_a.ticker;
  return [
    row(
      t.snapshot,
      asOf === null ? unready : state,
      asOf ? `${moments(asOf, serverNow())} · ${text.source[market.source] ?? market.source}` : '',
    ),
    feedOf(text.source.broker_a, feeds.broker_a),
    feedOf(text.source.public, feeds.public),
    ...(ticker
      ? [
          row(
            t.ticker,
            ticker.state === 'speaking' ? 'ok' : ticker.state,
            [t.subscribed(ticker.subscribed), ticker.failure].filter(Boolean).join(' · '),
          ),
        ]
      : []),
    row(t.instruments, warmers.instruments, count(market.instruments)),
  ];
}

/** @param {string} name @param {any} feed */
const feedOf = (name, feed) =>
  row(
    name,
    feed.state,
    [
      feed.age_ms === undefined ? '' : t.age(span(feed.age_ms / 1000)),
      feed.delay_s ? t.behind(span(feed.delay_s)) : '',
      feed.failure ?? '',
    ]
      .filter(Boolean)
      .join(' · '),
  );

/** @param {string} name @param {any} token */
function tokenOf(name, token) {
  if (!token) return row(name, 'unknown', '', false);
  const until = token.expires_at ? t.until(moments(token.expires_at, serverNow())) : '';
  const state = token.valid ? 'valid' : token.initialized ? 'ended' : 'never_set';
  return row(name, state, until, token.initialized && !token.valid);
}

/** What comes once a day. @param {any} health */
const dayOf = ({ warmers, close, signals }) => [
  row(
    t.close,
    warmers.close,
    close.date ? t.closed(day(close.date), count(close.points), count(close.missing)) : t.noClose,
  ),
  row(t.signals, warmers.signals, signals.as_of ? t.listed(day(signals.as_of), count(signals.signals)) : UNKNOWN),
];

/** @param {any} health */
function insideOf({ database, cache_l1: l1, cache_l2: l2, lanes, backup, clock }) {
  /** @type {{ refused: number, depth: number }[]} */
  const all = lanes;
  const refused = all.reduce((sum, lane) => sum + lane.refused, 0);
  const depth = all.reduce((sum, lane) => sum + lane.depth, 0);
  const busy = [t.waiting(count(depth)), refused ? t.refused(count(refused)) : ''].filter(Boolean).join(' · ');
  const kept = backup?.succeeded_ist;
  return [
    row(t.database, database, '', database !== 'ok'),
    row(t.l1, 'ok', t.entries(count(l1.size)), false),
    row(t.l2, l2.backend, l2.errors ? t.errors(count(l2.errors)) : '', l2.errors > 0),
    row(t.lanes, refused ? 'counted' : 'ok', busy, false),
    row(
      t.backup,
      backup?.failed ? 'failing' : kept ? 'ok' : 'never',
      kept ? moments(kept, serverNow()) : '',
      Boolean(backup?.failed),
    ),
    ...(clock.set ? [row(t.clock, t.clockSet, '', false)] : []),
  ];
}

/** @param {[string, Row[]][]} groups */
const sections = (groups) =>
  h(
    'div',
    { class: 'status-groups' },
    groups.map(([name, rows]) =>
      h(
        'section',
        { class: 'panel' },
        h('h2', null, name),
        listOf(rows),
      ),
    ),
  );

/** @param {Row[]} rows */
const listOf = (rows) =>
  h(
    'dl',
    { class: 'rows' },
    rows.map(({ name: label, state, more, kind }) =>
      h(
        'div',
        { class: kind },
        h('dt', null, label),
        h(
          'dd',
          null,
          h('b', null, kind === 'bad' ? '⚠ ' : '● ', state),
          more && h('span', { class: 'muted' }, ` ${more}`),
        ),
      ),
    ),
  );
