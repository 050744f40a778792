// What stands above every page: the tools of the header, the market's state, and warnings.
import { onSession, serverNow, session } from './data/api.js';
import { age, minute, moments, span, time, weekday } from './data/format.js';
import * as live from './data/live.js';
import { amountsHidden, onAppearance, setLook } from './data/prefs.js';
import { attr, button, h, memo, put, s as svg, say } from './parts/view.js';
import { text } from './text.js';

const t = text.strip;
const ANNOUNCE_MS = 60_000;

function phaseWords(market) {
  const at = market.next_transition_at;
  const name = text.phase[market.phase] ?? market.phase;
  if (!at) return name;
  const now = serverNow();
  const left = (Date.parse(at) - now) / 1000;
  const until = left > 20 * 3600 ? `${weekday(at)} ${minute(at)}` : moments(at, now);
  const next = `${name} · ${t.next[market.phase] ?? t.until} ${until}`;
  return left > 0 ? `${next} ${t.in(span(left))}` : next;
}

/** The state of the snapshot's prices in words, as every page shows them. */
export function marketAge(market) {
  const price = { as_of: market.as_of_ist, stale: market.stale, delay_s: market.delay_s };
  return age(price, { now: serverNow(), open: market.is_open });
}

export function start({ tools, strip, banner, announce, find }) {
  startTools(tools, find);
  const phase = h('span', { class: 'phase' });
  const data = h('span', { class: 'data' });
  const marks = h('span', { class: 'marks' });
  const line = h('span', { class: 'line' });
  let still = false;
  const freeze = button(
    t.freeze,
    () => {
      still = !still;
      live.freeze(still);
      attr(freeze, 'aria-pressed', String(still));
    },
    { class: 'quiet', 'aria-pressed': 'false', title: t.freezeWhy },
  );
  strip.append(phase, data, marks, h('span', { class: 'end' }, line, freeze));

  let said = '';
  let saidAt = -ANNOUNCE_MS;
  /** One sentence a minute at most, and never for a price. */
  const tell = (words) => {
    if (words === said || performance.now() - saidAt < ANNOUNCE_MS) return;
    if (said !== '') announce(words);
    said = words;
    saidAt = performance.now();
  };

  const draw = () => {
    const snapshot = live.valueOf('snapshot');
    const state = live.valueOf('line') ?? 'connecting';
    const frozenAt = live.valueOf('frozen');
    strip.dataset.line = state;
    say(line, frozenAt ? t.frozenAt(time(frozenAt)) : t.line[state]);
    if (!snapshot)
      return drawBanner(banner, state === 'lost' ? t.unreachable : (live.valueOf('trouble') ?? ''), state !== 'lost');
    const { market } = snapshot;
    const old = marketAge(market);
    say(phase, phaseWords(market));
    strip.dataset.open = String(market.is_open);
    say(data, t.data(time(market.as_of_ist)));
    memo(marks, [old, market.simulated], () =>
      put(
        marks,
        old && h('b', { class: `mark ${old.kind}` }, old.words),
        market.simulated && h('b', { class: 'mark simulated' }, text.simulated),
      ),
    );
    const lost = state === 'lost' ? t.lost(time(market.as_of_ist)) : '';
    const stale = market.stale ? t.stale(moments(market.as_of_ist, serverNow())) : '';
    const late = old?.kind === 'delayed' && !market.delay_s ? t.late(old.words) : '';
    const trouble = lost || stale || late;
    drawBanner(banner, trouble);
    tell(trouble || text.phase[market.phase] || market.phase);
  };
  for (const topic of ['snapshot', 'line', 'tick', 'frozen', 'trouble']) live.on(topic, draw);
}

/** What is wrong; with a way to the page that says more, unless the service cannot be asked. */
function drawBanner(banner, words, isAnswering = true) {
  banner.hidden = words === '';
  memo(banner, [words, isAnswering], () =>
    put(banner, words && h('p', null, words, isAnswering && [' ', h('a', { href: '/status' }, t.status)])),
  );
}

const icon = (d) =>
  svg(
    'svg',
    { viewBox: '0 0 24 24', class: 'icon-svg', 'aria-hidden': 'true' },
    d.map((path) => svg('path', { d: path })),
  );
const EYE = ['M2 12s3.6-6.5 10-6.5S22 12 22 12s-3.6 6.5-10 6.5S2 12 2 12Z', 'M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6Z'];
const LENS = ['M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Z', 'm15.5 15.5 5 5'];

function startTools(tools, find) {
  const lens = button(icon(LENS), () => find(), { class: 'icon', title: `${t.find} (/)`, 'aria-label': t.find });
  const hide = button(icon([...EYE, 'm4 20 16-16']), () => setLook('amounts', amountsHidden() ? '' : 'hidden'), {
    class: 'icon eye',
    title: t.hide,
    'aria-label': t.hide,
  });
  const account = h('a', { href: '/account', class: 'account' });
  const draw = () => {
    attr(hide, 'aria-pressed', String(amountsHidden()));
    const here = location.pathname === '/account' || location.pathname === '/login';
    attr(account, 'href', session.user ? '/account' : '/login');
    attr(account, 'aria-current', here ? 'page' : null);
    say(account, session.user || !session.known ? t.account : t.logIn);
  };
  tools.append(lens, hide, account);
  onAppearance(draw);
  onSession(draw);
  draw();
}
