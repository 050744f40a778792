// How the service is: each part in words, and for each bad one what to do.
import { Problem, call, serverNow } from '../data/api.js';
import { UNKNOWN, count, day, moments, span } from '../data/format.js';
import * as live from '../data/live.js';
import { h, memo, put, skeleton } from '../parts/view.js';
import { text } from '../text.js';
import { status as t } from '../text/status.js';

export const title = t.title;

const GOOD = new Set(['ok', 'kept', 'given', 'sqlite', 'valid', 'refused']);
/** Neither good nor bad: nobody has set it up, or it has its time later. */
const NEUTRAL = new Set(['off', 'paused', 'standby', 'never_set', 'never', 'unknown', 'none']);
const STARTING_S = 60;

export function show({ main }) {
  const head = h('div', { class: 'health' }, skeleton(1));
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
      put(head, h('p', { class: 'state-line bad' }, h('b', null, '● ', t.unreachable)));
      memo(body, null, () => put(body, h('p', null, t.unreachableWhy)));
      throw failed;
    });
    put(head, headOf(health));
    memo(body, rowsOf(health, a, b), (rows) => put(body, sections(rows)));
  }, 15_000);
  return fetched.stop;
}

function headOf(health) {
  const kind = health.status === 'ok' ? 'good' : health.status === 'down' ? 'bad' : 'warn';
  return h(
    'p',
    { class: `state-line ${kind}` },
    h('b', null, '● ', t.states[health.status] ?? health.status),
    h('span', null, t.about(health.version, span(health.uptime_s))),
  );
}

/** @typedef {{ name: string, state: string, more: string, kind: 'fine-row' | 'neutral' | 'bad', cure: string }} Row */

const row = (name, state, more = '', bad = !GOOD.has(state) && !NEUTRAL.has(state), cure = '') => ({
  name,
  state: t.words[state] ?? state,
  more,
  kind: bad ? 'bad' : NEUTRAL.has(state) ? 'neutral' : 'fine-row',
  cure: bad ? cure || t.cures[state] || text.retried : '',
});

function rowsOf(health, a, b) {
  const now = serverNow();
  const { feeds, warmers, market, close, signals } = health;
  const feed = (name, one) =>
    row(
      name,
      one.state,
      [
        one.age_ms === undefined ? '' : t.age(span(one.age_ms / 1000)),
        one.delay_s ? t.behind(span(one.delay_s)) : '',
        one.failure ?? '',
      ]
        .filter(Boolean)
        .join(' · '),
    );
  const token = (name, one, cure) => {
    if (!one) return row(name, 'unknown', '', false);
    const until = one.expires_at ? t.until(moments(one.expires_at, now)) : '';
    return row(
      name,
      one.valid ? 'valid' : one.initialized ? 'ended' : 'never_set',
      until,
      one.initialized && !one.valid,
      cure,
    );
  };
  const refused = health.lanes.reduce((sum, lane) => sum + lane.refused, 0);
  const waiting = health.lanes.reduce((sum, lane) => sum + lane.depth, 0);
  return [
    [
      t.prices,
      [
        row(
          t.snapshot,
          market.as_of_ist === null
            ? health.uptime_s < STARTING_S
              ? 'starting'
              : 'no_prices'
            : market.stale
              ? 'stale'
              : 'ok',
          market.as_of_ist ? `${moments(market.as_of_ist, now)} · ${text.source[market.source] ?? market.source}` : '',
        ),
        feed(text.source.broker_a, feeds.broker_a),
        feed(text.source.public, feeds.public),
        ...(feeds.broker_a.ticker
          ? [
              row(
                t.ticker,
                feeds.broker_a.ticker.state === 'speaking' ? 'ok' : feeds.broker_a.ticker.state,
                `${t.subscribed(feeds.broker_a.ticker.subscribed)}${feeds.broker_a.ticker.failure ? ` · ${feeds.broker_a.ticker.failure}` : ''}`,
                false,
              ),
            ]
          : []),
        row(t.instruments, warmers.instruments, count(market.instruments)),
      ],
    ],
    [t.logins, [token(t.tokenA, a, t.loginA), token(t.tokenB, b, t.loginB)]],
    [
      t.day,
      [
        row(
          t.close,
          warmers.close,
          close.date ? t.closed(day(close.date), count(close.points), count(close.missing)) : t.noClose,
        ),
        row(t.signals, warmers.signals, signals.as_of ? t.listed(day(signals.as_of), count(signals.signals)) : UNKNOWN),
      ],
    ],
    [
      t.inside,
      [
        row(t.database, health.database, '', health.database !== 'ok'),
        row(t.l1, 'ok', t.entries(count(health.cache_l1.size)), false),
        row(
          t.l2,
          health.cache_l2.backend,
          health.cache_l2.errors ? t.errors(count(health.cache_l2.errors)) : '',
          health.cache_l2.errors > 0,
        ),
        row(
          t.lanes,
          refused ? 'refused' : 'ok',
          [t.waiting(count(waiting)), refused ? t.refused(count(refused)) : ''].filter(Boolean).join(' · '),
          false,
        ),
        row(
          t.backup,
          health.backup?.failed ? 'failing' : health.backup?.succeeded_ist ? 'ok' : 'never',
          health.backup?.succeeded_ist ? moments(health.backup.succeeded_ist, now) : '',
          Boolean(health.backup?.failed),
        ),
        ...(health.clock.set ? [row(t.clock, t.clockSet, '', false)] : []),
      ],
    ],
  ];
}

const sections = (groups) =>
  h(
    'div',
    { class: 'status-groups' },
    groups.map(([name, rows]) =>
      h(
        'section',
        { class: 'panel' },
        h('h2', null, name),
        h(
          'dl',
          { class: 'rows' },
          rows.map(({ name: label, state, more, kind, cure }) =>
            h(
              'div',
              { class: kind },
              h('dt', null, label),
              h(
                'dd',
                null,
                h('b', null, kind === 'bad' ? '⚠ ' : '● ', state),
                more && h('span', { class: 'muted' }, ` ${more}`),
                cure && h('p', { class: 'cure' }, cure),
              ),
            ),
          ),
        ),
      ),
    ),
  );
